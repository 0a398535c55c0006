import type { ChildProcess } from "node:child_process"
import { expect, test } from "vitest"
import { DEX, dex, startDex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { modelServer } from "../support/model-server.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"
import { faithful } from "./map-script.ts"

const ARGS = ["map", "collect", "--batch-tokens", "4000", "--parallel", "1", "--json"]

test("Ctrl-C returns a partial result, and the same command continues", async () => {
  const home = await synced()
  let child: ChildProcess | undefined
  const server = await modelServer((asked, turn) => {
    if (turn !== 3) return faithful(asked, turn)
    child?.kill("SIGINT")
    return { hang: true }
  })
  const env = { DEX_LLM_PROVIDER: server.url }
  child = startDex(home, ARGS, DEX, env)
  let stdout = ""
  let stderr = ""
  child.stdout!.on("data", (data) => (stdout += data))
  child.stderr!.on("data", (data) => (stderr += data))
  const code = await new Promise((resolve) => child!.once("close", resolve))
  child = undefined
  expect(code, stderr).toBe(0)
  expect(stderr).toContain("Everything answered so far is kept")
  const first = JSON.parse(stdout)
  expect(first).toMatchObject({ partial: true, batches: { asked: 3 } })
  expect(first.result.items.length).toBeGreaterThan(2)
  const second = JSON.parse((await dex(home, ARGS, env)).stdout)
  expect(second).toMatchObject({ batches: { cached: 3, not_done: 0 } })
})

async function synced(): Promise<string> {
  const home = tempDir()
  for (let n = 0; n < 14; n++)
    claudeSession(home, {
      id: `${String(n).padStart(8, "0")}-1111-4111-8111-111111111111`,
      start: new Date(Date.UTC(2026, 8, 1 + n)).toISOString(),
      turns: Array.from({ length: 4 }, (_, i) => ({
        user: `Question ${i} of ${n}: ${"word ".repeat(120)}`,
        assistant: `Answer ${i} of ${n}: ${"because ".repeat(120)}`,
      })),
    })
  await syncHome(home)
  return home
}
