import { loadConnectors } from "../agents/connectors.ts"
import { openStore } from "../store/history/sqlite-history.ts"
import { openIndex } from "../store/index/search-index.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { syncHistory } from "./sync.ts"
import type { SyncThreadOrder } from "./sync-thread.ts"
import type { SyncProgress, SyncReport } from "./sync-types.ts"

// The thread that stores during a long sync. It starts the reading thread itself, and reports progress to the main
// thread.

serveOrders<SyncThreadOrder, SyncReport, SyncProgress>(
  async ({ machine, home, outside, options }, { signal, emit: onProgress }) => {
    const store = openStore(home.history, { cacheKb: 8_000 })
    const index = openIndex(home.index)
    try {
      const loaded = await loadConnectors(outside, home.dir, { machine, stored: await store.storedSources() })
      const deps = { store, index, outside, ...loaded, machine, home }
      return await syncHistory(deps, { ...options, signal, onProgress })
    } finally {
      store.close()
      index.close()
    }
  },
)
