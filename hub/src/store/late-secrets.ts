import type { Database, Query, Viewer } from "./connection.ts"
import { feeds } from "./feeds.ts"
import { unseal } from "./keys.ts"
import { SEAL_PURPOSES, type SealedHead, unsealJson } from "./sealed.ts"
import { tenantKeyOf } from "./tenant.ts"

// Newer rules may find secrets in stored conversations. Nothing is edited: if a rule finds something, only the author can read
// the conversation until they send a revision without it.

/** A scan of stored conversations by the rules of one version. */
export type Scan = {
  version: number
  /** The names of the rules that match. */
  secretsIn(values: readonly object[]): string[]
  /** The names of the rules that match in a packed chunk. */
  rulesIn(data: Uint8Array): Promise<string[]>
}

export type Quarantined = { source: string; id: string; at: string; rules: string[] }

type DueConversation = { id: number; rev: number; wrapped: Buffer; head: Buffer }

/** The number of a lock that lets one node work at a time. */
const LOCK = 7_238_453

const DUE = `select c.id, c.rev, c.head, k.wrapped from hub.conversation c
  join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id
  where c.tenant = $1 and c.rev > 0 and c.quarantined_at is null and c.scanned < $2 order by c.seq desc limit $3`
const CHUNKS =
  "select hash, data from hub.chunk where tenant = $1 and conversation = $2 and (scanned < $3 or found is not null)"

/**
 * Scans the newest conversations of each tenant that were not scanned by these rules yet. Returns how many were scanned and how
 * many were hidden.
 */
export async function scanAgain(
  db: Database,
  scan: Scan,
  maxPerTenant = 20,
): Promise<{ scanned: number; quarantined: number }> {
  const counts = { scanned: 0, quarantined: 0 }
  for (const { tenant } of await feeds(db))
    await db.asIndex(tenant, async (query) => {
      const [lock] = await query<{ locked: boolean }>("select pg_try_advisory_xact_lock($1, $2) as locked", [
        LOCK,
        tenant,
      ])
      if (!lock!.locked) return
      const key = await tenantKeyOf(db, query)
      for (const conversation of await query<DueConversation>(DUE, [tenant, scan.version, maxPerTenant])) {
        const rules = await scanOne(query, tenant, conversation, key.conversationKey(conversation.wrapped), scan)
        counts.scanned++
        if (rules.length > 0) counts.quarantined++
      }
    })
  return counts
}

async function scanOne(
  query: Query,
  tenant: number,
  { id, rev, head }: DueConversation,
  key: Buffer,
  scan: Scan,
): Promise<string[]> {
  const rows = await query<{ hash: Buffer; data: Buffer }>(CHUNKS, [tenant, id, scan.version])
  const chunks = await Promise.all(
    rows.map(async ({ hash, data }) => ({
      hash,
      rules: await scan.rulesIn(unseal(key, data, `${SEAL_PURPOSES.chunk} ${id}`)),
    })),
  )
  const { messages: _, chunks: __, ...fields } = unsealJson<SealedHead>(key, head, `${SEAL_PURPOSES.head} ${id}`)
  const rules = [...new Set([...scan.secretsIn([fields]), ...chunks.flatMap((chunk) => chunk.rules)])]
  const hashesWithSecrets = chunks.filter((chunk) => chunk.rules.length > 0).map(({ hash }) => hash)
  await query("select hub.mark_scanned($1, $2, $3, $4, $5, $6)", [
    ...[id, rev, scan.version, chunks.map(({ hash }) => hash), hashesWithSecrets, rules],
  ])
  return rules
}

/** The member's conversations that are hidden from everybody else. */
export async function quarantinedOf(db: Database, viewer: Viewer): Promise<Quarantined[]> {
  const rows = await db.as(viewer, (query) =>
    query<{ source: string; native_id: string; quarantined_at: Date; quarantined_by: string[] }>(
      `select source, native_id, quarantined_at, quarantined_by from hub.conversation
       where tenant = $1 and author = $2 and quarantined_at is not null order by quarantined_at desc limit 100`,
      [viewer.tenant, viewer.member],
    ),
  )
  return rows.map(({ source, native_id, quarantined_at, quarantined_by }) => ({
    ...{ source, id: native_id, at: quarantined_at.toISOString(), rules: quarantined_by },
  }))
}
