import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

const COUNT = 60

/** The number of units that were read when the index was first updated. */
async function firstIndexed(options: { fillsList?: boolean; pauseAt?: number; deadline?: number } = {}) {
  const home = tempDir()
  for (let i = 0; i < COUNT; i++)
    claudeSession(home, {
      id: `${String(i).padStart(8, "0")}-1111-4111-8111-111111111111`,
      start: "2026-11-05T10:00:00Z",
      turns: [{ user: `The walrus number w${i} sleeps` }, { assistant: "It does." }],
    })
  const dir = join(home, ".dex")
  const store = openStore(join(dir, "history.db"))
  const index = openIndex(join(dir, "index.db"))
  onTestFinished(() => {
    store.close()
    index.close()
  })
  let [done, first] = [0, -1]
  const follow: typeof index.follow = (...given) => {
    if (first === -1) first = done
    return index.follow(...given)
  }
  await syncHistory(
    {
      store,
      index: { ...index, follow },
      connectors: [claudeCodeConnector],
      machine: { home, env: {}, platform: "linux" },
      home: { dir, history: join(dir, "history.db"), lock: join(dir, "lock") },
    },
    { ...options, onProgress: (progress) => (done = progress.done) },
  )
  const { total } = await index.count({ match: [{ words: "walrus" }] })
  return { first, searchable: total }
}

test("a first sync fills the list before it updates the index, and then everything is searchable", async () => {
  expect(await firstIndexed({ fillsList: true })).toEqual({ first: 50, searchable: COUNT })
})

test("a sync that nobody watches or that may stop early keeps the index up to date from the beginning", async () => {
  const never = Date.now() + 1_000_000
  expect(await firstIndexed()).toEqual({ first: 1, searchable: COUNT })
  expect(await firstIndexed({ fillsList: true, deadline: never })).toEqual({ first: 1, searchable: COUNT })
  expect(await firstIndexed({ fillsList: true, pauseAt: never })).toEqual({ first: 1, searchable: COUNT })
})
