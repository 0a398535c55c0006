import { type Consent, consentFor, type HubChoices } from "../config/hub.ts"
import { isSameConversation, type Ref, siblingRef } from "../core/ref.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import {
  type ConversationRow,
  type HistoryWriter,
  type MessageVersion,
  WORKTREE_REASON,
} from "../store/history/store.ts"
import type { Pushed, PushedRow } from "../store/hub/pushed.ts"
import { type HubClient, type HubError, isHubError } from "./client.ts"
import {
  createOutgoing,
  fingerprint,
  OUTGOING_VERSION,
  type OutgoingConversation,
  type OutgoingRules,
} from "./outgoing.ts"
import {
  type CommitResponse,
  chunksOf,
  MAX_CHUNK_BYTES,
  MAX_CHUNK_PLAIN,
  MAX_PLANNED,
  type PlanAnswer,
  pushDigest,
  type WireChunk,
} from "./wire.ts"

export type PushParts = {
  store: HistoryWriter
  pushed: Pushed
  hub: HubClient
  /** Identifies the hub and the member, because an acknowledgement by another hub or member does not count. */
  account: string
  /** The user's current choices. */
  choices(): HubChoices
  platform: NodeJS.Platform
  now(): number
  /** The rules by which a conversation is sent under this consent. */
  rulesFor(row: ConversationRow, consent: Consent): Promise<OutgoingRules>
  /** False if the project's own settings forbid sharing. */
  allows(project: string): boolean
  signal?: AbortSignal
  /** When to stop, in milliseconds since 1970; the next push continues. */
  deadline?: number
  /** True if a person started the push, so that refused conversations are retried. */
  retriesRefused?: boolean
  onProgress?: (done: number, total: number) => void
}

/** The parts that are needed to decide whether a conversation is shared. */
export type SharingContext = Pick<PushParts, "store" | "pushed" | "choices" | "platform" | "allows">

export type PushReport = {
  sent: number
  removed: number
  refused: number
  chunks: number
  bytes: number
  /** False if the push stopped early, at its deadline or because it was aborted. */
  complete: boolean
}

const CHANGES_AT_ONCE = 100
const BATCH_BYTES = 32 << 20
const WORKERS = 4
const MAX_CONFLICTS = 5
const LEAVING_AT_ONCE = 100
/** How long after a refusal a conversation is retried, in milliseconds: access may have been granted meanwhile. */
const RETRY_REFUSED_MS = 3_600_000
/**
 * The versions of the redaction rules and of the form in which messages are sent. If one of them changes, all conversations are
 * checked again.
 */
const RULES_VERSION = `${REDACTION_VERSION}.${OUTGOING_VERSION}`

/**
 * Brings a hub up to date with what the user shares. A push can be interrupted at any time: acknowledged conversations are
 * recorded, and the next push finds the rest in the history's feed. Throws a HubError if the hub does not answer.
 */
export async function pushAll(parts: PushParts): Promise<PushReport> {
  const { pushed, hub } = parts
  const report: PushReport = { sent: 0, removed: 0, refused: 0, chunks: 0, bytes: 0, complete: true }
  pushed.begin(parts.account)
  await checkPosition(parts)
  for (const project of pushed.withdrawn()) {
    await hub.withdraw(project)
    pushed.endWithdrawal(project)
  }
  await removeLeaving(parts, report)
  await retryRefused(parts, report)
  await followFeed(parts, report)
  await removeLeaving(parts, report)
  return report
}

/** How often a laptop that sends nothing asks whether the hub still has what it acknowledged, in milliseconds. */
const CHECK_POSITION_MS = 3_600_000

/** Offers everything again if the hub's database was restored to a state before what it acknowledged. */
async function checkPosition(parts: PushParts): Promise<void> {
  const { store, pushed, hub, now } = parts
  const last = pushed.position()
  if (!last) return
  const isRecent = now() - last.at < CHECK_POSITION_MS
  if (isRecent && (await feedToken(parts)) === (await store.revision())) return
  const answer = await hub.position(last.position)
  if (!answer) return
  if (!answer.known) pushed.forgetAcknowledged()
  pushed.savePosition(answer.position, now())
}

