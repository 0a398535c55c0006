import { workerData } from "node:worker_threads"
import { loadConnector } from "../agents/connectors.ts"
import type { SourceId } from "../core/conversation.ts"
import { createPlaceFinder } from "../git/project.ts"
import { openStore } from "../store/history/sqlite-history.ts"
import { serveOrders } from "../subprocess/serve.ts"
import { prepareUnit } from "./read-unit.ts"
import type { UnitRequest } from "./reader.ts"

// The main module of the thread that reads during a sync. It receives units, and returns redacted records and parsed
// conversations. It never writes to the history.

const { dexDir, history, outsideAgents } = workerData as {
  dexDir: string
  history: string
  outsideAgents: readonly string[]
}
// A small cache is enough, because rows are rarely read twice.
const store = openStore(history, { cacheKb: 1_000 })
const placeOf = createPlaceFinder()

const loaded = new Map<SourceId, ReturnType<typeof loadConnector>>()

serveOrders(async ({ source, unit, replay }: UnitRequest) =>
  prepareUnit((await connectorOf(source))!, unit, replay, { placeOf, dexDir, store }),
)

/** Loads a source's connector, only once, when its first unit is read. */
function connectorOf(source: SourceId): ReturnType<typeof loadConnector> {
  const existing = loaded.get(source)
  if (existing) return existing
  const connector = loadConnector(source, outsideAgents, dexDir)
  loaded.set(source, connector)
  return connector
}
