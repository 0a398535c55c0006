import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { expect, onTestFinished, test } from "vitest"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import type { UnitRequest } from "../../src/ingest/reader.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { put, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"

/** The largest amount that the sync had ordered from the reading thread and not stored yet. */
async function mostAhead(files: number, bytesEach: number): Promise<{ units: number; bytes: number; read: number }> {
  const home = tempDir()
  for (let n = 0; n < files; n++) {
    const session = `${String(n).padStart(8, "0")}-2222-4333-8444-555555555555`
    const told = writer({ sessionId: session }, `f${n}-`)
    told.prompt(`Session ${n}`)
    // Large on disk and small in the store, so that only the reading takes long.
    told.plain({ type: "file-history-snapshot", messageId: "x", snapshot: { text: "y".repeat(bytesEach) } })
    put(home, `.claude/projects/-home-dev-proj/${session}.jsonl`, told.records)
  }
  const dir = join(home, ".dex")
  const history = join(dir, "history.db")
  const store = openStore(history)
  const index = openIndex(join(dir, "index.db"))
  const most = { units: 0, bytes: 0 }
  const open = new Map<string, number>()
  const { postMessage } = Worker.prototype
  Worker.prototype.postMessage = function (message: { order: UnitRequest }) {
    const { order } = message
    open.set(order.unit.key, order.unit.bytes)
    most.units = Math.max(most.units, open.size)
    const bytes = [...open.values()].reduce((sum, size) => sum + size, 0)
    most.bytes = Math.max(most.bytes, bytes)
    postMessage.call(this, message)
  }
  onTestFinished(() => {
    Worker.prototype.postMessage = postMessage
    store.close()
    index.close()
  })
  const watched = {
    ...store,
    writeUnit: async (write: Parameters<typeof store.writeUnit>[0]) => {
      const written = await store.writeUnit(write)
      open.delete(write.unit.key)
      return written
    },
  }
  const machine = { home, env: {}, platform: "linux" as const }
  const report = await syncHistory({
    store: watched,
    index,
    connectors: [claudeCodeConnector],
    machine,
    home: { dir, history, lock: join(dir, "lock") },
  })
  return { ...most, read: report.read }
}

test("a sync reads ahead of what is stored, but never more than a few megabytes", async () => {
  const { units, bytes, read } = await mostAhead(40, 1_000_000)
  expect(read).toBe(40)
  expect(units).toBeGreaterThan(2)
  expect(bytes).toBeGreaterThan(2_000_000)
  expect(bytes).toBeLessThan(8_000_000)
})

test("a sync never reads more than a few hundred conversations ahead, however small they are", async () => {
  const { units, read } = await mostAhead(700, 13_000)
  expect(read).toBe(700)
  expect(units).toBeGreaterThan(16)
  expect(units).toBeLessThanOrEqual(256)
})
