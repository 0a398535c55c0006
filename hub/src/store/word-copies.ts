import type { Database, Query } from "./connection.ts"
import { TENANT } from "./scope.ts"

// The disks of a cluster's nodes that may have a copy of a tenant's words. A receipt waits for each of them.

/** A node with a copy. Everything that was removed up to the number `clean` of the feed is gone from its disk. */
export type WordCopy = { node: string; name: string; clean: number }

const SELECT_COPIES = `select node, name, clean from hub.word_copy where tenant = ${TENANT}`
const ADD_COPIES = `insert into hub.word_copy (tenant, node, name) select ${TENANT}, one.node, one.name
  from unnest($1::text[], $2::text[]) as one (node, name) on conflict (tenant, node) do nothing`
const SAVE_CLEAN = `update hub.word_copy set clean = greatest(clean, $2) where tenant = ${TENANT} and node = any ($1)`
const REMOVE_COPIES = `delete from hub.word_copy where tenant = ${TENANT} and node = any ($1)`
const CLOSE_RECEIPTS = `update hub.receipt set words_gone_at = now() where tenant = ${TENANT} and words_gone_at is null
  and seq <= coalesce((select min(clean) from hub.word_copy where tenant = ${TENANT}), $1)`
const SELECT_OPEN = `select max(seq) as seq from hub.receipt where tenant = ${TENANT} and words_gone_at is null and seq <= $1`

export async function wordCopies(db: Database, tenant: number): Promise<WordCopy[]> {
  return db.asIndex(tenant, (query) => query<WordCopy>(SELECT_COPIES))
}

/** Remembers nodes before a word is written to them. */
export async function addCopies(db: Database, tenant: number, nodes: ReadonlyMap<string, string>): Promise<void> {
  await db.asIndex(tenant, (query) => query(ADD_COPIES, [[...nodes.keys()], [...nodes.values()]]))
}

/** The number of the newest removal up to `seq` whose receipt waits for disks. */
export async function openRemoval(db: Database, tenant: number, seq: number): Promise<number | undefined> {
  const [row] = await db.asIndex(tenant, (query) => query<{ seq: number | null }>(SELECT_OPEN, [seq]))
  return row?.seq ?? undefined
}

/**
 * Records that `clean` nodes have nothing that was removed up to `seq`, and that `without` have no copy at all. Closes the receipts
 * that now wait for no node.
 */
export async function saveClean(
  db: Database,
  tenant: number,
  { seq, clean, without }: { seq: number; clean: string[]; without: string[] },
): Promise<void> {
  await db.asIndex(tenant, async (query) => {
    await query(SAVE_CLEAN, [clean, seq])
    await query(REMOVE_COPIES, [without])
    await query(CLOSE_RECEIPTS, [seq])
  })
}

/** Stops waiting for a disk that no longer exists. Returns false if nothing waits for it. `query` runs as the owner of the tables. */
export async function removeLostDisk(query: Query, tenant: number, name: string): Promise<boolean> {
  const rows = await query("delete from hub.word_copy where tenant = $1 and name = $2 returning node", [tenant, name])
  return rows.length > 0
}
