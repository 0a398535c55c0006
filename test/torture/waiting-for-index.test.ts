import { join } from "node:path"
import { afterEach, expect, test, vi } from "vitest"
import { loadConnectors } from "../../src/agents/connectors.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

afterEach(() => void vi.useRealTimers())

/** The limit of text that waits for the index, well below a thread's heap, however fast the machine reads. */
const MOST_WAITING = 8e6

test("the text waiting for the index is limited by its size, not only by time", async () => {
  const home = tempDir()
  const text = "The token is refreshed twice, and the second time it is refused. ".repeat(300)
  for (let i = 0; i < 60; i++)
    claudeSession(home, {
      id: `${String(i).padStart(8, "0")}-1111-4111-8111-111111111111`,
      start: "2026-10-03T10:00:00Z",
      turns: Array.from({ length: 10 }, (_, n) => ({ user: `${text} ${n}`, assistant: `${text} ${n}` })),
    })
  const store = openStore(join(home, "history.db"))
  const index = openIndex(join(home, "index.db"))
  let waiting = 0
  let most = 0
  // Simulates a machine so fast that no time passes.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-11-01T00:00:00Z") })
  await syncHistory({
    store: {
      ...store,
      writeUnit: async (write) => {
        const written = await store.writeUnit(write)
        for (const { messages } of written.fresh)
          for (const { parts } of messages) for (const part of parts) waiting += part.text.length
        most = Math.max(most, waiting)
        return written
      },
    },
    index: {
      ...index,
      follow: (from, options) => {
        waiting = 0
        return index.follow(from, options)
      },
    },
    connectors: (await loadConnectors()).connectors,
    machine: { home, platform: process.platform, env: {} },
    home: { dir: join(home, ".dex"), history: join(home, "history.db"), lock: join(home, "lock") },
  })
  expect((await store.stats()).messages).toBe(1_200)
  expect(most).toBeGreaterThan(1e6)
  expect(most).toBeLessThan(MOST_WAITING)
  store.close()
  index.close()
})

test("progress is complete only once everything can be found, and has the time at which the sync looked for files", async () => {
  const home = tempDir()
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-10-03T10:00:00Z",
    turns: [{ user: "Why does the zeppelin leak?" }],
  })
  const store = openStore(join(home, "history.db"))
  const index = openIndex(join(home, "index.db"))
  const before = Date.now()
  const told: { isAll: boolean; at: number; isFound: boolean }[] = []
  await syncHistory({
    store: {
      ...store,
      saveProgress: async (progress) => {
        const { total } = await index.count({ match: [{ words: "zeppelin" }] })
        told.push({ isAll: progress.done >= progress.total, at: progress.at, isFound: total > 0 })
        return store.saveProgress(progress)
      },
      writeUnit: async (write) => {
        while (Date.now() === before) {} // so that the time differs from that of the search for files
        return store.writeUnit(write)
      },
    },
    index,
    connectors: (await loadConnectors()).connectors,
    machine: { home, platform: process.platform, env: {} },
    home: { dir: join(home, ".dex"), history: join(home, "history.db"), lock: join(home, "lock") },
  })
  const written = Date.now()
  expect(told.length).toBeGreaterThan(1)
  expect(told.filter(({ isAll, isFound }) => isAll && !isFound)).toEqual([])
  expect(told.at(-1)).toMatchObject({ isAll: true, isFound: true })
  for (const { at } of told) expect(at).toBe(told[0]!.at)
  expect(told[0]!.at).toBeLessThan(written)
  store.close()
  index.close()
})
