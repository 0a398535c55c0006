import type { HistoryReader } from "../../../src/store/history/store.ts"
import type { Database, Viewer } from "./connection.ts"
import { openHubHistory, type ReaderOptions } from "./reader.ts"
import { MEMBER_SCOPE, TENANT_SCOPE } from "./scope.ts"
import { tenantKeyOf } from "./tenant.ts"

/** What one person may read. There is none without a person. */
export function openViewerHistory(
  db: Database,
  viewer: Viewer,
  { self, scope = MEMBER_SCOPE }: Partial<ReaderOptions> = {},
): HistoryReader {
  const reading = openReading(db, viewer)
  return openHubHistory(reading, { scope, ...(self !== undefined && { self }) })
}

function openReading(db: Database, viewer: Viewer): Parameters<typeof openHubHistory>[0] {
  return (work) => db.as(viewer, async (query) => work(query, await tenantKeyOf(db, query)))
}

/** All of a tenant, for its search shards. */
export function openTenantHistory(db: Database, tenant: number): HistoryReader {
  return openHubHistory((work) => db.asIndex(tenant, async (query) => work(query, await tenantKeyOf(db, query))), {
    scope: TENANT_SCOPE,
  })
}
