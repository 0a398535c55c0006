import { syncWithThreads } from "../ingest/sync-thread.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import { serveOrders } from "../subprocess/serve.ts"
import type { Dex } from "../tools/context.ts"
import { learnInProcess, learnNow } from "../tools/learned.ts"
import type { SubprocessWork } from "./background.ts"
import { createDex } from "./dex.ts"

// Does memory-intensive work for a process that must stay small.

const [version = ""] = process.argv.slice(2)

serveOrders<SubprocessWork, { complete: boolean }, SyncProgress>(
  async (work, { signal, emit: onProgress }) => {
    const dex = createDex({ env: process.env, cwd: process.cwd(), version, signal, onProgress })
    try {
      return work === "learn" ? await learnInProcess(dex) : await syncAndLearn(dex, signal)
    } finally {
      dex.close()
    }
  },
  { endWithinMs: 1_000 },
)

async function syncAndLearn(dex: Dex, signal: AbortSignal): Promise<{ complete: boolean }> {
  const { complete, busy } = await syncWithThreads(await dex.syncDeps(), dex.home.index, { signal })
  if (!busy && dex.hasKnowledge()) await learnNow(dex)
  return { complete }
}
