import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { packagesIn } from "../../scripts/licences.mjs"
import { problemsOfPackage } from "../../scripts/package-contents.mjs"
import { repositoryOf } from "../../scripts/package-fields.mjs"
import { npmPackage, packageFiles, withFullAddresses } from "../../scripts/release/npm-package.mjs"
import { sbomOf } from "../../scripts/release/sbom.mjs"
import { otherCommands } from "../../src/cli/other-commands.ts"
import { tempDir } from "../support/temp.ts"

const ROOT = join(import.meta.dirname, "../..")
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  dependencies: Record<string, string>
  version: string
}
/** Our own packages and the links to them, as npm names them in the lockfile. */
const OWN = [
  ...["node_modules/dexctx-embed-local", "packages/embed-local", "node_modules/dex-hub", "hub"],
  ...["node_modules/dex-more-agents", "packages/more-agents"],
]
const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
  packages: Record<
    string,
    {
      dev?: boolean
      resolved?: string
      integrity?: string
      hasInstallScript?: boolean
      optional?: boolean
      cpu?: string[]
      dependencies?: Record<string, string>
    }
  >
}

test("a user's npm installs at most 15 direct packages and 60 in all", () => {
  const installed = new Set(Object.keys(manifest.dependencies))
  for (const name of installed)
    for (const more of Object.keys(lock.packages[`node_modules/${name}`]!.dependencies ?? {})) installed.add(more)
  expect(Object.keys(manifest.dependencies).length).toBeLessThanOrEqual(15)
  expect(installed.size).toBeLessThanOrEqual(60)
  expect([...installed]).not.toContain("pg")
})

test("the lockfile contains no download address", () => {
  const named = Object.entries(lock.packages).filter(([, entry]) => entry.resolved !== undefined)
  expect(named.map(([, { resolved }]) => resolved)).toEqual(["hub", "packages/more-agents", "packages/embed-local"])
})

test("our own packages have no dependencies and no install scripts", () => {
  const folder = join(ROOT, "packages")
  expect(readdirSync(folder)).toEqual(["embed-local", "more-agents"])
  for (const [name, scripts] of [
    ["embed-local", ["build"]],
    ["more-agents", []],
  ] as const) {
    const own = JSON.parse(readFileSync(join(folder, name, "package.json"), "utf8")) as Record<string, object>
    expect(Object.keys(own).filter((field) => /dependencies/i.test(field))).toEqual([])
    expect(Object.keys(own.scripts ?? {})).toEqual(scripts)
  }
})

test("the lockfile pins every package by its hash, except development tools' binaries for other platforms", () => {
  const unpinned = Object.entries(lock.packages).filter(
    ([path, { integrity = "" }]) => path !== "" && !OWN.includes(path) && !/^sha512-[\w+/]{86}==$/.test(integrity),
  )
  const isUsed = ([, { dev, optional, cpu }]: (typeof unpinned)[number]) => !dev || !optional || cpu === undefined
  expect(unpinned.filter(isUsed).map(([path]) => path)).toEqual([])
})

test("dependencies are pinned exactly", () => {
  expect(Object.entries(manifest.dependencies).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
})

test("reading commands and the picker start without loading Node's slow modules", () => {
  for (const file of ["main.js", "picker.js", "hook.js"]) {
    const loaded = [...readFileSync(join(ROOT, "dist", file), "utf8").matchAll(/\bfrom\s*"node:([^"]+)"/g)]
    expect(loaded.length).toBeGreaterThan(5)
    const heavy = ["crypto", "http", "https", "net", "tls", "worker_threads", "readline", "child_process"]
    expect([file, loaded.map(([, name]) => name!).filter((name) => heavy.includes(name))]).toEqual([file, []])
  }
})

test("the program's files contain only ASCII, because V8 reads other text more slowly", () => {
  const dist = join(ROOT, "dist")
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"))
  const programs = files.filter((file) => !file.startsWith("view"))
  expect(programs.length).toBeGreaterThan(100)
  expect(programs.filter((file) => /[^\0-\x7f]/.test(readFileSync(join(dist, file), "utf8")))).toEqual([])
})

test("the list of commands is only in the first file, so that files loaded later do not declare them again", () => {
  const { summary } = otherCommands[0]!
  const files = readdirSync(join(ROOT, "dist"), { recursive: true }).map(String)
  const having = files.filter(
    (file) => file.endsWith(".js") && readFileSync(join(ROOT, "dist", file), "utf8").includes(summary),
  )
  expect(having).toEqual(["main.js"])
})

test("the package contains the program and no development files, and works without any install script", () => {
  const dir = tempDir()
  mkdirSync(join(dir, "home"))
  const npm = (args: string[], cwd: string) =>
    execFileSync(process.platform === "win32" ? "npm.cmd" : "npm", args, {
      cwd,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      shell: process.platform === "win32",
    })
  const out = npm(["pack", "--dry-run", "--json", "--ignore-scripts"], ROOT)
  type Packed = { filename: string; files: { path: string }[]; size: number }
  const [packed] = JSON.parse(out.slice(out.indexOf("["))) as [Packed]
  expect(problemsOfPackage(packed)).toEqual([])
  // Ours has the same files, but its pages have full addresses, and the same files always make the same bytes.
  const paths = (files: { path: string }[]) => files.map(({ path }) => path).sort()
  expect(paths(packageFiles(ROOT))).toEqual(paths(packed.files))
  const bytes = npmPackage(ROOT)
  expect(npmPackage(ROOT).equals(bytes)).toBe(true)
  writeFileSync(join(dir, packed.filename), bytes)
  npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir, join(dir, packed.filename)], dir)
  const program = join(dir, "node_modules", "dexctx", "dist", "dex.js")
  const run = (args: string[]) =>
    execFileSync(process.execPath, [program, ...args], {
      env: { HOME: join(dir, "home"), PATH: process.env.PATH },
      encoding: "utf8",
    })
  expect(run(["--version"])).toBe(`dex ${manifest.version}\n`)
  expect(run(["sync"])).toMatch(/Nothing new in 0 transcripts/)
})

