import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { loadsOf, writeLocalModel } from "../support/local-model.ts"
import { isAlive } from "../support/processes.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"
import { connect } from "./client.ts"

const SYNONYMS = { people: "customers", thrown: "signed", off: "out", unexpectedly: "random" }
const WANTED = "claude_code:11111111-1111-4111-8111-111111111111"

test("servers have the history embedded behind their answers, and share one process that holds the model", async () => {
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
  const servers = await Promise.all([1, 2, 3].map(() => connect(home)))
  const search = async (server: (typeof servers)[number]) =>
    (await server.call("dex_search", { query: "people thrown off unexpectedly" })).structuredContent as {
      mode: string
      degraded?: string[]
      results: { id: string }[]
    }
  const before = await search(servers[0]!)
  expect(before).toMatchObject({ mode: "lexical", degraded: [expect.stringMatching(/No message has a vector/)] })
  for (const server of servers) await expect.poll(async () => (await search(server)).degraded).toBeUndefined()
  for (const server of servers) expect((await search(server)).results[0]?.id).toBe(WANTED)
  // One embeds and ends, the other answers searches.
  expect(loadsOf(dexDir).length).toBe(2)
  expect(loadsOf(dexDir).some(isAlive)).toBe(true)
})
