import { createHash } from "node:crypto"
import { zstdCompressSync, zstdDecompressSync } from "node:zlib"
import type { Kind, SourceId, Title } from "../core/conversation.ts"
import type { Usage } from "../core/usage.ts"
import type { StoredMessage } from "../store/history/store.ts"

// What a laptop and a hub say to each other. Both import this file; docs/hub.md names every call.

/** Larger pieces compress better; smaller ones are sent again for less when a conversation grows. */
const CHUNK_CHARS = 128 << 10
/** Of one chunk as it is sent, and unpacked. A chunk never holds more than one message past its size. */
export const MAX_CHUNK_BYTES = 8 << 20
export const MAX_CHUNK_PLAIN = 64 << 20
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

export type WireChunk = { hash: string; data: Buffer }

/** The chunks of a conversation, in order. Messages that were sent before give the same chunks again, but for the last. */
export function* chunksOf(messages: Iterable<WireMessage>): Generator<WireChunk> {
  let lines: string[] = []
  let chars = 0
  for (const message of messages) {
    const line = JSON.stringify(message)
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
  return { hash: sha256(plain), data: zstdCompressSync(plain) }
}

/** Throws where the bytes are not what was packed, or too many. Whoever is sent them checks the hash. */
export function unpackChunk(data: Uint8Array): { hash: string; messages: WireMessage[] } {
  const plain = unpacked(data)
  return { hash: sha256(plain), messages: linesIn(plain).map((line) => JSON.parse(line) as WireMessage) }
}

/** A message on each line, in the order in which they were packed: reading one need not read the others. Throws as `unpackChunk`. */
export function chunkLines(data: Uint8Array): string[] {
  return linesIn(unpacked(data))
}

function unpacked(data: Uint8Array): Buffer {
  return zstdDecompressSync(data, { maxOutputLength: MAX_CHUNK_PLAIN })
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
