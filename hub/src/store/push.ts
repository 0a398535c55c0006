import { createHmac } from "node:crypto"
import { sourceWithOwner } from "../../../src/core/ref.ts"
import type { CommitRequest, CommitResponse, PlanAnswer, PlanRequest } from "../../../src/hub-client/wire.ts"
import { REDACTION_VERSION } from "../../../src/redact/version.ts"
import { recordAudit } from "./audit.ts"
import type { Database, Query, Viewer } from "./connection.ts"
import { positionIn } from "./feeds.ts"
import type { TenantKey } from "./keyring.ts"
import { seal, sealedName } from "./keys.ts"
import { HubProblem } from "./problem.ts"
import type { Quotas } from "./quota.ts"
import { type DeletionReason, type Receipt, writeReceipt } from "./receipts.ts"
import { type MessageFacts, SEAL_PURPOSES, sealedHead, sealJson, unsealJson } from "./sealed.ts"
import { tenantKeyOf } from "./tenant.ts"

// A conversation arrives in three steps: the answer to a plan lists what is missing, the chunks follow, and a commit makes the
// conversation readable. Each request can be repeated at any time, and does nothing the second time.

/**
 * The maximum number of messages in a conversation. Its head lists all of them, and is built on the thread that answers requests.
 */
const MAX_MESSAGES = 250_000
/** The number of chunks after which other requests get a turn. */
const CHUNKS_AT_ONCE = 20

type StoredConversation = {
  id: number
  source: string
  native_id: string
  rev: number
  digest: Buffer | null
  project: number
  wrapped: Buffer
}

/** Plans a push. Throws a HubProblem (507) if something is missing but the quotas allow no more. Then nothing is planned. */
export async function planPush(
  db: Database,
  viewer: Viewer,
  request: PlanRequest,
  quotas?: Quotas,
): Promise<PlanAnswer[]> {
  return db.as(viewer, async (query) => {
    const project = await projectToWrite(query, viewer, request.project)
    if ("why" in project) return request.conversations.map(() => ({ state: "refused", why: project.why }))
    const tenant = await tenantKeyOf(db, query)
    const forgotten = await areForgotten(query, tenant, viewer, request.conversations)
    const live = request.conversations.filter((_, i) => !forgotten[i])
    await reserve(query, tenant, viewer, project.id, live)
    const conversations = new Map(
      (await storedOf(query, viewer, live)).map((row) => [nameOf(row.source, row.native_id), row]),
    )
    const keys = new Map(
      [...conversations.values()].map((conversation) => [
        conversation.id,
        tenant.conversationKey(conversation.wrapped),
      ]),
    )
    const storedHashes = await storedChunks(query, [...keys.keys()])
    const answers = request.conversations.map(({ source, id, digest, chunks }, i): PlanAnswer => {
      if (forgotten[i]) return { state: "gone" }
      const conversation = conversations.get(nameOf(source, id))!
      const key = keys.get(conversation.id)!
      const isStored = conversation.digest?.equals(sealedName(key, digest)) && conversation.project === project.id
      if (isStored) return { state: "have", rev: conversation.rev }
      const missing = chunks.filter(
        (hash) => !storedHashes.has(`${conversation.id} ${sealedName(key, hash).toString("hex")}`),
      )
      return { state: "send", rev: conversation.rev, chunks: [...new Set(missing)] }
    })
    if (answers.some((answer) => answer.state === "send" && answer.chunks.length > 0)) await quotas?.checkRoom(viewer)
    const unsent = request.conversations.filter((_, i) => answers[i]!.state === "send")
    await query(RECORD_PLAN, [viewer.tenant, unsent.map(({ source, id }) => conversations.get(nameOf(source, id))!.id)])
    return answers
  })
}

