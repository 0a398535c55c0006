import { join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { readIndex } from "../../src/store/index/search-index.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"

test("reading everything, as doctor does, takes at most 1.6 times the processor time of SQLite's own check of the two files", async () => {
  const home = tempDir()
  generateCorpus(join(home, ".claude"), { messages: 30_000 })
  await syncHome(home)
  const history = join(home, ".dex", "history.db")
  const index = join(home, ".dex", INDEX_FILE)
  const floorOf = () => {
    for (const path of [history, index]) {
      const db = openSqlite(path)
      expect(db.pragma("integrity_check", { simple: true })).toBe("ok")
      db.close()
    }
  }
  const ours = async () => {
    const store = openStore(history)
    expect(await store.check()).toEqual([])
    expect(await store.inspect()).toEqual({ conversations: [], others: [], unsealed: 0 })
    store.close()
    const opened = readIndex(index)
    if (typeof opened === "string") throw new Error(opened)
    expect(await opened.check()).toEqual([])
    opened.close()
  }
  // In turn, because the speed of a processor changes from second to second; the best of each.
  const times: [floor: number, ours: number][] = []
  for (let i = 0; i < 3; i++) times.push([await processorMs(floorOf), await processorMs(ours)])
  const best = (of: 0 | 1) => Math.min(...times.map((pair) => pair[of]))
  const ratio = best(1) / best(0)
  console.log(`SQLite's check: ${best(0).toFixed(0)} ms, doctor's: ${best(1).toFixed(0)} ms, ratio ${ratio.toFixed(2)}`)
  expect(ratio).toBeLessThanOrEqual(1.6)
})

async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
