import type { HistoryReader } from "../../../src/store/history/store.ts"
import type { Database, Query, Viewer } from "./connection.ts"
import type { TenantKey } from "./keyring.ts"
import { beginReading, openHubHistory, type ReaderOptions, type Transaction } from "./reader.ts"
import { MEMBER_SCOPE, TENANT_SCOPE } from "./scope.ts"
import { tenantKeyOf } from "./tenant.ts"

/** Opens the history as one person may read it. */
export function openViewerHistory(db: Database, viewer: Viewer, options: Partial<ReaderOptions> = {}): HistoryReader {
  return openHubHistory(
    (work) => db.as(viewer, async (query) => work(await beginTransaction(db, query))),
    withMemberScope(options),
  )
}

/** Opens the history as one person may read it, for one question. It uses one transaction, and reads nothing twice. */
export function withQuestionHistory<T>(
  db: Database,
  viewer: Viewer,
  options: Partial<ReaderOptions>,
  work: (history: HistoryReader) => Promise<T>,
): Promise<T> {
  return db.as(viewer, async (query) => {
    const transaction = await beginTransaction(db, query)
    return work(openHubHistory((read) => read(transaction), withMemberScope(options)))
  })
}

export function openTenantHistory(db: Database, tenant: number): HistoryReader {
  return openHubHistory((work) => db.asIndex(tenant, async (query) => work(await beginTransaction(db, query))), {
    scope: TENANT_SCOPE,
  })
}

/**
 * Opens a tenant's history for the follower of its changes. Each statement is a transaction of its own, so that none is long.
 * Short conversations are read together, once for each batch of changes.
 */
export function openFollowedHistory(db: Database, tenant: number): HistoryReader {
  const query: Query = (text, values) => db.asIndex(tenant, (runQuery) => runQuery(text, values))
  let key: Promise<TenantKey> | undefined
  let batch: Transaction | undefined
  const history = openHubHistory(
    async (work) => {
      key ??= tenantKeyOf(db, query)
      batch ??= beginReading(query, await key)
      return work(batch)
    },
    { scope: TENANT_SCOPE },
  )
  return {
    ...history,
    changes: async (after, limit) => {
      batch = undefined
      const feed = await history.changes(after, limit)
      await history.readAhead?.(feed.changes.flatMap(({ ref }) => ref ?? []))
      return feed
    },
  }
}

async function beginTransaction(db: Database, query: Query): Promise<Transaction> {
  return beginReading(query, await tenantKeyOf(db, query))
}

function withMemberScope({ self, scope = MEMBER_SCOPE }: Partial<ReaderOptions>): ReaderOptions {
  return { scope, self }
}
