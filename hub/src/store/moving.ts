import { recordAudit } from "./audit.ts"
import type { Query } from "./connection.ts"
import { SILENT_S } from "./shards.ts"

/** A row of the list of shards for the operator. */
export type ListedShard = {
  tenant: string
  shard: number
  projects: number
  messages: number
  node: string | null
  node_silent_s: number | null
  moving_to: string | null
  moving_since: Date | null
  moving_to_silent_s: number | null
}

const LIST = `select t.slug as tenant, s.id as shard, count(p.id)::int as projects,
    coalesce(sum((select sum(c.message_count) from hub.conversation c where c.tenant = p.tenant and c.project = p.id)), 0)::bigint as messages,
    s.node, extract(epoch from now() - has.seen_at)::int as node_silent_s,
    s.moving_to, s.moving_since, extract(epoch from now() - gets.seen_at)::int as moving_to_silent_s
  from hub.shard s join hub.tenant t on t.id = s.tenant left join hub.project p on p.tenant = s.tenant and p.shard = s.id
    left join hub.node has on has.name = s.node left join hub.node gets on gets.name = s.moving_to
  group by s.tenant, s.id, t.slug, has.seen_at, gets.seen_at order by t.slug, s.id`

export async function listShards(query: Query): Promise<ListedShard[]> {
  return query<ListedShard>(LIST)
}

/** Finds a shard by the tenant's name, or by its number, which `dex-hub check` prints. */
const NAMED = `select s.tenant, t.slug, s.id as shard, s.node, s.moving_to from hub.shard s join hub.tenant t on t.id = s.tenant
  where (t.slug = $1 or t.id::text = $1) and s.id::text = $2 order by t.slug = $1 desc limit 1`
const NODE = "select url, extract(epoch from now() - seen_at)::int as silent_s from hub.node where name = $1"
const MOVE = "update hub.shard set moving_to = $3, moving_since = now() where tenant = $1 and id = $2"
const STAY = "update hub.shard set moving_to = null, moving_since = null where tenant = $1 and id = $2"

/**
 * Starts to move a shard: the node builds it, and then takes it over. `stays` is true if the shard is already on that node; a
 * pending move is then cancelled.
 */
export async function moveShard(
  query: Query,
  shardName: string,
  node: string,
): Promise<{ from: string | null; stays: boolean }> {
  const [, tenant, id] = /^(.+)\/(\d{1,9})$/.exec(shardName) ?? []
  const [shard] = tenant === undefined ? [] : await query<NamedShard>(NAMED, [tenant, id])
  if (!shard)
    throw new Error(`There is no shard ${JSON.stringify(shardName)}. \`dex-hub shard list\` shows them: acme/0.`)
  const record = () => {
    const target = `${shard.slug}/${shard.shard}`
    const detail = { from: shard.node, to: node }
    return recordAudit(query, { tenant: shard.tenant }, { action: "shard_move", target, detail })
  }
  if (shard.node === node) {
    await query(STAY, [shard.tenant, shard.shard])
    if (shard.moving_to !== null) await record()
    return { from: node, stays: true }
  }
  const [nodeRow] = await query<{ url: string | null; silent_s: number }>(NODE, [node])
  if (!nodeRow) throw new Error(`There is no node ${JSON.stringify(node)}. Start one with DEX_HUB_NODE=${node}.`)
  if (nodeRow.url === null) throw new Error(`The other nodes cannot reach ${node}. Start it with DEX_HUB_NODE_URL.`)
  if (nodeRow.silent_s > SILENT_S)
    throw new Error(`${node} was last seen ${nodeRow.silent_s} seconds ago. Start it, then move the shard again.`)
  await query(MOVE, [shard.tenant, shard.shard, node])
  await record()
  return { from: shard.node, stays: false }
}

type NamedShard = { tenant: number; slug: string; shard: number; node: string | null; moving_to: string | null }
