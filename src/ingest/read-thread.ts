import { workerData } from "node:worker_threads"
import { loadConnector } from "../agents/connectors.ts"
import type { SourceId } from "../core/conversation.ts"
import { createProjectFinder } from "../git/project.ts"
import { openStore } from "../store/history/sqlite-history.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { takeUnit } from "./read-unit.ts"
import type { UnitOrder } from "./reader.ts"

// The reading half of a sync: files in, redacted records and parsed conversations out. It never writes.

const { dexDir, history, outside } = workerData as { dexDir: string; history: string; outside: readonly string[] }
// It looks up one row for each unit.
const store = openStore(history, { cacheKb: 1_000 })
const projectOf = createProjectFinder()

const loaded = new Map<SourceId, ReturnType<typeof loadConnector>>()

serveOrders(async ({ source, unit, replay }: UnitOrder) =>
  takeUnit((await connectorOf(source))!, unit, replay, { projectOf, dexDir, store }),
)

/** Loaded once, when the first of its files is read. */
function connectorOf(source: SourceId): ReturnType<typeof loadConnector> {
  const known = loaded.get(source)
  if (known) return known
  const loading = loadConnector(source, outside, dexDir)
  loaded.set(source, loading)
  return loading
}
