import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { ROOT } from "./measure.ts"

export type Baseline = { commit: string; version: string; dex: string }

/** The commit that `bench/baseline` names. */
export const BASELINE = readFileSync(join(ROOT, "bench/baseline"), "utf8").trim()

/** Builds the baseline once for each user and commit, and reuses that build. If it cannot be built, returns why. */
export function buildBaseline(): Baseline | string {
  try {
    const folder = join(tmpdir(), `dex-bench-${userInfo().username}`, fullHash())
    // The packages may be links to those of another clone, which may be gone.
    const isThere = ["dist/dex.js", "node_modules/better-sqlite3"].every((path) => existsSync(join(folder, path)))
    if (!isThere) build(folder)
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }
    return { commit: BASELINE, version, dex: join(folder, "dist/dex.js") }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const git = (...args: string[]) => execFileSync("git", args, { cwd: ROOT, maxBuffer: 1 << 30, stdio: "pipe" })

function fullHash(): string {
  try {
    return git("rev-parse", "--verify", `${BASELINE}^{commit}`).toString().trim()
  } catch {
    throw new Error(
      `The commit ${BASELINE} is not in this clone. If the clone is shallow, \`git fetch --unshallow\` gets it.`,
    )
  }
}

function build(folder: string): void {
  const unfinished = `${folder}-${process.pid}`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true, mode: 0o700 })
  try {
    execFileSync("tar", ["x", "-C", unfinished], { input: git("archive", BASELINE) })
    installPackages(unfinished)
    run(unfinished, process.execPath, "scripts/build.mjs")
    rmSync(folder, { recursive: true, force: true })
    renameSync(unfinished, folder)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
}

/**
 * The packages that are installed here can be used if they include every package of the baseline's lockfile in the same version.
 */
function installPackages(folder: string): void {
  const wanted = versionsIn(folder)
  const here = versionsIn(ROOT)
  if (Object.entries(wanted).every(([path, version]) => here[path] === version))
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"))
  else run(folder, "npm", "ci", "--no-audit", "--no-fund")
}

function versionsIn(folder: string): Record<string, string | undefined> {
  const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version?: string }>
  }
  return Object.fromEntries(
    Object.entries(packages)
      .filter(([path]) => path.startsWith("node_modules/"))
      .map(([path, { version }]) => [path, version]),
  )
}

function run(cwd: string, program: string, ...args: string[]): void {
  try {
    execFileSync(program, args, { cwd, stdio: "pipe", encoding: "utf8" })
  } catch (error) {
    const { stderr = "" } = error as { stderr?: string }
    throw new Error(`\`${program} ${args.join(" ")}\` failed in ${cwd}: ${stderr.trim().slice(-500)}`)
  }
}
