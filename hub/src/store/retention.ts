import { recordAudit } from "./audit.ts"
import type { Query, Viewer } from "./connection.ts"
import type { Keyring } from "./keyring.ts"
import { asOwner } from "./owner.ts"
import { requireProject } from "./people.ts"
import { forgetIn } from "./push.ts"

/** The number of conversations per transaction, so that pushes wait only for a moment. */
const CONVERSATIONS_PER_TRANSACTION = 100

const SELECT_EXPIRED = `select c.tenant, c.author as member, m.role, m.name, c.source, c.native_id as id, t.slug, t.wrapped_key
  from hub.conversation c join hub.project p on p.tenant = c.tenant and p.id = c.project
  join hub.member m on m.tenant = c.tenant and m.id = c.author join hub.tenant t on t.id = c.tenant
  where c.rev > 0 and p.retention_days is not null
    and coalesce(c.ended_at, (extract(epoch from c.received_at) * 1000)::bigint) < $1 - p.retention_days * 86400000::bigint
  order by c.tenant, c.author, c.id limit $2`

type ExpiredConversation = Viewer & { source: string; id: string; slug: string; wrapped_key: Buffer }

/**
 * Forgets conversations that have exceeded their project's retention period, even if their authors have left. Returns the number
 * of forgotten conversations.
 */
export async function forgetExpired(owner: string, keys: Keyring, now = Date.now()): Promise<number> {
  let total = 0
  for (;;) {
    const count = await asOwner(owner, async (query) => forgetSome(query, keys, now))
    total += count
    if (count < CONVERSATIONS_PER_TRANSACTION) return total
  }
}

async function forgetSome(query: Query, keys: Keyring, now: number): Promise<number> {
  const rows = await query<ExpiredConversation>(SELECT_EXPIRED, [now, CONVERSATIONS_PER_TRANSACTION])
  const rowsByAuthor = Map.groupBy(rows, ({ tenant, member }) => `${tenant} ${member}`)
  for (const authorRows of rowsByAuthor.values()) {
    const { slug, wrapped_key, tenant, member, role, name } = authorRows[0]!
    await forgetIn(
      query,
      keys.tenantKey({ slug, wrapped_key }),
      { tenant, member, role, name },
      authorRows,
      "retention",
    )
  }
  return rows.length
}

/** Sets how long a project keeps conversations. Without `days`, it keeps everything. */
export async function setRetention(query: Query, tenant: number, key: string, days: number | undefined): Promise<void> {
  await requireProject(query, tenant, key)
  await query("update hub.project set retention_days = $3 where tenant = $1 and key = $2", [tenant, key, days ?? null])
  await recordAudit(query, { tenant }, { action: "keep", target: key, detail: { days: days ?? "forever" } })
}
