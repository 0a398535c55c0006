import type { Database, Query } from "./connection.ts"
import { TENANT } from "./scope.ts"

/** A shard that has this many messages gets no further project. A project stays in its shard. */
export const SHARD_MESSAGES = 5_000_000

export type PlacedShard = { tenant: number; shard: number; node: string | null; moving_to: string | null }
/** `url` is the address at which others reach the node. */
export type ShardToAsk = { shard: number; node: string | null; url: string | null }
export type ShardNode = { name: string; url?: string }

/** Puts a project into a shard. Runs in a transaction of its tenant. */
export async function placeProject(query: Query, project: number, maxMessages = SHARD_MESSAGES): Promise<void> {
  await query("select hub.place_project($1, $2)", [project, maxMessages])
}

/** Puts a project into a shard for an operator, whose transactions have no tenant. */
export async function placeProjectAsOperator(query: Query, tenant: number, project: number): Promise<void> {
  await query("select hub.place_project_of($1, $2, $3)", [tenant, project, SHARD_MESSAGES])
}

export async function addFirstShard(query: Query, tenant: number): Promise<void> {
  await query("insert into hub.shard (tenant, id, node) values ($1, 0, hub.node_with_room())", [tenant])
}

/** The shards of one tenant, in order. */
export async function shardsOf(db: Database, tenant: number): Promise<ShardToAsk[]> {
  return db.asIndex(tenant, (query) => query<ShardToAsk>(TO_ASK))
}

const TO_ASK = `select s.id as shard, s.node, n.url from hub.shard s left join hub.node n on n.name = s.node
  where s.tenant = ${TENANT} order by s.id`

/** The shards that have a project whose key contains `part`. */
export async function shardsWithProject(db: Database, tenant: number, part: string): Promise<Set<number>> {
  const rows = await db.asIndex(tenant, (query) => query<{ shard: number }>(WITH_PROJECT, [part]))
  return new Set(rows.map(({ shard }) => shard))
}

const WITH_PROJECT = `select distinct shard from hub.project where tenant = ${TENANT} and position(lower($1) in lower(key)) > 0`

/** Undefined if there is no project with this key. */
export async function shardOfProject(db: Database, tenant: number, key: string): Promise<number | undefined> {
  const sql = `select shard from hub.project where tenant = ${TENANT} and key = $1`
  return (await db.asIndex(tenant, (query) => query<{ shard: number }>(sql, [key])))[0]?.shard
}

/** The shards of all tenants. The transaction can see only the numbers of shards and the names of nodes. */
export async function allShards(db: Database): Promise<PlacedShard[]> {
  return db.asIndex(0, (query) =>
    query<PlacedShard>("select tenant, id as shard, node, moving_to from hub.shard order by tenant, id"),
  )
}

/** Records that a node is running. It takes the shards that no node has. */
export async function nodeSeen(db: Database, { name, url }: ShardNode): Promise<void> {
  await db.asIndex(0, (query) => query("select hub.node_seen($1, $2)", [name, url ?? null]))
}

/** Records that a node has built the shard that was moving to it. From this statement on, the node answers from it. */
export async function shardArrived(db: Database, { tenant, shard }: ShardKey, node: string): Promise<void> {
  await db.asIndex(0, (query) => query("select hub.shard_arrived($1, $2, $3)", [tenant, shard, node]))
}

type ShardKey = { tenant: number; shard: number }

/** `silent_s` is the number of seconds since the node was last seen. */
export type SeenNode = { name: string; url: string | null; silent_s: number }

/** The number of seconds without a report after which a node is considered down. */
export const SILENT_S = 60

export async function nodesSeen(db: Database): Promise<SeenNode[]> {
  return db.asIndex(0, (query) => query<SeenNode>(NODES))
}

const NODES = "select name, url, extract(epoch from now() - seen_at)::int as silent_s from hub.node order by name"
