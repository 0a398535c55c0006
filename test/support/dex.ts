import { type ChildProcess, execFile, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))
export const DEX = `${root}dist/dex.js`

export type Run = { code: number | null; stdout: string; stderr: string }

/** Runs the built command line in the given home. */
export function dex(
  home: string,
  args: string[],
  env: Record<string, string> = {},
  program = DEX,
  input = "",
  cwd = home,
): Promise<Run> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [program, ...args],
      { env: environment(home, env), maxBuffer: 256 << 20, cwd },
      (error, stdout, stderr) => {
        resolve({ code: error ? (typeof error.code === "number" ? error.code : null) : 0, stdout, stderr })
      },
    )
    child.stdin?.end(input)
  })
}

export function startDex(
  home: string,
  args: string[],
  program = DEX,
  env: Record<string, string> = {},
  cwd = home,
): ChildProcess {
  return spawn(process.execPath, [program, ...args], {
    env: environment(home, env),
    stdio: ["ignore", "pipe", "pipe"],
    cwd,
  })
}

/** The environment for a hook that has time for its answer even on the busiest machine. */
export const PATIENT = { DEX_HOOK_MS: "900", NODE_OPTIONS: `--import=${root}test/support/slow-clock.mjs` }

/** The variables that a process needs to start, so that nothing of this machine's own agents leaks in. */
export function environment(home: string, more: Record<string, string>): Record<string, string> {
  const { PATH = "", STAND_IN_FILES, NODE_OPTIONS = "" } = process.env
  return {
    ...{ PATH, HOME: home, TZ: "UTC", NO_COLOR: "1" },
    // A stand-in for the local model that this test has made.
    ...(STAND_IN_FILES !== undefined && { STAND_IN_FILES, NODE_OPTIONS }),
    ...more,
  }
}
