import { loadConnector } from "../agents/connectors.ts"
import { type UnknownTables, unknownTables } from "../agents/kit/foreign-sqlite.ts"
import type { SourceId } from "../core/conversation.ts"
import type { SourceReport } from "../store/history/store.ts"
import type { Dex } from "./context.ts"

/** Finds unknown tables in the agents' databases. Loads only the connectors that read those databases. */
export async function unknownTablesOf(dex: Dex, reports: SourceReport[]): Promise<Map<SourceId, UnknownTables[]>> {
  const tablesBySource = new Map<SourceId, UnknownTables[]>()
  for (const { source, databases = [] } of reports) {
    if (databases.length === 0) continue
    const knownTables = (await loadConnector(source, [], dex.home.dir))?.tables
    const databasesWithUnknown = knownTables ? databases.flatMap((path) => unknownTables(path, knownTables) ?? []) : []
    if (databasesWithUnknown.length > 0) tablesBySource.set(source, databasesWithUnknown)
  }
  return tablesBySource
}
