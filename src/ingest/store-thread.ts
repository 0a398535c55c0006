import { parentPort, workerData } from "node:worker_threads"
import { loadConnectors } from "../agents/connectors.ts"
import { isDexError, messageOf } from "../core/error.ts"
import { openStore } from "../store/history/sqlite-history.ts"
import { openIndex } from "../store/index/search-index.ts"
import { syncHistory } from "./sync.ts"
import type { SyncThreadOrder, ThreadReport } from "./sync-thread.ts"

// The storing half of a long sync. It starts the reading half itself, and tells the first thread how far it is.

const { machine, home, outside, options } = workerData as SyncThreadOrder
const say = (message: ThreadReport) => parentPort!.postMessage(message)
const stop = new AbortController()
parentPort!.on("message", () => stop.abort())

try {
  const store = openStore(home.history, { cacheKb: 8_000 })
  const index = openIndex(home.index)
  try {
    const loaded = await loadConnectors(outside, home.dir, { machine, kept: await store.keptSources() })
    const report = await syncHistory(
      { store, index, outside, ...loaded, machine, home },
      { ...options, signal: stop.signal, onProgress: (progress) => say({ progress }) },
    )
    say({ report })
  } finally {
    store.close()
    index.close()
  }
} catch (error) {
  say({ error: messageOf(error), ...(isDexError(error) && { code: error.code }) })
}
parentPort!.close()
