import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { DEX } from "../support/dex.ts"
import { createHomeWithFixes } from "../support/solved.ts"
import { tempDir } from "../support/temp.ts"

test("a stdin that never ends, and an agent that closes its end, do not block it", async () => {
  const home = tempDir()
  await createHomeWithFixes(home, 1)
  const child = spawn(process.execPath, [DEX, "hook", "claude_code", "PostToolUseFailure"], {
    env: { PATH: process.env.PATH, HOME: home, DEX_PROACTIVE_MODE: "speak" },
    stdio: ["pipe", "pipe", "pipe"],
  })
  child.stdin.write('{"session_id":')
  const started = performance.now()
  let output = ""
  child.stdout.on("data", (text) => {
    output += text
  })
  const code = await new Promise((ended) => child.on("exit", ended))
  expect({ code, output }).toEqual({ code: 0, output: "" })
  const ms = Math.round(performance.now() - started)
  console.log(`a hook whose stdin never ends: gone after ${ms} ms`)
  expect(ms).toBeLessThan(5_000)
  expect(readFileSync(join(home, ".dex", "hook.log"), "utf8")).toContain("stopped after 250 ms")
})