test("every link and picture of the package's page has its full address, and every file that it names exists", () => {
  const repository = repositoryOf(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as object)!
  const page = withFullAddresses(readFileSync(join(ROOT, "README.md"), "utf8"), repository, "v1.2.3")
  const targets = [...page.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!)
  expect(targets.filter((target) => !target.startsWith("https://"))).toEqual([])
  const pages = targets.flatMap(
    (target) => new RegExp(`^${repository.address}/blob/v1.2.3/([^#]+)`).exec(target)?.[1] ?? [],
  )
  expect(pages.length).toBeGreaterThan(20)
  expect(pages.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  expect(page).toMatch(/!\[[^\]]+\]\(https:\/\/raw\.githubusercontent\.com\/[\w-]+\/[\w-]+\/v1\.2\.3\/docs\/dex\.svg\)/)
  expect(withFullAddresses("[a](#b) [c](https://d.e/f.md)", repository, "v1")).toBe("[a](#b) [c](https://d.e/f.md)")
})

test("the bill of materials lists what npm installs, with hashes, and what is bundled", () => {
  const { components, dependencies, metadata } = sbomOf(ROOT)
  const named = new Map(components.map((component) => [component.name, component]))
  expect(Object.keys(manifest.dependencies).filter((name) => !named.has(name))).toEqual([])
  for (const [name, version] of Object.entries(manifest.dependencies))
    expect(named.get(name)).toMatchObject({
      version,
      hashes: [{ alg: "SHA-512", content: expect.stringMatching(/^[0-9a-f]{128}$/) }],
    })
  expect([...named.keys()]).toEqual(expect.arrayContaining(["hono", "@clack/prompts", "node-addon-api"]))
  expect(metadata.component.purl).toBe(`pkg:npm/dexctx@${manifest.version}`)
  const refs = new Set([...components, metadata.component].map((component) => component["bom-ref"]))
  expect(dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]).filter((ref) => !refs.has(ref!))).toEqual([])
  expect(sbomOf(ROOT)).toEqual(sbomOf(ROOT))
})

test("no tracked file names the folder of this checkout", () => {
  const tracked = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n")
  const wrong = tracked.filter((file) => {
    if (/\.(db|png|zst)$/.test(file)) return false
    const text = readFileSync(join(ROOT, file), "utf8")
    return text.includes(ROOT)
  })
  expect(wrong).toEqual([])
  expect(readdirSync(ROOT)).toContain(".npmrc")
})

test("the licences of bundled packages are included, even if a package is nested or in a folder above", () => {
  const text = readFileSync(join(ROOT, "dist/THIRD_PARTY_LICENSES.txt"), "utf8")
  const named = [...text.matchAll(/^(\S+) \d\S* \(.+\)$/gm)].map(([, name]) => name)
  expect(named).toEqual(expect.arrayContaining(["better-sqlite3", "hono", "@clack/prompts", "fast-string-width"]))
  expect(packagesIn(["../x/node_modules/@a/b/c.js", "node_modules/d/node_modules/e/f.js", "src/g.ts"])).toEqual([
    "../x/node_modules/@a/b",
    "node_modules/d/node_modules/e",
  ])
})
