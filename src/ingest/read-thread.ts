import { workerData } from "node:worker_threads"
import { loadConnector } from "../agents/connectors.ts"
import type { SourceId } from "../core/conversation.ts"
import { createProjectFinder } from "../git/project.ts"
import { openStore } from "../store/history/sqlite-history.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { prepareUnit } from "./read-unit.ts"
import type { UnitOrder } from "./reader.ts"

// The thread that reads during a sync: it receives files and returns redacted records and parsed conversations. It never writes.

const { dexDir, history, outside } = workerData as { dexDir: string; history: string; outside: readonly string[] }
// The cache is small, because only one row per unit is looked up.
const store = openStore(history, { cacheKb: 1_000 })
const projectOf = createProjectFinder()

const loaded = new Map<SourceId, ReturnType<typeof loadConnector>>()

serveOrders(async ({ source, unit, replay }: UnitOrder) =>
  prepareUnit((await connectorOf(source))!, unit, replay, { projectOf, dexDir, store }),
)

/** Loads a source's connector, only once, when its first unit is read. */
function connectorOf(source: SourceId): ReturnType<typeof loadConnector> {
  const existing = loaded.get(source)
  if (existing) return existing
  const connector = loadConnector(source, outside, dexDir)
  loaded.set(source, connector)
  return connector
}
