import childProcess from "node:child_process"
import { syncBuiltinESMExports } from "node:module"
import { afterAll } from "vitest"

// Loaded before the unit tests: anything that starts a process in one of them fails, even if the code under test catches the
// error.

const STARTS = ["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"]

/** One worker runs many files, and all of them have the same `node:child_process`. */
const shared = globalThis as { startedProcesses?: string[] }

if (shared.startedProcesses === undefined) {
  const started: string[] = []
  shared.startedProcesses = started
  const refuse = (name: string) => (program: string) => {
    started.push(`${name}(${program})`)
    throw new Error(`A unit test may not start a process: ${name}(${program}). Move it to the tests of the program.`)
  }
  Object.assign(childProcess, Object.fromEntries(STARTS.map((name) => [name, refuse(name)])))
  syncBuiltinESMExports()
}

afterAll(() => {
  const started = shared.startedProcesses!.splice(0)
  if (started.length > 0) throw new Error(`Processes were started, which unit tests may not do: ${started.join(", ")}`)
})
