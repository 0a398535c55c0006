import { createHash } from "node:crypto"
import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message, Part } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { isRecord, record, string, time } from "../../core/record.ts"
import type { Parsed } from "../kit/connector.ts"
import { digestOf, withoutBulk } from "../kit/kept-text.ts"

// Claude Code's log of prompts, all projects in one file. It outlives the transcripts, which are deleted after a month:
// of a conversation that is gone it still has what the person said.

/** Any transcript of the same conversation says more. */
const PROMPTS_ONLY = 1

export function stripPrompt(raw: RawRecord, chars: number): RawRecord {
  for (const pasted of Object.values(record(raw.pastedContents) ?? {})) {
    if (!isRecord(pasted) || pasted.type !== "image" || typeof pasted.content !== "string") continue
    Object.assign(pasted, digestOf(Buffer.from(pasted.content, "base64"), string(pasted.mediaType)))
    pasted.content = undefined
  }
  return chars > 1_000_000 ? withoutBulk(raw) : raw
}

export function parseHistory(all: Iterable<RawRecord>): Parsed {
  const conversations = new Map<string, Conversation>()
  const seen = new Set<string>()
  const unknown = createCounts()
  for (const raw of all) {
    if (typeof raw.display !== "string") {
      unknown.add(string(raw.type) ?? "untyped")
      continue
    }
    const message = promptOf(raw, raw.display)
    const conversation = conversationOf(raw, conversations)
    const once = `${conversation.id} ${message.key}`
    if (message.parts.length === 0 || seen.has(once)) continue
    seen.add(once)
    add(message, conversation)
  }
  return {
    conversations: [...conversations.values()].filter(({ messages }) => messages.length > 0),
    unknown: unknown.all(),
  }
}

function promptOf(raw: RawRecord, display: string): Message {
  const at = time(raw.timestamp)
  const pasted = Object.values(record(raw.pastedContents) ?? {}).filter(isRecord)
  const texts = [display, ...pasted.map((paste) => string(paste.content) ?? "")].filter((text) => text.trim() !== "")
  const parts: Part[] = texts.length > 0 ? [{ type: "text", text: texts.join("\n\n"), origin: "person" }] : []
  for (const paste of pasted) {
    const [sha256, mime] = [string(paste.sha256), string(paste.media_type)]
    if (sha256 === undefined || typeof paste.bytes !== "number") continue
    parts.push({ type: "image", text: "", origin: "person", bytes: paste.bytes, sha256, mime: mime || undefined })
  }
  const key = `history:${String(raw.timestamp)}:${hash(display)}`
  return { key, role: "user", at, parts }
}

/** Older builds did not say which conversation a prompt was for: those of one project and day stand together. */
export function promptOwner(raw: RawRecord): string {
  const at = time(raw.timestamp)
  const day = at === undefined ? "undated" : new Date(at).toISOString().slice(0, 10)
  return string(raw.sessionId) ?? `history-${hash(string(raw.project) ?? "")}-${day}`
}

function conversationOf(raw: RawRecord, conversations: Map<string, Conversation>): Conversation {
  const project = string(raw.project)
  const id = promptOwner(raw)
  const known = conversations.get(id)
  if (known) return known
  const made: Conversation = {
    id,
    kind: "person",
    cwds: project === undefined ? [] : [project],
    messages: [],
    authority: PROMPTS_ONLY,
  }
  conversations.set(id, made)
  return made
}

function add(message: Message, conversation: Conversation): void {
  conversation.messages.push(message)
  const { at } = message
  if (at !== undefined) {
    conversation.started_at = Math.min(at, conversation.started_at ?? at)
    conversation.ended_at = Math.max(at, conversation.ended_at ?? at)
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12)
}
