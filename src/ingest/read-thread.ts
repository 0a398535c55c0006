import { parentPort, workerData } from "node:worker_threads"
import { loadConnector } from "../agents/connectors.ts"
import type { SourceId } from "../core/conversation.ts"
import { messageOf } from "../core/error.ts"
import { createProjectFinder } from "../git/project.ts"
import { openStore } from "../store/history/sqlite-history.ts"
import { takeUnit } from "./read-unit.ts"
import type { ReadAnswer, UnitOrder } from "./reader.ts"

// The reading half of a sync: files in, redacted records and parsed conversations out. It never writes.

const { dexDir, history, outside } = workerData as { dexDir: string; history: string; outside: readonly string[] }
// It looks up one row for each unit.
const store = openStore(history, { cacheKb: 1_000 })
const projectOf = createProjectFinder()

const loaded = new Map<SourceId, ReturnType<typeof loadConnector>>()
let before = Promise.resolve()
parentPort!.on("message", (order: UnitOrder) => {
  before = before.then(async () => parentPort!.postMessage(await answerTo(order)))
})

async function answerTo({ id, source, unit, replay }: UnitOrder): Promise<ReadAnswer> {
  try {
    const connector = (await connectorOf(source))!
    return { id, write: await takeUnit(connector, unit, replay, { projectOf, dexDir, store }) }
  } catch (error) {
    return { id, error: messageOf(error) }
  }
}

/** Loaded once, when the first of its files is read. */
function connectorOf(source: SourceId): ReturnType<typeof loadConnector> {
  const known = loaded.get(source)
  if (known) return known
  const loading = loadConnector(source, outside, dexDir)
  loaded.set(source, loading)
  return loading
}
