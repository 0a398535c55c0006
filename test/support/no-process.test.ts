import { expect, test } from "vitest"

/** The name is split, because this file starts nothing. */
const NAME = "child_process"

test("a unit test that starts a process fails, even if the error is caught", async () => {
  const { spawn, execFileSync } = (await import(`node:${NAME}`)) as Record<
    "spawn" | "execFileSync",
    (program: string) => void
  >
  expect(() => spawn("true")).toThrow("A unit test may not start a process: spawn(true).")
  expect(() => execFileSync("true")).toThrow("execFileSync(true)")
  // Anything that is left in this list when a file ends fails that file.
  const { startedProcesses } = globalThis as { startedProcesses?: string[] }
  expect(startedProcesses?.splice(0)).toEqual(["spawn(true)", "execFileSync(true)"])
})