/** Stores a chunk, which the caller has already checked and scanned for secrets. `facts` are the packed facts of its messages. */
export async function storeChunk(
  db: Database,
  viewer: Viewer,
  conversation: { source: string; id: string },
  chunk: { hash: string; data: Buffer; facts: Uint8Array; plainBytes: number },
): Promise<void> {
  await db.as(viewer, async (query) => {
    const tenant = await tenantKeyOf(db, query)
    const [stored] = await storedOf(query, viewer, [conversation])
    const { source, id } = conversation
    if (!stored) throw new HubProblem(409, "conflict", `${source}:${id} is not planned. Plan the push again.`)
    const key = tenant.conversationKey(stored.wrapped)
    await query(
      `insert into hub.chunk (tenant, conversation, hash, bytes, data, facts, scanned, plain_bytes)
       values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
      [
        ...[viewer.tenant, stored.id, sealedName(key, chunk.hash), chunk.data.length],
        seal(key, chunk.data, `${SEAL_PURPOSES.chunk} ${stored.id}`),
        seal(key, chunk.facts, `${SEAL_PURPOSES.facts} ${stored.id}`),
        ...[REDACTION_VERSION, chunk.plainBytes],
      ],
    )
  })
}

export async function commitPush(db: Database, viewer: Viewer, request: CommitRequest): Promise<CommitResponse> {
  const { head } = request
  return db.as(viewer, async (query) => {
    const project = await projectToWrite(query, viewer, request.project)
    if ("why" in project) throw new HubProblem(403, "refused", project.why)
    const tenant = await tenantKeyOf(db, query)
    const [isGone] = await areForgotten(query, tenant, viewer, [head])
    if (isGone)
      throw new HubProblem(410, "gone", `${head.source}:${head.id} was forgotten here and is not accepted again.`)
    await query(LOCK_CONVERSATION, [viewer.tenant, viewer.member, head.source, head.id])
    const [stored] = await storedOf(query, viewer, [head])
    if (!stored) throw new HubProblem(409, "conflict", `${head.source}:${head.id} is not planned. Plan the push again.`)
    const key = tenant.conversationKey(stored.wrapped)
    const digest = sealedName(key, request.digest)
    const receipt = async (rev: number, seq: number) => ({
      ...{ rev, seq, position: (await positionIn(query)).token },
      receipt: createHmac("sha256", key).update(`${stored.id} ${rev} ${seq} ${request.digest}`).digest("base64url"),
    })
    if (stored.digest?.equals(digest) && stored.project === project.id) {
      const [{ seq }] = (await query<{ seq: number }>("select seq from hub.conversation where id = $1", [
        stored.id,
      ])) as [{ seq: number }]
      return receipt(stored.rev, seq)
    }
    if (stored.rev !== request.parent_rev)
      throw new HubProblem(
        409,
        "conflict",
        `${head.source}:${head.id} has revision ${stored.rev} by now. Plan the push again.`,
      )
    const chunks = await chunkFacts(query, stored.id, key, request.chunks)
    const rules = [...new Set(chunks.flatMap(({ found }) => found ?? []))]
    if (rules.length > 0)
      throw new HubProblem(422, "secret", `The conversation contains what looks like a secret (${rules.join(", ")}).`, {
        rules,
      })
    const facts = chunks.flatMap((chunk) => chunk.facts)
    const counted = countsIn(facts)
    if (counted.messages > MAX_MESSAGES)
      throw new HubProblem(413, "too_large", `A conversation can have at most ${MAX_MESSAGES} messages.`)
    const times = facts.flatMap(({ at }) => at ?? []).sort((a, b) => a - b)
    const headBytes = sealJson(key, sealedHead(head, chunks), `${SEAL_PURPOSES.head} ${stored.id}`)
    const titleBytes = seal(key, Buffer.from(head.title?.text ?? ""), `${SEAL_PURPOSES.title} ${stored.id}`)
    await query("delete from hub.chunk where conversation = $1 and hash <> all ($2)", [
      stored.id,
      chunks.map(({ hash }) => hash),
    ])
    const seq = await nextSeq(query, viewer.tenant)
    await query(COMMIT, [
      ...[stored.id, project.id, request.visibility, stored.rev + 1, digest, seq, head.kind, head.parent?.id ?? null],
      ...[head.models, counted.messages, counted.copied, commitsIn(facts), head.superseded],
      ...[head.estimated_tokens, head.text_bytes, head.started_at ?? null, head.ended_at ?? null],
      ...[times[0] ?? null, times.at(-1) ?? null, head.redaction_version, headBytes],
      ...[Math.min(REDACTION_VERSION, ...chunks.map(({ scanned }) => scanned)), titleBytes],
    ])
    await query("insert into hub.change (tenant, seq, conversation, deleted) values ($1, $2, $3, false)", [
      viewer.tenant,
      seq,
      stored.id,
    ])
    return receipt(stored.rev + 1, seq)
  })
}

/** `forgotten` is the number of deleted conversations that were readable. There is a receipt if anything was stored. */
export type ForgetResult = { forgotten: number; receipt?: Receipt }

/** Deletes conversations and their keys permanently. Without the keys, their data in backups is unreadable too. */
export async function forgetPushed(
  db: Database,
  viewer: Viewer,
  conversations: { source: string; id: string }[],
  why: DeletionReason = "person",
): Promise<ForgetResult> {
  return db.as(viewer, async (query) => forgetIn(query, await tenantKeyOf(db, query), viewer, conversations, why))
}

/** Forgets conversations of one author in the caller's transaction. */
export async function forgetIn(
  query: Query,
  tenant: TenantKey,
  author: Viewer,
  conversations: { source: string; id: string }[],
  why: DeletionReason,
): Promise<ForgetResult> {
  // Locking waits for a commit in progress. Only then is it known whether the conversation is readable.
  for (const { source, id } of conversations) await query(LOCK_CONVERSATION, [author.tenant, author.member, source, id])
  const stored = await storedOf(query, author, conversations)
  const ids = stored.map(({ id }) => id)
  await query("delete from hub_key.conversation_key where conversation = any ($1)", [ids])
  await query("delete from hub.chunk where conversation = any ($1)", [ids])
  await query("delete from hub.conversation where id = any ($1)", [ids])
  await query(
    "insert into hub.tombstone (tenant, hash, member) select $1, unnest($2::bytea[]), $3 on conflict do nothing",
    [author.tenant, conversations.map((one) => tombstoneOf(tenant, author.member, one)), author.member],
  )
  const readable = stored.filter(({ rev }) => rev > 0)
  if (readable.length > 0)
    await recordAudit(query, why === "person" ? author : { tenant: author.tenant }, {
      action: why === "retention" ? "retention" : "forget",
      detail: { conversations: readable.map((one) => `${author.name}/${nameOf(one.source, one.native_id)}`) },
    })
  let seq: number | undefined
  for (const { id } of readable) {
    seq = await nextSeq(query, author.tenant)
    await query("insert into hub.change (tenant, seq, conversation, deleted) values ($1, $2, $3, true)", [
      author.tenant,
      seq,
      id,
    ])
  }
  const receipt =
    stored.length > 0 && (await writeReceipt(query, { of: author, conversations: readable.length, why, seq }))
  return { forgotten: readable.length, receipt: receipt || undefined }
}

/** Records a plan at most once a day, because unfinished data is removed only after a week. */
const RECORD_PLAN = `update hub.conversation set planned_at = now() where tenant = $1 and id = any ($2)
  and (planned_at is null or planned_at < now() - interval '1 day')`

const LOCK_CONVERSATION =
  "select from hub.conversation where tenant = $1 and author = $2 and source = $3 and native_id = $4 for update"

const COMMIT = `update hub.conversation set project = $2, visibility = $3, rev = $4, digest = $5, seq = $6, kind = $7,
  parent_id = $8, models = $9, message_count = $10, copied_count = $11, commit_count = $12, superseded = $13,
  estimated_tokens = $14, text_bytes = $15, started_at = $16, ended_at = $17, first_at = $18, last_at = $19,
  redaction_version = $20, head = $21, scanned = $22, title = $23, title_rev = $4,
  stored_bytes = (select coalesce(sum(coalesce(k.plain_bytes, k.bytes)), 0) from hub.chunk k where k.tenant = conversation.tenant and k.conversation = $1),
  quarantined_at = null, quarantined_by = null, received_at = now() where id = $1`

/** Takes the next number in the feed. Called last, so that two concurrent commits wait for each other as briefly as possible. */
async function nextSeq(query: Query, tenant: number): Promise<number> {
  const [row] = await query<{ seq: number }>(
    "insert into hub.feed (tenant, seq) values ($1, 1) on conflict (tenant) do update set seq = feed.seq + 1 returning seq",
    [tenant],
  )
  return row!.seq
}

/** Returns the project if the member may push to it and shares it; otherwise, `why` is the reason for the refusal. */
async function projectToWrite(query: Query, viewer: Viewer, key: string): Promise<{ id: number } | { why: string }> {
  const [row] = await query<{ id: number; may_write: boolean; consents: boolean }>(
    `select p.id,
       exists (select from hub.project_grant g where g.project = p.id and g.member = $2 and g.level in ('write', 'own')) as may_write,
       exists (select from hub.consent c where c.project = p.id and c.member = $2 and c.until is null) as consents
     from hub.project p where p.key = $1`,
    [key, viewer.member],
  )
  // A missing project and a forbidden one get the same refusal, so that nobody learns which projects exist.
  if (!row?.may_write)
    return { why: `There is no project ${key} here, or you may not push to it. \`dex hub share\` requests access.` }
  if (!row.consents) return { why: `You do not share ${key} with the hub. Run \`dex hub share\` first.` }
  return { id: row.id }
}

function nameOf(source: string, id: string): string {
  return `${source}:${id}`
}

/** The keyed hash of a conversation's name, by which the hub recognises it after it was forgotten. */
export function tombstoneOf(tenant: TenantKey, author: number, { source, id }: { source: string; id: string }): Buffer {
  return tenant.name(`${sourceWithOwner({ owner: String(author), source })}:${id}`)
}

async function areForgotten(
  query: Query,
  tenant: TenantKey,
  viewer: Viewer,
  conversations: { source: string; id: string }[],
): Promise<boolean[]> {
  const hashes = conversations.map((conversation) => tombstoneOf(tenant, viewer.member, conversation))
  const rows = await query<{ hash: Buffer }>("select hash from hub.tombstone where hash = any ($1)", [hashes])
  const forgottenHashes = new Set(rows.map(({ hash }) => hash.toString("hex")))
  return hashes.map((hash) => forgottenHashes.has(hash.toString("hex")))
}

/** Gives new conversations a key, and a row that nobody can read yet. */
async function reserve(
  query: Query,
  tenant: TenantKey,
  viewer: Viewer,
  project: number,
  conversations: { source: string; id: string }[],
): Promise<void> {
  const sources = conversations.map(({ source }) => source)
  const ids = conversations.map(({ id }) => id)
  const added = await query<{ id: number }>(
    `insert into hub.conversation (tenant, author, source, native_id, project, visibility, kind, redaction_version)
     select $1, $2, source, native_id, $3, 'private', 'person', 0
     from unnest($4::text[], $5::text[]) as one (source, native_id)
     on conflict do nothing returning id`,
    [viewer.tenant, viewer.member, project, sources, ids],
  )
  if (added.length === 0) return
  await query(
    "insert into hub_key.conversation_key (tenant, conversation, wrapped) select $1, unnest($2::bigint[]), unnest($3::bytea[])",
    [viewer.tenant, added.map(({ id }) => id), added.map(() => tenant.newConversationKey().wrapped)],
  )
}

async function storedOf(
  query: Query,
  viewer: Viewer,
  conversations: { source: string; id: string }[],
): Promise<StoredConversation[]> {
  return query<StoredConversation>(
    `select c.id, c.source, c.native_id, c.rev, c.digest, c.project, k.wrapped
     from unnest($3::text[], $4::text[]) as one (source, native_id)
     join hub.conversation c on c.tenant = $1 and c.author = $2 and c.source = one.source and c.native_id = one.native_id
     join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id`,
    [
      ...[viewer.tenant, viewer.member],
      ...[conversations.map(({ source }) => source), conversations.map(({ id }) => id)],
    ],
  )
}

async function storedChunks(query: Query, ids: number[]): Promise<Set<string>> {
  const rows = await query<{ conversation: number; hash: Buffer }>(
    "select conversation, hash from hub.chunk where conversation = any ($1)",
    [ids],
  )
  return new Set(rows.map(({ conversation, hash }) => `${conversation} ${hash.toString("hex")}`))
}

async function chunkFacts(
  query: Query,
  id: number,
  key: Buffer,
  hashes: string[],
): Promise<{ hash: Buffer; facts: MessageFacts[]; scanned: number; found: string[] | null }[]> {
  const names = hashes.map((hash) => sealedName(key, hash))
  const rows = await query<{ hash: Buffer; facts: Buffer; scanned: number; found: string[] | null }>(
    "select hash, facts, scanned, found from hub.chunk where conversation = $1 and hash = any ($2)",
    [id, names],
  )
  const rowsByHash = new Map(rows.map((row) => [row.hash.toString("hex"), row]))
  const chunks: Awaited<ReturnType<typeof chunkFacts>> = []
  for (const [i, hash] of names.entries()) {
    const row = rowsByHash.get(hash.toString("hex"))
    if (!row) throw new HubProblem(409, "conflict", "Some chunks of the conversation are missing. Plan the push again.")
    chunks.push({ ...row, hash, facts: unsealJson<MessageFacts[]>(key, row.facts, `${SEAL_PURPOSES.facts} ${id}`) })
    if (i % CHUNKS_AT_ONCE === CHUNKS_AT_ONCE - 1) await new Promise(setImmediate)
  }
  return chunks
}

/** Counts messages on the hub, because a client's own counts are not trusted. */
export function countsIn(facts: MessageFacts[]): { messages: number; copied: number } {
  const current = facts.filter(({ superseded }) => !superseded)
  return { messages: current.length, copied: current.filter(({ copied }) => copied).length }
}

function commitsIn(facts: MessageFacts[]): number {
  return facts.filter(({ effects = [] }) => effects.some(({ type }) => type === "commit")).length
}