/** The later of two positions in the hub's history. */
function laterPosition(one: string | undefined, other: string): string {
  const [history, seq] = one?.split("@") ?? []
  const [otherHistory, otherSeq] = other.split("@")
  return history === otherHistory && Number(seq) > Number(otherSeq) ? one! : other
}

/**
 * The position in the feed from which the next push continues. Undefined, which means the beginning, if the shared projects or
 * the rules have changed since the last push.
 */
export async function feedToken(parts: SharingContext): Promise<string | undefined> {
  const [rules, token] = parts.pushed.token()?.split(" ") ?? []
  return rules === (await rulesFingerprint(parts)) ? token : undefined
}

/** A fingerprint of everything that decides what is shared, except the conversations themselves. */
async function rulesFingerprint({ store, pushed, choices, allows }: SharingContext): Promise<string> {
  const projects = await store.projectIdentities()
  const privateProjects = projects.filter((project) => project.private).map(({ path }) => path)
  // Worktrees do not count: each new one would have all conversations checked again, and earlier ones hardly name its files.
  const joinedFolders = projects.map(({ path, folders = [] }) => [
    path,
    ...folders.flatMap((folder) => (folder.why === WORKTREE_REASON ? [] : folder.path)),
  ])
  const sharedProjects = choices().consents.map(({ at: _, ...consent }) => [consent, allows(consent.project)])
  const rules = [RULES_VERSION, sharedProjects, privateProjects, joinedFolders.filter((paths) => paths.length > 1)]
  return fingerprint(JSON.stringify([...rules, pushed.held()])).slice(0, 16)
}

async function followFeed(parts: PushParts, report: PushReport): Promise<void> {
  const { store, pushed } = parts
  const rules = await rulesFingerprint(parts)
  let token = await feedToken(parts)
  let done = 0
  const total = parts.onProgress ? await countChanges(store, token) : 0
  while (report.complete) {
    const page = await store.changes(token, CHANGES_AT_ONCE)
    if (page.rebuild) pushed.forgetNames()
    const batches = new Batches(parts, report)
    for (const { conversation, deleted, ref } of page.changes) {
      if (isPastDeadline(parts)) report.complete = false
      if (!report.complete) break
      parts.onProgress?.(done++, total)
      if (deleted || !ref) await removeIfForgotten(parts, conversation)
      else await prepare(parts, ref, batches, report, conversation)
    }
    await batches.flush()
    // Saved only now, so that the next push reads this page again if something was not acknowledged.
    if (report.complete) {
      token = page.token
      pushed.saveToken(`${rules} ${token}`)
    }
    if (!page.more) break
  }
  parts.onProgress?.(done, Math.max(done, total))
}

async function countChanges(store: HistoryWriter, from: string | undefined): Promise<number> {
  let count = 0
  for (let token = from; ; ) {
    const page = await store.changes(token, 10_000)
    count += page.changes.length
    token = page.token
    if (!page.more) return count
  }
}

function isPastDeadline({ deadline, signal, now }: PushParts): boolean {
  return signal?.aborted === true || (deadline !== undefined && now() >= deadline)
}

/** Schedules the deletion of a forgotten conversation on the hub. The feed contains only the conversation's number. */
async function removeIfForgotten({ store, pushed, now }: PushParts, conversation: string): Promise<void> {
  const pushedRow = pushed.named(conversation)
  if (!pushedRow || pushedRow.state === "gone" || (await store.conversation(pushedRow.ref))) return
  if (pushedRow.rev === undefined) pushed.remove(pushedRow.ref)
  else pushed.put({ ...pushedRow, state: "leaving", at: now() })
}

