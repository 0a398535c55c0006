import { spawnSync } from "node:child_process"
import { closeSync, existsSync, openSync } from "node:fs"
import { expect, onTestFinished, test } from "vitest"
import { DEX, startDex } from "../support/dex.ts"
import { syncedOnce } from "../support/synced.ts"

/** No test changes it. */
const home = syncedOnce()

const onLinux = existsSync("/dev/full")

/** A device on which every write fails, as on a full disk. */
function full(): number {
  const device = openSync("/dev/full", "w")
  onTestFinished(() => closeSync(device))
  return device
}

const env = { PATH: process.env.PATH, HOME: home, NO_COLOR: "1" }

test
  .runIf(onLinux)
  .each([
    [["list"]],
    [["search", "token", "--json"]],
    [["--help"]],
    [["--version"]],
    [["show", "11111111", "--format", "full"]],
    [["sync", "--json"]],
    [["completions", "bash"]],
  ])("dex %j says in one line that its output cannot be written, and exits with 2", (args) => {
  const run = spawnSync(process.execPath, [DEX, ...args], {
    env,
    stdio: ["ignore", full(), "pipe"],
    encoding: "utf8",
  })
  const lines = run.stderr.trimEnd().split("\n")
  expect({ code: run.status, lastLine: lines.at(-1) }).toEqual({
    code: 2,
    lastLine:
      "dex: The output could not be written: no space is left on the device. Free some space, or write the output elsewhere.",
  })
  expect(run.stderr).not.toMatch(/^\s+at |Node\.js/m)
})

test.runIf(onLinux)("if only notes cannot be written, the answer is printed as usual", () => {
  const run = spawnSync(process.execPath, [DEX, "list"], {
    env,
    stdio: ["ignore", "pipe", full()],
    encoding: "utf8",
  })
  expect(run.status).toBe(0)
  expect(run.stdout).toContain("Refresh token race")
})

test("a pipe that closes early is not an error, and prints no message", async () => {
  const child = startDex(home, ["show", "11111111", "--format", "full"])
  child.stdout!.destroy()
  let stderr = ""
  child.stderr!.on("data", (chunk) => {
    stderr += chunk
  })
  const code = await new Promise((resolve) => child.on("close", resolve))
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
})
