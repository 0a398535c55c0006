import { createHash } from "node:crypto"
import { zstdCompressSync, zstdDecompressSync } from "node:zlib"
import type { Kind, SourceId, Title } from "../core/conversation.ts"
import { codeOf } from "../core/error.ts"
import type { Usage } from "../core/usage.ts"
import type { StoredMessage } from "../store/history/store.ts"

// What a laptop and a hub say to each other. Both import this file; docs/hub.md names every call.

/** Larger pieces compress better; smaller ones are sent again for less when a conversation grows. */
const CHUNK_CHARS = 128 << 10
/** Of one chunk as it is sent, and unpacked. */
export const MAX_CHUNK_BYTES = 8 << 20
export const MAX_CHUNK_PLAIN = 4 << 20
/** Earlier versions sent chunks of this size, and hubs still have them. */
const MAX_KEPT_PLAIN = 64 << 20
/** A chunk that unpacks to more than this may be so many times as large as it was sent. */
const ALWAYS_FINE_PLAIN = 256 << 10
const MAX_RATIO = 50
/** Of one plan. */
export const MAX_PLANNED = 100

/** A message as it is shared. Its `number` never changes; its `version` changes whenever its content does. */
export type WireMessage = StoredMessage & { version: number }

/** A conversation without its messages, as it is shared. It holds no path of the laptop. */
export type WireHead = {
  source: SourceId
  id: string
  kind: Kind
  title?: Title
  git_branch?: string
  agent_version?: string
  parent?: { id: string; call_id?: string }
  fork_of?: string
  started_at?: number
  ended_at?: number
  models: string[]
  usage?: Usage
  message_count: number
  superseded: boolean
  copied_count: number
  estimated_tokens: number
  text_bytes: number
  redaction_version: number
}

/** `digest` names all of it: equal digests, equal conversation. `chunks` are the SHA-256 of each chunk's plain bytes. */
export type PlannedConversation = { source: SourceId; id: string; digest: string; chunks: string[] }

/** The project by its key (`github.com/acme/api`). */
export type PlanRequest = { project: string; conversations: PlannedConversation[] }

/**
 * For each conversation, in order. `have`: the hub has exactly this. `send`: these chunks are missing, then commit on top of
 * `rev`. `gone`: it was forgotten there, and is not taken again. `refused`: with the reason, in words.
 */
export type PlanAnswer =
  | { state: "have"; rev: number }
  | { state: "send"; rev: number; chunks: string[] }
  | { state: "gone" }
  | { state: "refused"; why: string }
export type PlanResponse = { conversations: PlanAnswer[] }

/** `parent_rev` is the `rev` that the plan named: where the hub has another by now, it is planned again. */
export type CommitRequest = {
  project: string
  digest: string
  chunks: string[]
  parent_rev: number
  visibility: "private" | "project" | "org"
  head: WireHead
}

/** The same request gets the same receipt, however often it is sent. */
export type CommitResponse = { rev: number; seq: number; receipt: string }

/** What every answer that is not a success says. `rules` names what looks like a secret. */
export type WireProblem = { error: { code: string; message: string; rules?: string[] } }

/** A member is told that an admin may read one of their conversations, and until when. */
export type WireNotice = { type: "break_glass"; by: string; ref: string; reason: string; at: string; until: string }

/** A member asks to share a project, and those who own it decide. `at` is an ISO date. */
export type HubRequest = { project: string; member: string; at: string }
/** `group_level`: what groups of the identity provider give of it. */
export type HubMemberLevel = { name: string; level: string; group_level?: string }

/** A login that the person ends on their identity provider's page. Who waits asks every `interval` seconds. */
export type DeviceLogin = {
  /** What is brought when asking; it says nothing to anybody but the hub. */
  login: string
  user_code: string
  verification_uri: string
  verification_uri_complete?: string
  /** Seconds. */
  expires_in: number
  interval: number
}
export type DeviceLoginState = { state: "waiting" | "slow_down" } | { state: "done"; token: string }

export type WireChunk = { hash: string; data: Buffer; plain_bytes: number }

/** The chunks of a conversation, in order. Messages that were sent before give the same chunks again, but for the last. */
export function* chunksOf(messages: Iterable<WireMessage>): Generator<WireChunk> {
  let lines: string[] = []
  let chars = 0
  for (const message of messages) {
    const line = JSON.stringify(message)
    // What went before has few characters, each of four bytes at most.
    if (lines.length > 0 && chars * 4 + Buffer.byteLength(line) > MAX_CHUNK_PLAIN) {
      yield packChunk(lines)
      lines = []
      chars = 0
    }
    lines.push(line)
    chars += line.length
    if (chars < CHUNK_CHARS) continue
    yield packChunk(lines)
    lines = []
    chars = 0
  }
  if (lines.length > 0) yield packChunk(lines)
}

function packChunk(lines: string[]): WireChunk {
  const plain = Buffer.from(lines.join("\n"))
  return { hash: sha256(plain), data: padded(zstdCompressSync(plain), plain.length), plain_bytes: plain.length }
}

/** A hub does not unpack what becomes very much larger. Text that repeats itself does, so a frame that is skipped follows it. */
function padded(data: Buffer, plainBytes: number): Buffer {
  const missing = Math.ceil(plainBytes / MAX_RATIO) - data.length
  if (plainBytes <= ALWAYS_FINE_PLAIN || missing <= 0) return data
  const frame = Buffer.alloc(8 + missing)
  frame.writeUInt32LE(SKIPPED_FRAME, 0)
  frame.writeUInt32LE(missing, 4)
  return Buffer.concat([data, frame])
}

/** As RFC 8878 names it. */
const SKIPPED_FRAME = 0x184d2a50

/** How many bytes a chunk may unpack to that was sent with so many. */
export function mostPlain(sentBytes: number): number {
  return Math.min(MAX_CHUNK_PLAIN, Math.max(ALWAYS_FINE_PLAIN, sentBytes * MAX_RATIO))
}

/** Throws if the bytes are not what was packed, or more than `most`. Whoever is sent them checks the hash. */
export function unpackChunk(
  data: Uint8Array,
  most = MAX_KEPT_PLAIN,
): { hash: string; messages: WireMessage[]; plainBytes: number } {
  const plain = unpacked(data, most)
  const messages = linesIn(plain).map((line) => JSON.parse(line) as WireMessage)
  return { hash: sha256(plain), messages, plainBytes: plain.length }
}

/** Unpacking stops at the limit. */
export function isTooLarge(error: unknown): boolean {
  return codeOf(error) === "ERR_BUFFER_TOO_LARGE"
}

/** A message on each line, in the order in which they were packed: reading one need not read the others. Throws as `unpackChunk`. */
export function chunkLines(data: Uint8Array): string[] {
  return linesIn(unpacked(data))
}

function unpacked(data: Uint8Array, most = MAX_KEPT_PLAIN): Buffer {
  return zstdDecompressSync(data, { maxOutputLength: most })
}

function linesIn(plain: Buffer): string[] {
  return plain.toString("utf8").split("\n")
}

export function pushDigest(head: WireHead, visibility: string, chunks: readonly string[]): string {
  return sha256(JSON.stringify([head, visibility, chunks]))
}

function sha256(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex")
}
