import type { Database, Viewer } from "./connection.ts"
import { feeds } from "./feeds.ts"
import { unseal } from "./keys.ts"
import { SEAL_PURPOSES, type SealedHead, unsealJson } from "./sealed.ts"
import { tenantKeyOf } from "./tenant.ts"

// Newer rules may find secrets in stored conversations. Nothing is edited: if a rule finds something, only the author can read
// the conversation until they send a revision without it.

/** A scan of stored conversations by the rules of one version. */
export type Scan = {
  version: number
  /** The names of the rules that match something in the values. */
  secretRulesIn(values: readonly object[]): string[]
  /** Does the same for the messages of a packed chunk. */
  secretRulesInChunk(data: Uint8Array): Promise<string[]>
}

export type Quarantined = { source: string; id: string; at: string; rules: string[] }

type DueConversation = { id: number; rev: number; wrapped: Buffer; head: Buffer }

/** The number of a lock that lets only one node at a time scan a tenant. */
const LOCK = 7_238_453

const SELECT_DUE = `select c.id, c.rev, c.head, k.wrapped from hub.conversation c
  join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id
  where c.tenant = $1 and c.rev > 0 and c.quarantined_at is null and c.scanned < $2 and c.id <> all ($4)
  order by c.seq desc limit $3`
const SELECT_CHUNKS =
  "select hash, data from hub.chunk where tenant = $1 and conversation = $2 and (scanned < $3 or found is not null)"

/**
 * `failed` are conversations that could not be scanned, for example because a chunk is damaged. They stay due, and as readable as
 * they were.
 */
export type ScanResult = {
  scanned: number
  quarantined: number
  failed: { conversation: number; error: unknown }[]
}

/**
 * Scans the newest conversations of each tenant that were not scanned by these rules yet, without those in `except`. Returns how
 * many were scanned and how many were hidden.
 */
export async function scanAgain(
  db: Database,
  scan: Scan,
  { maxPerTenant = 20, except = [] }: { maxPerTenant?: number; except?: readonly number[] } = {},
): Promise<ScanResult> {
  const result: ScanResult = { scanned: 0, quarantined: 0, failed: [] }
  for (const { tenant } of await feeds(db))
    await db.asIndex(tenant, async (query) => {
      const [lock] = await query<{ locked: boolean }>("select pg_try_advisory_xact_lock($1, $2) as locked", [
        LOCK,
        tenant,
      ])
      if (!lock!.locked) return
      const key = await tenantKeyOf(db, query)
      const due = await query<DueConversation>(SELECT_DUE, [tenant, scan.version, maxPerTenant, except])
      for (const conversation of due) {
        const { id, rev, wrapped } = conversation
        const chunks = await query<StoredChunk>(SELECT_CHUNKS, [tenant, id, scan.version])
        let found: FoundSecrets
        try {
          found = await findSecrets(conversation, chunks, key.conversationKey(wrapped), scan)
        } catch (error) {
          result.failed.push({ conversation: id, error })
          continue
        }
        const { rules, hashes, hashesWithSecrets } = found
        await query("select hub.mark_scanned($1, $2, $3, $4, $5, $6)", [
          ...[id, rev, scan.version, hashes, hashesWithSecrets, rules],
        ])
        result.scanned++
        if (rules.length > 0) result.quarantined++
      }
    })
  return result
}

type StoredChunk = { hash: Buffer; data: Buffer }
type FoundSecrets = { rules: string[]; hashes: Buffer[]; hashesWithSecrets: Buffer[] }

/**
 * Scans one chunk at a time, because the checks of pushed chunks come first. Throws if a chunk cannot be scanned, unless a rule
 * finds something in the others.
 */
async function findSecrets(
  { id, head }: DueConversation,
  chunks: StoredChunk[],
  key: Buffer,
  scan: Scan,
): Promise<FoundSecrets> {
  const { messages: _, chunks: __, ...fields } = unsealJson<SealedHead>(key, head, `${SEAL_PURPOSES.head} ${id}`)
  const rules = new Set(scan.secretRulesIn([fields]))
  const found: FoundSecrets = { rules: [], hashes: [], hashesWithSecrets: [] }
  let failure: { error: unknown } | undefined
  for (const { hash, data } of chunks)
    try {
      const chunkRules = await scan.secretRulesInChunk(unseal(key, data, `${SEAL_PURPOSES.chunk} ${id}`))
      found.hashes.push(hash)
      if (chunkRules.length > 0) found.hashesWithSecrets.push(hash)
      for (const rule of chunkRules) rules.add(rule)
    } catch (error) {
      failure ??= { error }
    }
  if (failure && rules.size === 0) throw failure.error
  return { ...found, rules: [...rules] }
}

/** The member's newest quarantined conversations. Nobody else can read them. */
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
