import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { archiveFor, mcpBundle } from "./bundles.mjs"
import { installScript, sha256 } from "./channels.mjs"
import { npmPackage } from "./npm-package.mjs"
import { SYSTEMS } from "./systems.mjs"

/** Everything takes seconds, but npm may wait for a registry that does not answer. @type {{ encoding: "utf8", stdio: "pipe", timeout: number }} */
const LIMITS = { encoding: "utf8", stdio: "pipe", timeout: 300_000 }
const MCPB = "@anthropic-ai/mcpb@2.1.2"

/**
 * Makes the files of a release that this machine can run, and installs each with its own client in an empty home: runs dex, removes it, and looks at what is
 * left. Needs dist/ and npm's registry.
 * @param {string} root
 */
export function tryOut(root) {
  const problems = []
  const unchecked = Object.keys(SYSTEMS)
    .filter((system) => system !== `${process.platform}-${process.arch}`)
    .map((system) => `the archive for ${system}, which this machine cannot run`)
  unchecked.push("Homebrew's formula, Scoop's manifest and the AUR's package with their own programs (RELEASING.md)")
  for (const [what, check] of Object.entries({
    "the npm package": npm,
    "the archive": archive,
    "the bundle": bundle,
  })) {
    const folder = mkdtempSync(join(tmpdir(), "dex-release-"))
    const home = join(folder, "home")
    mkdirSync(home)
    try {
      check(root, folder, home)
    } catch (error) {
      problems.push(`${what}: ${error.message} ${error.stderr ?? ""}`.trim())
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return { problems, unchecked }
}

/** @type {(root: string, folder: string, home: string) => void} */
function npm(root, folder, home) {
  writeFileSync(join(folder, "dexctx.tgz"), npmPackage(root))
  const prefix = ["--prefix", join(folder, "prefix"), "--global", "--no-audit", "--no-fund", "--ignore-scripts"]
  runNpm(folder, "install", ...prefix, join(folder, "dexctx.tgz"))
  use(join(folder, "prefix/bin/dex"), root, home)
  runNpm(folder, "uninstall", ...prefix, "dexctx")
  for (const left of ["prefix/bin/dex", "prefix/lib/node_modules/dexctx"])
    if (existsSync(join(folder, left))) throw new Error(`npm left ${left}.`)
}

/** @type {(root: string, folder: string, home: string) => void} */
function archive(root, folder, home) {
  const system = /** @type {import("./systems.mjs").System} */ (`${process.platform}-${process.arch}`)
  if (!Object.hasOwn(SYSTEMS, system) || process.platform === "win32") return
  const { name, bytes } = archiveFor(root, system)
  writeFileSync(join(folder, name), bytes)
  writeFileSync(join(folder, "SHA256SUMS"), `${sha256(bytes)}  ${name}\n`)
  writeFileSync(join(folder, "install.sh"), installScript(root))
  const env = { HOME: home, DEX_DOWNLOADS: `file://${folder}` }
  run("sh", [join(folder, "install.sh")], env)
  use(join(home, ".local/bin/dex"), root, home)
  run("sh", [join(folder, "install.sh"), "--uninstall"], env)
  const left = readdirSync(join(home, ".local"), { recursive: true }).map(String).sort()
  if (left.join() !== "bin,share") throw new Error(`install.sh left ${left.join(", ")}.`)
}

/** @type {(root: string, folder: string, home: string) => void} */
function bundle(root, folder, home) {
  writeFileSync(join(folder, "dex.mcpb"), mcpBundle(root))
  const mcpb = (/** @type {string[]} */ ...args) =>
    runNpm(folder, "exec", "--yes", "--package", MCPB, "--", "mcpb", ...args)
  mcpb("unpack", join(folder, "dex.mcpb"), join(folder, "x"))
  mcpb("validate", join(folder, "x/manifest.json"))
  const { server } = JSON.parse(readFileSync(join(folder, "x/manifest.json"), "utf8"))
  use(process.execPath, root, home, [join(folder, "x", server.entry_point)])
}

/** Runs dex in an empty home. @type {(program: string, root: string, home: string, args?: string[]) => void} */
function use(program, root, home, args = []) {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const said = run(program, [...args, "--version"], { HOME: home })
  if (said !== `dex ${version}\n`) throw new Error(`--version printed ${said}`)
  run(program, [...args, "sync"], { HOME: home })
}

/** Runs npm with the user's own settings, which may name another registry. @type {(folder: string, ...args: string[]) => void} */
function runNpm(folder, ...args) {
  execFileSync("npm", args, { ...LIMITS, cwd: folder })
}

/** @type {(program: string, args: string[], env: Record<string, string>) => string} */
function run(program, args, env) {
  const path = `${join(process.execPath, "..")}:${process.env.PATH}`
  return execFileSync(program, args, { ...LIMITS, cwd: env.HOME, env: { PATH: path, ...env } })
}
