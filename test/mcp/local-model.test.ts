import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { loadsOf, writeLocalModel } from "../support/local-model.ts"
import { isAlive } from "../support/processes.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { connect } from "./client.ts"

const SYNONYMS = { people: "customers", thrown: "signed", off: "out", unexpectedly: "random" }
const QUERY = "people thrown off unexpectedly"
const WANTED = "claude_code:11111111-1111-4111-8111-111111111111"

test("servers embed the history in the background, and share one process that has loaded the model", async () => {
  const home = tempDir()
  for (let i = 0; i < 24; i++)
    claudeSession(home, {
      id: `2222${String(i).padStart(4, "0")}-2222-4222-8222-222222222222`,
      start: `2026-11-${String(i + 1).padStart(2, "0")}T09:00:00Z`,
      turns: [{ user: `Look at topic${i}` }, { assistant: `It is done: part${i}.` }],
    })
  claudeSession(home, {
    id: WANTED.split(":")[1]!,
    start: "2026-11-03T10:00:00Z",
    turns: [{ user: "Customers get signed out at random" }, { assistant: "Two requests rotate the same token." }],
  })
  await syncHome(home)
  const dexDir = join(home, ".dex")
  writeLocalModel(dexDir, { synonyms: SYNONYMS })
  writeFileSync(join(dexDir, "config.json"), '{ "embed.provider": "local", "embed.timeout_ms": 5000 }\n', {
    mode: 0o600,
  })
  // Before there is a server: a server embeds as soon as it runs.
  const before = await warmDex(home, ["search", QUERY, "--json"])
  expect(JSON.parse(before.stdout)).toMatchObject({
    mode: "lexical",
    degraded: [expect.stringMatching(/No message has a vector/)],
  })
  const servers = await Promise.all([1, 2, 3].map(() => connect(home)))
  const search = async (server: (typeof servers)[number]) => {
    const { structuredContent } = await server.call("dex_search", { query: QUERY })
    const { degraded, results } = structuredContent as { degraded?: string[]; results: { id: string }[] }
    return { degraded, first: results[0]?.id }
  }
  for (const server of servers) await expect.poll(() => search(server)).toEqual({ degraded: undefined, first: WANTED })
  // One embeds and ends, the other answers searches.
  expect(loadsOf(dexDir).length).toBe(2)
  expect(loadsOf(dexDir).some(isAlive)).toBe(true)
})