async function removeLeaving(parts: PushParts, report: PushReport): Promise<void> {
  const { store, pushed, hub } = parts
  for (
    let page = pushed.inState("leaving", LEAVING_AT_ONCE);
    page.length > 0;
    page = pushed.inState("leaving", LEAVING_AT_ONCE)
  )
    for (const row of page) {
      if (isPastDeadline(parts)) {
        report.complete = false
        return
      }
      await hub.remove({ source: row.ref.source, id: row.shared_id })
      // `gone` keeps a conversation that is still on this machine from being sent again. A forgotten one leaves no record.
      if (await store.conversation(row.ref)) pushed.put({ ...row, state: "gone", at: parts.now() })
      else pushed.remove(row.ref)
      report.removed++
    }
}

const MAX_REFUSED_AT_ONCE = 1_000

async function retryRefused(parts: PushParts, report: PushReport): Promise<void> {
  const { pushed, now, retriesRefused } = parts
  const batches = new Batches(parts, report)
  for (const row of pushed.inState("refused", MAX_REFUSED_AT_ONCE)) {
    if (isPastDeadline(parts)) break
    const hasSecret = row.rules !== undefined
    const isDue = hasSecret
      ? row.rules! < REDACTION_VERSION
      : retriesRefused === true || now() - row.at > RETRY_REFUSED_MS
    if (isDue) await prepare(parts, row.ref, batches, report, row.conversation)
  }
  await batches.flush()
}

export type NotSharedReason = "kind" | "not shared" | "private" | "project" | "older" | "held"

/** The consent under which a conversation is sent, or why it is not sent. */
export async function sharingConsent(
  { store, pushed, choices, platform, allows }: SharingContext,
  row: ConversationRow,
): Promise<Consent | NotSharedReason> {
  if (row.kind === "document" || row.kind === "dex" || row.ref.owner !== undefined) return "kind"
  const consent = consentFor(choices(), row.project, platform)
  if (!consent) return "not shared"
  if (row.private) return "private"
  if (!allows(consent.project)) return "project"
  const began = row.started_at ?? row.ended_at
  if (consent.since !== undefined && (began === undefined || began < consent.since)) return "older"
  return (await isHeldBack(store, pushed, row)) ? "held" : consent
}

const MAX_ANCESTORS = 32

/** True if the conversation or one of its ancestors is held back. A fork and a subagent share messages with their ancestors. */
async function isHeldBack(
  store: Pick<HistoryWriter, "conversation">,
  pushed: Pick<Pushed, "isHeld">,
  row: ConversationRow,
): Promise<boolean> {
  let generation: ConversationRow[] = [row]
  const checkedRefs: Ref[] = []
  for (let step = 0; step < MAX_ANCESTORS && generation.length > 0; step++) {
    const ancestors: ConversationRow[] = []
    for (const one of generation) {
      if (pushed.isHeld(one.ref)) return true
      for (const id of [one.parent?.id, one.fork_of]) {
        const ref = id === undefined ? undefined : siblingRef(one.ref, id)
        if (!ref || checkedRefs.some((other) => isSameConversation(other, ref))) continue
        if (pushed.isHeld(ref)) return true
        checkedRefs.push(ref)
        const ancestor = await store.conversation(ref)
        if (ancestor) ancestors.push(ancestor)
      }
    }
    generation = ancestors
  }
  return false
}

type PreparedConversation = {
  row: ConversationRow
  consent: Consent
  conversation?: string
  mark: string
  digest: string
  outgoing: OutgoingConversation
  chunks: WireChunk[]
}

