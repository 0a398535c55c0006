import { join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { readIndex } from "../../src/store/index/search-index.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"

test("reading everything, as doctor does, takes at most 1.6 times the processor time of SQLite's own check of the two files", {
  timeout: 300_000,
}, async () => {
  const home = tempDir()
  generateCorpus(join(home, ".claude"), { messages: 30_000 })
  await syncHome(home)
  const history = join(home, ".dex", "history.db")
  const index = join(home, ".dex", INDEX_FILE)
  const floor = await processorMs(() => {
    for (const path of [history, index]) {
      const db = openSqlite(path)
      expect(db.pragma("integrity_check", { simple: true })).toBe("ok")
      db.close()
    }
  })
  const ours = await processorMs(async () => {
    const store = openStore(history)
    expect(await store.check()).toEqual([])
    expect(await store.inspect()).toEqual({ conversations: [], others: [], unsealed: 0 })
    store.close()
    const opened = readIndex(index)
    if (typeof opened === "string") throw new Error(opened)
    expect(opened.check()).toEqual([])
    opened.close()
  })
  console.log(
    `SQLite's check: ${floor.toFixed(0)} ms, doctor's: ${ours.toFixed(0)} ms, ratio ${(ours / floor).toFixed(2)}`,
  )
  expect(ours / floor).toBeLessThanOrEqual(1.6)
})

async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
