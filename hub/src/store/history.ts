import type { HistoryReader } from "../../../src/store/history/store.ts"
import type { Database, Viewer } from "./connection.ts"
import { openHubHistory, type ReaderOptions } from "./reader.ts"
import { tenantKeyOf } from "./tenant.ts"

/** What one person may read. There is none without a person. */
export function openViewerHistory(db: Database, viewer: Viewer, options?: ReaderOptions): HistoryReader {
  return openHubHistory((work) => db.as(viewer, async (query) => work(query, await tenantKeyOf(db, query))), options)
}

/** All of a tenant, for its search shards. */
export function openTenantHistory(db: Database, tenant: number): HistoryReader {
  return openHubHistory((work) => db.asIndex(tenant, async (query) => work(query, await tenantKeyOf(db, query))))
}
