import { createDex } from "../app/dex.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { listeners } from "./listeners.ts"
import { carryOutOrder, type Order, type OrderReport } from "./orders.ts"

// The process that reads for `dex watch`. It loads the code that reading needs and ends after a while without work, so that the
// process that waits stays small. Each order reopens the databases, because the index may have been replaced.

const PROGRESS_INTERVAL_MS = 500

const [version = ""] = process.argv.slice(2)

serveOrders<Order, OrderReport, SyncProgress>(
  async (order, { signal, emit }) => {
    let reportedAt = performance.now() // quick work shows no progress
    const onProgress = (progress: SyncProgress) => {
      if (performance.now() - reportedAt < PROGRESS_INTERVAL_MS) return
      reportedAt = performance.now()
      emit(progress)
    }
    const dex = createDex({ env: process.env, cwd: process.cwd(), version, signal, onProgress })
    try {
      return await carryOutOrder(order, dex, listeners)
    } finally {
      dex.close()
    }
  },
  { endWithinMs: 2_000 },
)