async function prepare(
  parts: PushParts,
  ref: Ref,
  batches: Batches,
  report: PushReport,
  conversation: string | undefined,
): Promise<void> {
  const { store, pushed, now } = parts
  const row = await store.conversation(ref)
  if (!row) return
  const consent = await sharingConsent(parts, row)
  if (typeof consent === "string") return
  const pushedRow = pushed.get(ref)
  if (pushedRow?.state === "gone" || pushedRow?.state === "leaving") return
  if (pushedRow?.state === "refused" && pushedRow.rules !== undefined && pushedRow.rules >= REDACTION_VERSION) return
  const versions = await store.versions(ref)
  const mark = markOf(row, versions, consent, await store.projectFolders(consent.project))
  if (pushedRow?.state === "sent" && pushedRow.mark === mark) {
    if (conversation !== undefined && pushedRow.conversation !== conversation)
      pushed.put({ ...pushedRow, conversation })
    return
  }
  const messages = await store.messages(ref)
  const outgoing = createOutgoing(row, messages, versions, await parts.rulesFor(row, consent))
  const chunks = [...chunksOf(outgoing.messages)]
  const hashes = chunks.map(({ hash }) => hash)
  const prepared: PreparedConversation = {
    row,
    consent,
    mark,
    outgoing,
    chunks,
    digest: pushDigest(outgoing.head, consent.visibility, hashes),
    conversation,
  }
  const why =
    messages.length < versions.length
      ? "Some of its messages are damaged on this machine. See `dex doctor`."
      : chunks.some(({ data, plain_bytes }) => data.length > MAX_CHUNK_BYTES || plain_bytes > MAX_CHUNK_PLAIN)
        ? "One of its messages is too large for a hub, even without its text."
        : undefined
  if (why !== undefined) {
    report.refused++
    return pushed.put({ ...rowOf(prepared, pushedRow, now()), state: "refused", why })
  }
  if (pushedRow?.state === "sent" && pushedRow.digest === prepared.digest && pushedRow.project === consent.key)
    return pushed.put({ ...rowOf(prepared, pushedRow, now()), state: "sent" })
  await batches.add(prepared)
}

/**
 * A fingerprint that changes whenever something different would be sent. It is computed without reading a message. The user's
 * names are left out, because they depend on the environment of the process.
 */
function markOf(
  row: ConversationRow,
  versions: readonly MessageVersion[],
  { key, what, visibility }: Consent,
  folders: string[],
): string {
  const { path: _, archived: __, ...head } = row
  return fingerprint(JSON.stringify([RULES_VERSION, head, versions, key, what, visibility, folders.sort()]))
}

function rowOf(
  { row, consent, conversation, mark, outgoing, digest }: PreparedConversation,
  pushedRow: PushedRow | undefined,
  at: number,
): Omit<PushedRow, "state"> {
  const name = conversation ?? pushedRow?.conversation
  return {
    ref: row.ref,
    conversation: name,
    shared_id: outgoing.head.id,
    project: consent.key,
    mark,
    digest,
    rev: pushedRow?.rev,
    at,
  }
}

/** Collects conversations and sends them in batches. A batch is planned in one call, and its size in memory is limited. */
class Batches {
  private waiting: PreparedConversation[] = []
  private bytes = 0
  private readonly parts: PushParts
  private readonly report: PushReport

  constructor(parts: PushParts, report: PushReport) {
    this.parts = parts
    this.report = report
  }

  async add(prepared: PreparedConversation): Promise<void> {
    const other = this.waiting[0]
    if (other && other.consent.key !== prepared.consent.key) await this.flush()
    this.waiting.push(prepared)
    this.bytes += prepared.chunks.reduce((sum, { data }) => sum + data.length, 0)
    if (this.waiting.length >= MAX_PLANNED || this.bytes >= BATCH_BYTES) await this.flush()
  }

  async flush(): Promise<void> {
    const batch = this.waiting
    this.waiting = []
    this.bytes = 0
    if (batch.length > 0) await sendBatch(this.parts, batch, this.report)
  }
}

