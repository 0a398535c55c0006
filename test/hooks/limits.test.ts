import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { DEX, type Run } from "../support/dex.ts"
import { createHomeWithFixes, failureInput } from "../support/solved.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"

const home = sharedTempDir()
beforeAll(() => createHomeWithFixes(home, 1))

const FAILED = ["claude_code", "PostToolUseFailure"]
const SILENT = { code: 0, stdout: "", stderr: "" }

function start(program: string, words: string[], env: Record<string, string>, stdin: string | undefined): Promise<Run> {
  const child = spawn(program, words, {
    env: { PATH: process.env.PATH, HOME: home, DEX_PROACTIVE_MODE: "speak", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  })
  const run = { stdout: "", stderr: "" }
  child.stdout.on("data", (text) => {
    run.stdout += text
  })
  child.stderr.on("data", (text) => {
    run.stderr += text
  })
  if (stdin === undefined) child.stdin.write("{")
  else child.stdin.end(stdin)
  return new Promise((ended) => child.on("close", (code) => ended({ code, ...run })))
}

describe("how long an agent waits for a hook", () => {
  test.each([
    [undefined, 250],
    ["100", 100],
    ["5000", 900],
    ["99999", 250],
    ["-1", 250],
  ])("with DEX_HOOK_MS=%s it ends after %i ms, though its input never does", async (setting, limit) => {
    const dexHome = tempDir()
    const env: Record<string, string> = setting === undefined ? {} : { DEX_HOOK_MS: setting }
    const run = await start(process.execPath, [DEX, "hook", ...FAILED], { DEX_HOME: dexHome, ...env }, undefined)
    expect(run).toEqual(SILENT)
    expect(readFileSync(join(dexHome, "hook.log"), "utf8")).toContain(`stopped after ${limit} ms`)
  })

  test.each([
    [undefined, "0.200"],
    ["100", "0.050"],
    ["5000", "0.850"],
    ["99999", "0.200"],
  ])("with DEX_HOOK_MS=%s the program that agents start waits %s s for it", async (setting, seconds) => {
    const folder = tempDir()
    const waited = join(folder, "waited")
    mkdirSync(join(folder, "bin"))
    writeFileSync(join(folder, "bin", "sleep"), `#!/bin/sh\necho "$1" >>'${waited}'\nexec /bin/sleep "$1"\n`, {
      mode: 0o755,
    })
    // On a crowded machine it would not wait at all, and the machine that runs this test may be crowded.
    const program = readFileSync(join(home, ".dex", "bin", "dex-hook"), "utf8").replace(/^crowd=\d+$/m, "crowd=100000")
    expect(program).toContain("crowd=100000")
    writeFileSync(join(folder, "dex-hook"), program, { mode: 0o755 })
    const env: Record<string, string> = setting === undefined ? {} : { DEX_HOOK_MS: setting }
    const path = `${join(folder, "bin")}:/usr/bin:/bin`
    const run = await start(join(folder, "dex-hook"), FAILED, { PATH: path, ...env }, failureInput("waits", 0))
    expect(run).toMatchObject({ code: 0, stderr: "" })
    expect(readFileSync(waited, "utf8")).toBe(`${seconds}\n`)
  })

  test("a result that is ready only after that is not printed, even if nothing could interrupt the work", async () => {
    const folder = tempDir()
    const reached = join(folder, "reached")
    // The last step before a hook answers takes longer than the agent waits, and lets no timer fire meanwhile.
    const slow = join(folder, "slow.mjs")
    writeFileSync(
      slow,
      `import { writeFileSync } from "node:fs"
const { toWellFormed } = String.prototype
String.prototype.toWellFormed = function () {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
  writeFileSync(${JSON.stringify(reached)}, "")
  return toWellFormed.call(this)
}
`,
    )
    const env = { DEX_HOOK_MS: "900", NODE_OPTIONS: `--import=${slow}` }
    for (let i = 0; i < 40 && !existsSync(reached); i++)
      expect(await start(process.execPath, [DEX, "hook", ...FAILED], env, failureInput(`slow ${i}`, 0))).toEqual(SILENT)
    expect(existsSync(reached)).toBe(true)
    expect(readFileSync(join(home, ".dex", "hook.log"), "utf8")).toContain("stopped after 900 ms")
  })
})
