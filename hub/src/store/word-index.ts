import type { Ref } from "../../../src/core/ref.ts"
import type { ConversationAccess, ConversationRow } from "../../../src/store/history/store.ts"
import type { Database, Query } from "./connection.ts"
import type { TenantKey } from "./keyring.ts"
import { TENANT, TENANT_SCOPE } from "./scope.ts"
import { tenantKeyOf } from "./tenant.ts"

// The tenants whose words a cluster has, who writes their indexes, and how far these are.

/** The right to write a tenant's index. The number increases each time that another process gets it. */
export type Lease = { tenant: number; lease: number; holder: string }

/** How long a lease lasts if nobody renews it, in seconds. */
const LEASE_SECONDS = 10

const IS_HELD = `tenant = ${TENANT} and lease = $1 and holder = $2`
const UNTIL = "now() + $3 * interval '1 second'"
const TAKE = `update hub.word_index set lease = lease + 1, holder = $1, until = now() + $2 * interval '1 second'
  where tenant = ${TENANT} and (until < now() or holder = $1) returning lease`
const RENEW = `update hub.word_index set until = ${UNTIL} where ${IS_HELD} returning lease`
const RELEASE = `update hub.word_index set until = '-infinity' where ${IS_HELD}`
const SAVE_FOLLOWED = `update hub.word_index set followed = $3, in_files = leaving or (in_files and $3::bigint is null) where ${IS_HELD} returning lease`
const SELECT_FOLLOWED = `select followed, leaving from hub.word_index where tenant = ${TENANT} and (leaving or not in_files)`

/** Returns undefined if another process has the lease. */
export async function takeLease(db: Database, tenant: number, holder: string): Promise<Lease | undefined> {
  const [row] = await db.asIndex(tenant, (query) => query<{ lease: number }>(TAKE, [holder, LEASE_SECONDS]))
  return row && { tenant, holder, lease: row.lease }
}

/** Returns false if the lease is lost. */
export async function renewLease(db: Database, { tenant, lease, holder }: Lease): Promise<boolean> {
  return (await db.asIndex(tenant, (query) => query(RENEW, [lease, holder, LEASE_SECONDS]))).length > 0
}

export async function releaseLease(db: Database, { tenant, lease, holder }: Lease): Promise<void> {
  await db.asIndex(tenant, (query) => query(RELEASE, [lease, holder]))
}

/** Publishes `followed`, the newest change that searches find, or null if there is no complete index. Returns false if the lease is lost. */
export async function saveFollowed(
  db: Database,
  { tenant, lease, holder }: Lease,
  followed: number | null,
): Promise<boolean> {
  return (await db.asIndex(tenant, (query) => query(SAVE_FOLLOWED, [lease, holder, followed]))).length > 0
}

/**
 * How far a tenant's index is; null if it is not complete. Undefined if the files of the hubs have the tenant's words. `leaving` is
 * true if a hub that has built its file uses that.
 */
export async function clusterStateOf(
  db: Database,
  tenant: number,
): Promise<{ followed: number | null; leaving: boolean; key: TenantKey } | undefined> {
  return db.asIndex(tenant, async (query) => {
    const [row] = await query<{ followed: number | null; leaving: boolean }>(SELECT_FOLLOWED)
    return row && { ...row, key: await tenantKeyOf(db, query) }
  })
}

/** Gives a tenant's words to the cluster. Until its index is complete, the files of the hubs are searched. `query` runs as the owner of the tables. */
export async function moveToCluster(query: Query, tenant: number): Promise<void> {
  await query(
    "insert into hub.word_index (tenant) values ($1) on conflict (tenant) do update set leaving = false, in_files = word_index.followed is null",
    [tenant],
  )
}

/**
 * Gives a tenant's words back to the files of the hubs. The first time, each hub builds its file, and the cluster stays. The second
 * time, the cluster loses the words. Returns the state after that. `query` runs as the owner of the tables.
 */
export async function moveToFiles(query: Query, tenant: number): Promise<"building" | "files"> {
  const ended = await query("delete from hub.word_index where tenant = $1 and leaving returning tenant", [tenant])
  if (ended.length > 0) return "files"
  const begun = await query(
    "update hub.word_index set leaving = true, in_files = true where tenant = $1 returning tenant",
    [tenant],
  )
  return begun.length > 0 ? "building" : "files"
}