async function sendBatch(parts: PushParts, batch: PreparedConversation[], report: PushReport): Promise<void> {
  let answers: PlanAnswer[]
  try {
    answers = await plan(parts, batch)
  } catch (error) {
    if (!isConversationProblem(error)) throw error
    for (const prepared of batch) refuse(parts, prepared, error, report)
    return
  }
  const queue = batch.map((prepared, i) => ({ prepared, answer: answers[i]! }))
  // The first worker that cannot reach the hub stops all others after their current conversation.
  let failure: { error: unknown } | undefined
  const work = async () => {
    for (let next = queue.shift(); next && !failure; next = queue.shift()) {
      try {
        await sendConversation(parts, next.prepared, next.answer, report)
      } catch (error) {
        // A conversation that makes the hub fail each time must not block all others.
        if (isConversationProblem(error) || (isHubError(error) && error.trouble === "failed"))
          refuse(parts, next.prepared, error, report)
        else failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, work))
  if (failure) throw failure.error
}

function plan({ hub }: PushParts, batch: PreparedConversation[]): Promise<PlanAnswer[]> {
  return hub.plan({
    project: batch[0]!.consent.key,
    conversations: batch.map(({ row, outgoing, digest, chunks }) => ({
      source: row.ref.source,
      id: outgoing.head.id,
      digest,
      chunks: chunks.map(({ hash }) => hash),
    })),
  })
}

/** Sends the missing chunks of one conversation and commits it. If another device was faster, plans the conversation again. */
async function sendConversation(
  parts: PushParts,
  prepared: PreparedConversation,
  planned: PlanAnswer,
  report: PushReport,
): Promise<void> {
  const { pushed, hub, now } = parts
  const pushedRow = pushed.get(prepared.row.ref)
  let answer = planned
  for (let conflicts = 0; ; conflicts++) {
    // Read again, because the conversation may have been unshared, held back, made private or forgotten meanwhile.
    const row = await parts.store.conversation(prepared.row.ref)
    if (!row || typeof (await sharingConsent(parts, row)) === "string") return
    if (answer.state === "gone")
      return pushed.put({ ...rowOf(prepared, pushedRow, now()), state: "gone", why: "It was deleted on the hub." })
    if (answer.state === "refused") {
      report.refused++
      return pushed.put({ ...rowOf(prepared, pushedRow, now()), state: "refused", why: answer.why })
    }
    if (answer.state === "have")
      return pushed.put({ ...rowOf(prepared, pushedRow, now()), state: "sent", rev: answer.rev })
    try {
      const { rev, position } = await send(parts, prepared, answer, report)
      if (position !== undefined) pushed.savePosition(laterPosition(pushed.position()?.position, position), now())
      pushed.put({ ...rowOf(prepared, pushedRow, now()), state: "sent", rev })
      report.sent++
      return
    } catch (error) {
      if (!isHubError(error) || error.trouble !== "conflict" || conflicts >= MAX_CONFLICTS) throw error
    }
    answer = (await plan({ ...parts, hub }, [prepared]))[0]!
  }
}

async function send(
  { hub }: PushParts,
  { row, consent, outgoing, chunks, digest }: PreparedConversation,
  { chunks: missing, rev }: Extract<PlanAnswer, { state: "send" }>,
  report: PushReport,
): Promise<CommitResponse> {
  const missingHashes = new Set(missing)
  for (const chunk of chunks)
    if (missingHashes.delete(chunk.hash)) {
      await hub.sendChunk(consent.key, { source: row.ref.source, id: outgoing.head.id }, chunk)
      report.chunks++
      report.bytes += chunk.data.length
    }
  return hub.commit({
    project: consent.key,
    digest,
    chunks: chunks.map(({ hash }) => hash),
    parent_rev: rev,
    visibility: consent.visibility,
    head: outgoing.head,
  })
}

/** True for a problem with one conversation, which does not affect others. A problem with the hub ends the push. */
function isConversationProblem(error: unknown): error is HubError {
  return isHubError(error) && ["secret", "refused", "denied", "conflict"].includes(error.trouble)
}

function refuse({ pushed, now }: PushParts, prepared: PreparedConversation, error: HubError, report: PushReport): void {
  report.refused++
  const pushedRow = pushed.get(prepared.row.ref)
  pushed.put({
    ...rowOf(prepared, pushedRow, now()),
    state: "refused",
    why: error.message,
    rules: error.trouble === "secret" ? REDACTION_VERSION : undefined,
  })
}
