import { loadConnectors } from "../agents/connectors.ts"
import { openStore } from "../store/history/sqlite-history.ts"
import { openIndex } from "../store/index/search-index.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { syncHistory } from "./sync.ts"
import type { SyncThreadRequest } from "./sync-thread.ts"
import type { SyncProgress, SyncReport } from "./sync-types.ts"

// The main module of the thread that stores during a long sync. It starts the reading thread and reports progress to the main
// thread.

serveOrders<SyncThreadRequest, SyncReport, SyncProgress>(
  async ({ machine, home, outsideAgents, options }, { signal, emit: onProgress }) => {
    const store = openStore(home.history, { cacheKb: 8_000 })
    const index = openIndex(home.index)
    try {
      const loaded = await loadConnectors(outsideAgents, home.dir, { machine, stored: await store.storedSources() })
      const deps = { store, index, outsideAgents, ...loaded, machine, home }
      return await syncHistory(deps, { ...options, signal, onProgress })
    } finally {
      store.close()
      index.close()
    }
  },
)