export async function openTenantKey(db: Database, tenant: number): Promise<TenantKey> {
  return db.asIndex(tenant, (query) => tenantKeyOf(db, query))
}

const SELECT_REFS = `select c.id, m.name as owner, c.source, c.native_id from
  (select * from hub.conversation where ${TENANT_SCOPE} and id = any ($1)) c
  join hub.member m on m.tenant = c.tenant and m.id = c.author`
const SELECT_NUMBERS = `select c.id from unnest($1::text[], $2::text[], $3::text[]) as one (owner, source, native_id)
  join hub.member m on m.tenant = ${TENANT} and m.name = one.owner
  join hub.conversation c on c.tenant = m.tenant and c.author = m.id and c.source = one.source and c.native_id = one.native_id`
const SELECT_PROJECT_NUMBERS = `select id from hub.project where tenant = ${TENANT} and key = any ($1)`

/** The refs of conversations, by their numbers. Those that no longer exist are missing. */
export async function refsOfNumbers(
  db: Database,
  tenant: number,
  conversations: readonly number[],
): Promise<Map<number, Ref>> {
  const rows = await db.asIndex(tenant, (query) =>
    query<{ id: number; owner: string; source: string; native_id: string }>(SELECT_REFS, [conversations]),
  )
  return new Map(rows.map(({ id, owner, source, native_id }) => [id, { owner, source, id: native_id }]))
}

/** The numbers of conversations, without those that do not exist. A ref without an owner names none. */
export async function numbersOfRefs(db: Database, tenant: number, refs: readonly Ref[]): Promise<number[]> {
  // PostgreSQL cannot store NUL in a text.
  const known = refs.filter(({ owner, source, id }) => owner !== undefined && !`${owner}${source}${id}`.includes("\0"))
  const columns = [known.map(({ owner }) => owner), known.map(({ source }) => source), known.map(({ id }) => id)]
  const rows = await db.asIndex(tenant, (query) => query<{ id: number }>(SELECT_NUMBERS, columns))
  return rows.map(({ id }) => id)
}

export async function numbersOfProjects(db: Database, tenant: number, keys: readonly string[]): Promise<number[]> {
  const known = keys.filter((key) => !key.includes("\0"))
  const rows = await db.asIndex(tenant, (query) => query<{ id: number }>(SELECT_PROJECT_NUMBERS, [known]))
  return rows.map(({ id }) => id)
}

const COUNTED_PAGE = 5_000
const SELECT_COUNTED = `select id, source, native_id, kind, author, project, visibility, message_count - copied_count as messages
  from hub.conversation where ${TENANT_SCOPE} and id > $1 order by id limit $2`
type CountedRow = ConversationAccess &
  Pick<ConversationRow, "kind"> & { id: number; messages: number } & {
    source: string
    native_id: string
  }

/** Every conversation that can be found, with what its documents have in common, and how many messages it has. */
export async function* countedConversations(db: Database, tenant: number) {
  for (let after = 0; ; ) {
    const rows = await db.asIndex(tenant, (query) => query<CountedRow>(SELECT_COUNTED, [after, COUNTED_PAGE]))
    for (const { id, source, native_id, kind, author, project, visibility, messages } of rows)
      yield { id, messages, kind, ref: { source, id: native_id }, access: { author, project, visibility } }
    if (rows.length < COUNTED_PAGE) return
    after = rows.at(-1)!.id
  }
}

const INDEX_AGAIN = `with feed as (update hub.feed set seq = seq + cardinality($2::bigint[]) where tenant = $1 returning seq)
  insert into hub.change (tenant, seq, conversation, deleted)
    select $1, feed.seq - cardinality($2::bigint[]) + one.n, one.id, not exists (select from hub.conversation c where c.tenant = $1 and c.id = one.id)
    from feed, unnest($2::bigint[]) with ordinality as one (id, n)`

/**
 * Announces these conversations as changed. The writer of the index loses its lease, so that the next one reads from the index what
 * is in it. `query` runs as the owner of the tables, in one transaction.
 */
export async function indexAgain(query: Query, tenant: number, conversations: readonly number[]): Promise<void> {
  await query("update hub.word_index set holder = null, until = '-infinity' where tenant = $1", [tenant])
  await query(INDEX_AGAIN, [tenant, conversations])
}
