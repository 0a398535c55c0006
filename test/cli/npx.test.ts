import { execFile } from "node:child_process"
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { expect, test } from "vitest"
import { programOf } from "../../src/render/terminal.ts"
import { DEX, dex, type Run } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

// A person who started dex with npx cannot type `dex`: the commands that dex suggests must work as they are shown.

const ROOT = dirname(dirname(DEX))
const packages = join(ROOT, "node_modules")

/** A project with dex among its packages, as npm installs it. */
function projectWithDex(): string {
  const project = tempDir()
  const own = join(project, "node_modules", "dexctx")
  cpSync(join(ROOT, "dist"), join(own, "dist"), { recursive: true })
  cpSync(join(ROOT, "package.json"), join(own, "package.json"))
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"))
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(project, "node_modules", name)), { recursive: true })
    symlinkSync(join(packages, name), join(project, "node_modules", name))
  }
  mkdirSync(join(project, "node_modules", ".bin"))
  symlinkSync(join("..", "dexctx", "dist", "dex.js"), join(project, "node_modules", ".bin", "dex"))
  writeFileSync(join(project, "package.json"), '{"name":"somewhere","version":"1.0.0","dependencies":{"dexctx":"*"}}')
  return project
}

/** The real npx, offline, with the Node that runs this test. */
function npx(home: string, project: string, args: string[]): Promise<Run> {
  const env = {
    PATH: [dirname(process.execPath), process.env.PATH ?? ""].join(delimiter),
    HOME: home,
    TZ: "UTC",
    NO_COLOR: "1",
    npm_config_update_notifier: "false",
  }
  return new Promise((resolve) => {
    execFile("npx", ["--offline", ...args], { env, cwd: project }, (error, stdout, stderr) =>
      resolve({ code: error ? (typeof error.code === "number" ? error.code : null) : 0, stdout, stderr }),
    )
  })
}

test.skipIf(process.platform === "win32")("commands that dex suggests under npx begin with npx", async () => {
  const home = tempDir()
  const project = projectWithDex()
  smallHome(home)
  claudeSession(home, {
    id: "44444444-4444-4444-8444-444444444444",
    start: "2026-11-12T09:00:00Z",
    title: "Why does dex search find nothing",
    turns: [{ user: "Why does dex search find nothing?" }, { assistant: "Nothing was read yet." }],
  })
  const first = await npx(home, project, ["dexctx"])
  expect(first.stdout).toMatch(/^ {2}npx dexctx show \S+$/m)
  expect(first.stdout).toMatch(/^ {2}npx dexctx list$/m)
  expect(first.stdout).toContain("Why does dex search find nothing")
  const [, ref] = /^ {2}npx dexctx show (\S+)$/m.exec(first.stdout)!
  expect((await npx(home, project, ["dexctx", "show", ref!])).stdout).toContain("Nothing was read yet.")

  // npx takes four times as long as dex, so the other commands are started directly, with the environment that npx sets.
  const { stdout } = await npx(home, project, ["-c", "node -p 'JSON.stringify(process.env)'"])
  const script = join(project, "node_modules", ".bin", "dex")
  const started = (args: string[]) => dex(home, args, JSON.parse(stdout), script, "", project)
  const list = await started(["list"])
  expect(list.stdout).toContain("Why does dex search find nothing")
  expect(list.stderr).toContain("Read one: npx dexctx show ")
  expect((await started(["show", "nosuch"])).stderr).toContain("`npx dexctx list` lists all of them")
  expect((await started(["help"])).stdout).toMatch(/^npx dexctx help all /m)
  expect((await started(["search", "--help"])).stdout).toContain("Example: npx dexctx search")
  const index = readdirSync(join(home, ".dex")).filter((name) => name.startsWith("index-"))
  for (const name of index) rmSync(join(home, ".dex", name))
  expect((await started(["doctor"])).stdout).toContain("→ npx dexctx sync")
  const json = await started(["doctor", "--json"])
  expect(json.stdout).toContain('"mend":"dex sync"')
})

test.skipIf(process.platform === "win32")("if this dex is on the PATH, commands begin with dex", () => {
  const project = projectWithDex()
  const script = join(project, "node_modules", "dexctx", "dist", "dex.js")
  const own = join(project, "node_modules", ".bin")
  const bin = join(project, "bin")
  const byNpm = (...path: string[]) => ({ npm_command: "exec", PATH: path.join(delimiter) })
  expect(programOf(byNpm(own, "/usr/bin"), script)).toBe("npx dexctx")
  expect(programOf(byNpm(own, bin), script)).toBe("npx dexctx")
  expect(programOf({ PATH: own }, script)).toBeUndefined()
  mkdirSync(bin)
  symlinkSync(script, join(bin, "dex"))
  expect(programOf(byNpm(own, bin), script)).toBeUndefined()
  expect(programOf(byNpm(own), DEX)).toBeUndefined()
})
