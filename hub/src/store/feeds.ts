import type { PositionResponse } from "../../../src/hub-client/wire.ts"
import type { Database, Query, Viewer } from "./connection.ts"
import { TENANT } from "./scope.ts"

export async function hasHistory(db: Database, tenant: number): Promise<boolean> {
  return db.asIndex(tenant, async (query) => (await query(SELECT_IF_PUSHED)).length > 0)
}

const SELECT_IF_PUSHED = `select from hub.feed where tenant = ${TENANT} and seq > 0`

/** A tenant's history and the number of its last change. */
export async function positionIn(query: Query): Promise<{ id: string; seq: number; token: string }> {
  const [row] = await query<{ id: string; seq: number }>(SELECT_POSITION)
  return { ...row!, token: `${row!.id}@${row!.seq}` }
}

const SELECT_POSITION = `select t.history as id, coalesce(f.seq, 0) as seq from hub.tenant t left join hub.feed f on f.tenant = t.id
  where t.id = ${TENANT}`

const POSITION = /^([\da-f-]{36})@(\d{1,15})$/

/**
 * The number in a position, if a history that is at `now` includes it. Otherwise, PostgreSQL went back to an earlier state, and
 * what comes after is not the same.
 */
export async function includedNumber(
  query: Query,
  now: { id: string; seq: number },
  position: string,
): Promise<number | undefined> {
  const [, id, text] = POSITION.exec(position) ?? []
  if (id === undefined) return undefined
  const until = id === now.id ? now.seq : (await query<{ until: number }>(SELECT_UNTIL, [id]))[0]?.until
  const number = Number(text)
  return until !== undefined && number <= until ? number : undefined
}

const SELECT_UNTIL = `select until from hub.earlier_history where tenant = ${TENANT} and history::text = $1`

/** Tells a laptop whether the hub still has everything that it acknowledged. */
export async function positionFor(db: Database, viewer: Viewer, position: string): Promise<PositionResponse> {
  return db.as(viewer, async (query) => {
    const now = await positionIn(query)
    return { position: now.token, known: (await includedNumber(query, now, position)) !== undefined }
  })
}

/**
 * The current number in a tenant's feed. `position` also differs after a restore, when the number may be one of before.
 *
 * `in_files` is true if the files of the hubs have the tenant's words, and `in_cluster` if a cluster does: both while a tenant moves,
 * and `leaving` if it moves to files. `followed` is how far the cluster's index is; null if it is not complete. `has_copies` is true if
 * disks of the cluster may have words, also after the tenant has left.
 */
export type Feed = {
  tenant: number
  seq: number
  position: string
  in_files: boolean
  in_cluster: boolean
  leaving: boolean
  has_copies: boolean
  followed: number | null
}

/** All feeds. The transaction can see nothing else of a tenant. */
export async function feeds(db: Database): Promise<Feed[]> {
  return db.asIndex(0, (query) => query(SELECT_FEEDS))
}

const SELECT_FEEDS = `select f.tenant, f.seq, concat_ws('@', f.written_by, f.seq) as position, coalesce(w.in_files, true) as in_files, w.tenant is not null as in_cluster, coalesce(w.leaving, false) as leaving, w.followed,
  exists (select from hub.word_copy c where c.tenant = f.tenant) as has_copies
  from hub.feed f left join hub.word_index w on w.tenant = f.tenant order by f.tenant`
