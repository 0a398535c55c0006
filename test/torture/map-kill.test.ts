import type { ChildProcess } from "node:child_process"
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { faithful, isMerge, promptOf } from "../answers/map-script.ts"
import { DEX, dex, startDex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { type ModelServerRequest, modelServer, type Step } from "../support/model-server.ts"
import { tempDir } from "../support/temp.ts"

const KILLS = 20
const PARALLEL = 2
const ARGS = ["map", "collect", "--batch-tokens", "4000", "--parallel", String(PARALLEL), "--json"]

test(`after kill -9 at ${KILLS} points of a map, the next run gives the same result and pays for no finished batch again`, {
  timeout: 300_000,
}, async () => {
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
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })

  // The process is killed before, during or right after the answer to a request.
  let victim: { child: ChildProcess; request: number; when: "before" | "within" | "after" } | undefined
  let served: ModelServerRequest[] = []
  const server = await modelServer(async (asked, turn) => {
    served.push(asked)
    const hit = victim && served.length === victim.request ? victim : undefined
    const [{ text }] = (await faithful(asked, turn)) as [{ text: string }]
    const kill: Step = { wait: async () => void hit?.child.kill("SIGKILL") }
    if (hit?.when === "before") hit.child.kill("SIGKILL")
    if (hit?.when === "within") return [{ text: text.slice(0, 20) }, kill, { text: text.slice(20) }]
    return hit?.when === "after" ? [{ text }, kill] : [{ text }]
  })
  const env = { DEX_LLM_PROVIDER: server.url }
  const answers = () => readFiles(join(home, ".dex/map")).filter((name) => /^(?!plan-|last)[\w-]+\.json$/.test(name))
  const wipe = () => rmSync(join(home, ".dex/map"), { recursive: true, force: true })

  const clean = await dex(home, ARGS, env)
  const expected = JSON.parse(clean.stdout)
  const requests = served.length
  expect(requests).toBeGreaterThan(7)
  expect(served.filter(isMerge).length).toBeGreaterThan(0)

  const found = { midway: 0, paidTwice: 0 }
  for (let i = 0; i < KILLS; i++) {
    wipe()
    served = []
    const child = startDex(home, ARGS, DEX, env)
    const when = (["before", "within", "after"] as const)[i % 3]!
    victim = { child, request: 1 + Math.floor((i * requests) / KILLS), when }
    const [, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      child.once("exit", (code, by) => resolve([code, by])),
    )
    if (when !== "after") expect(signal).toBe("SIGKILL")
    victim = undefined
    const kept = answers()
    const before = served.map(promptOf)
    if (kept.length > 0 && kept.length < requests) found.midway++

    served = []
    const resumed = await dex(home, ARGS, env)
    expect(resumed.code, resumed.stderr).toBe(0)
    const output = JSON.parse(resumed.stdout)
    expect(output.result).toEqual(expected.result)
    expect(output.batches.total).toBe(expected.batches.total)
    // Stored answers are not requested again, and all other requests are made once.
    expect(served).toHaveLength(requests - kept.length)
    const again = served.filter((asked) => before.includes(promptOf(asked))).length
    expect(again).toBeLessThanOrEqual(PARALLEL)
    found.paidTwice += again
  }
  console.log(
    `${KILLS} kills, ${found.midway} with some of ${requests} answers kept and some not; ${found.paidTwice} answers in flight were asked again`,
  )
  expect(found.midway).toBeGreaterThan(KILLS / 2)
})

function readFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // killed before any answer was stored
  }
}
