import { createHash } from "node:crypto"
import { zstdCompressSync, zstdDecompressSync } from "node:zlib"
import type { Kind, SourceId, Title } from "../core/conversation.ts"
import { codeOf } from "../core/error.ts"
import type { Usage } from "../core/usage.ts"
import type { StoredMessage } from "../store/history/store.ts"

// The protocol between a laptop and a hub. Both import this file.

/**
 * The number of characters after which a chunk ends. Larger chunks compress better; smaller ones cost less to send again when a
 * conversation grows.
 */
const CHUNK_CHARS = 128 << 10
/** The limits of one chunk in bytes, compressed and uncompressed. */
export const MAX_CHUNK_BYTES = 8 << 20
export const MAX_CHUNK_PLAIN = 4 << 20
/** The maximum uncompressed size of chunks from earlier versions, which hubs still store. */
const MAX_STORED_PLAIN = 64 << 20
/**
 * A chunk may always decompress to this many bytes. If it decompresses to more, then to at most MAX_RATIO times the sent size.
 */
const ALWAYS_ALLOWED_PLAIN = 256 << 10
const MAX_RATIO = 50
/** The maximum number of conversations in one plan. */
export const MAX_PLANNED = 100

/** A shared message. Its `number` never changes; its `version` changes whenever its content does. */
export type WireMessage = StoredMessage & { version: number }

/** A shared conversation without its messages. It contains no path from the laptop. */
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

/** Equal digests mean equal conversations. `chunks` has the SHA-256 of each chunk's plain bytes. */
export type PlannedConversation = { source: SourceId; id: string; digest: string; chunks: string[] }

/** `project` is the project's key (`github.com/acme/api`). */
export type PlanRequest = { project: string; conversations: PlannedConversation[] }

/**
 * One answer for each conversation, in order. `have`: the hub has exactly this version. `send`: these chunks are missing; commit
 * on top of `rev`. `gone`: the conversation was forgotten on the hub, which does not accept it again. `refused`: `why` is a
 * sentence for the user.
 */
export type PlanAnswer =
  | { state: "have"; rev: number }
  | { state: "send"; rev: number; chunks: string[] }
  | { state: "gone" }
  | { state: "refused"; why: string }
export type PlanResponse = { conversations: PlanAnswer[] }

/**
 * `parent_rev` is the `rev` from the plan. If the hub has another revision by now, it answers 409, and the client plans again.
 */
export type CommitRequest = {
  project: string
  digest: string
  chunks: string[]
  parent_rev: number
  visibility: "private" | "project" | "org"
  head: WireHead
}

/** The same request always gets the same receipt. `position` is the hub's history and the number of its last change; older hubs do not send it. */
export type CommitResponse = { rev: number; seq: number; receipt: string; position?: string }

/**
 * The hub's position now. `known` is false if its history does not include the position in question: its database was restored to
 * an earlier state.
 */
export type PositionResponse = { position: string; known: boolean }

/** The body of every answer that is not a success. `rules` are the redaction rules that found a secret. */
export type WireProblem = { error: { code: string; message: string; rules?: string[] } }

/** Notifies a member that an admin may read one of their conversations, and until when. */
export type WireNotice = { type: "break_glass"; by: string; ref: string; reason: string; at: string; until: string }

/** A member's request for access to a project. The project's owners decide it. `at` is an ISO date. */
export type HubRequest = { project: string; member: string; at: string }
/** `group_level` is the level that groups of the identity provider give. */
export type HubMemberLevel = { name: string; level: string; group_level?: string }

/** A login that the person completes on their identity provider's page. The client asks every `interval` seconds. */
export type DeviceLogin = {
  /** Sent with each poll. Only the hub can read it. */
  login: string
  user_code: string
  verification_uri: string
  verification_uri_complete?: string
  /** In seconds. */
  expires_in: number
  interval: number
}
export type DeviceLoginState = { state: "waiting" | "slow_down" } | { state: "done"; token: string }

export type WireChunk = { hash: string; data: Buffer; plain_bytes: number }

/** The chunks of a conversation, in order. If messages are added, all chunks but the last stay the same. */
export function* chunksOf(messages: Iterable<WireMessage>): Generator<WireChunk> {
  let lines: string[] = []
  let chars = 0
  for (const message of messages) {
    const line = JSON.stringify(message)
    // The size of the earlier lines is estimated: each of their characters has at most four bytes.
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
  return { hash: sha256(plain), data: padChunk(zstdCompressSync(plain), plain.length), plain_bytes: plain.length }
}

/**
 * A hub refuses chunks that decompress to a large multiple of their size. Repetitive text does, so a skippable frame is appended.
 */
function padChunk(data: Buffer, plainBytes: number): Buffer {
  const missing = Math.ceil(plainBytes / MAX_RATIO) - data.length
  if (plainBytes <= ALWAYS_ALLOWED_PLAIN || missing <= 0) return data
  const frame = Buffer.alloc(8 + missing)
  frame.writeUInt32LE(SKIPPABLE_FRAME, 0)
  frame.writeUInt32LE(missing, 4)
  return Buffer.concat([data, frame])
}

/** The magic number of a skippable frame (RFC 8878). */
const SKIPPABLE_FRAME = 0x184d2a50

/** The maximum uncompressed size of a chunk for which this many bytes were sent. */
export function maxPlain(sentBytes: number): number {
  return Math.min(MAX_CHUNK_PLAIN, Math.max(ALWAYS_ALLOWED_PLAIN, sentBytes * MAX_RATIO))
}

/** Throws if the bytes are damaged, or decompress to more than `maxBytes`. The caller must check the hash. */
export function unpackChunk(
  data: Uint8Array,
  maxBytes = MAX_STORED_PLAIN,
): { hash: string; messages: WireMessage[]; plainBytes: number } {
  const plain = decompress(data, maxBytes)
  const messages = linesIn(plain).map((line) => JSON.parse(line) as WireMessage)
  return { hash: sha256(plain), messages, plainBytes: plain.length }
}

/** True if decompression failed because the result exceeds the limit. */
export function isTooLarge(error: unknown): boolean {
  return codeOf(error) === "ERR_BUFFER_TOO_LARGE"
}

/** The lines of a chunk, one message each, so that a single message can be parsed alone. Throws like `unpackChunk`. */
export function chunkLines(data: Uint8Array): string[] {
  return linesIn(decompress(data))
}

function decompress(data: Uint8Array, maxBytes = MAX_STORED_PLAIN): Buffer {
  return zstdDecompressSync(data, { maxOutputLength: maxBytes })
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
