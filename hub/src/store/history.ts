import type { HistoryReader } from "../../../src/store/history/store.ts"
import type { Database, Query, Viewer } from "./connection.ts"
import type { TenantKey } from "./keyring.ts"
import { beginReading, openHubHistory, type ReaderOptions, type Transaction } from "./reader.ts"
import { MEMBER_SCOPE, SHARD_SCOPE, TENANT_SCOPE } from "./scope.ts"
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
 * Opens the contents of one shard of a tenant, for the follower of its changes. Each statement is a transaction of its own, so
 * that none is long. Rows and heads of conversations are read once for each batch of changes.
 */
export function openShardHistory(db: Database, tenant: number, shard: number): HistoryReader {
  const query: Query = (text, values) => db.asIndex(tenant, (ask) => ask(text, values), shard)
  let key: Promise<TenantKey> | undefined
  let batch: Transaction | undefined
  const history = openHubHistory(
    async (work) => {
      key ??= tenantKeyOf(db, query)
      batch ??= beginReading(query, await key)
      return work({ ...batch, chunks: new Map() })
    },
    { scope: SHARD_SCOPE },
  )
  return {
    ...history,
    changes: (after, limit) => {
      batch = undefined
      return history.changes(after, limit)
    },
  }
}

async function beginTransaction(db: Database, query: Query): Promise<Transaction> {
  return beginReading(query, await tenantKeyOf(db, query))
}

function withMemberScope({ self, scope = MEMBER_SCOPE }: Partial<ReaderOptions>): ReaderOptions {
  return { scope, self }
}
