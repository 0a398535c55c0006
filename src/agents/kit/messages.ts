import { createHash } from "node:crypto"
import type { createCounts } from "../../core/by-name.ts"
import type { Conversation, Kind, Message, Origin, Part, Title } from "../../core/conversation.ts"
import { CONTEXT_TAG } from "../../core/conversation.ts"
import { isRecord, number, record, string, time } from "../../core/record.ts"
import type { Usage } from "../../core/usage.ts"
import type { Parsed } from "./connector.ts"

/** The maximum length of a text in a stored record, in characters. Longer texts are cut. */
const MAX_TEXT_CHARS = 1_000_000

/** The description that is stored for the bytes of an image or another attachment. */
export type Digest = { sha256: string; bytes: number; media_type?: string }

/**
 * Builds an image part from a stored digest; any other value gives a part without details. Keep the order of the fields: the key
 * of a Codex message without an id is derived from the serialised parts.
 */
export function imagePart(storedDigest: unknown, origin: Origin, text = ""): Part {
  const digest = record(storedDigest)
  const [mime, sha256, bytes] = [string(digest?.media_type), string(digest?.sha256), number(digest?.bytes)]
  return {
    type: "image",
    text,
    origin,
    mime,
    sha256,
    bytes,
  }
}

/** Returns a copy in which every text beyond the limit is cut, with a note. */
export function cutLongTexts<T>(value: T): T {
  if (typeof value === "string") return cutText(value) as T
  if (Array.isArray(value)) return value.map(cutLongTexts) as T
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, cutLongTexts(field)])) as T
}

function cutText(text: string): string {
  if (text.length <= MAX_TEXT_CHARS) return text
  const sha256 = createHash("sha256").update(text).digest("hex")
  return `${text.slice(0, MAX_TEXT_CHARS)}\n[dex: ${text.length - MAX_TEXT_CHARS} characters not kept, sha256 ${sha256}]`
}

export function digestOf(bytes: Uint8Array, media_type?: string): Digest {
  const sha256 = createHash("sha256").update(bytes).digest("hex")
  return { sha256, bytes: bytes.length, media_type }
}

/** Returns the digest of a `data:` URI, or undefined for any other URI. */
export function digestOfDataUri(uri: string): Digest | undefined {
  if (!uri.startsWith("data:")) return undefined
  const comma = uri.indexOf(",")
  if (comma === -1) return undefined
  const [media_type, ...parameters] = uri.slice("data:".length, comma).split(";")
  const encoding = parameters.includes("base64") ? "base64" : "utf8"
  return digestOf(Buffer.from(uri.slice(comma + 1), encoding), media_type || undefined)
}

/** A run of a user record's text: typed by the person, or inserted by the agent, a hook, a skill or a command. */
export type TextRun = { text: string; injected: boolean }

/**
 * Splits text at complete `<tag …>…</tag>` blocks, with which agents insert their own text into the user's turn. An
 * unclosed tag is the person's text: people do type angle brackets. Takes linear time for any text.
 */
export function splitInjected(text: string, tags: readonly string[]): TextRun[] {
  const runs: TextRun[] = []
  const unclosedTags = new Set<string>()
  let from = 0
  for (let open = text.indexOf("<"); open !== -1; open = text.indexOf("<", open + 1)) {
    const tag = tags.find((name) => startsTag(text, open, name))
    if (!tag || unclosedTags.has(tag)) continue
    const closing = `</${tag}>`
    const close = text.indexOf(closing, open)
    if (close === -1) {
      unclosedTags.add(tag)
      continue
    }
    const end = close + closing.length
    addRun(runs, text.slice(from, open), false)
    addRun(runs, text.slice(open, end), true)
    from = end
    open = end - 1
  }
  addRun(runs, text.slice(from), false)
  return runs
}

function startsTag(text: string, at: number, name: string): boolean {
  if (!text.startsWith(name, at + 1)) return false
  const next = text[at + 1 + name.length]
  return next === ">" || next === " " || next === "\n"
}

function addRun(runs: TextRun[], text: string, injected: boolean): void {
  const trimmed = text.trim()
  if (trimmed !== "") runs.push({ text: trimmed, injected })
}

/** dex's marks, also as agents escape them. */
const ADDED_MARKS = [
  { open: `<${CONTEXT_TAG}>`, close: `</${CONTEXT_TAG}>` },
  { open: `&lt;${CONTEXT_TAG}&gt;`, close: `&lt;/${CONTEXT_TAG}&gt;` },
]

/** Separates the texts that dex's hooks added at the end of a tool's output. */
export function splitAddedText(output: string): { text: string; added: Part[] } {
  let text = output
  for (;;) {
    const end = text.trimEnd()
    const mark = ADDED_MARKS.find(({ close }) => end.endsWith(close))
    const start = mark === undefined ? -1 : end.lastIndexOf(`\n${mark.open}\n`)
    if (start === -1) break
    text = end.slice(0, start)
  }
  const added = output.slice(text.length).trim()
  if (added === "") return { text, added: [] }
  // The added text is separated by an empty line.
  return { text: text.replace(/\n$/, ""), added: [{ type: "text", text: added, origin: "injected" }] }
}

/** Returns a function that makes names unique: from its second use on, a name gets a number. */
export function uniqueKeys(): (name: string) => string {
  const counts = new Map<string, number>()
  return (name) => {
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    return count === 1 ? name : `${name}:${count}`
  }
}

/** Adds the tokens of a session to its last answer and the model to all answers, for agents that record both only per session. */
export function addSessionUsage(messages: Message[], model: string | undefined, usage: Usage | undefined): void {
  const answers = messages.filter(({ role }) => role === "assistant")
  if (model !== undefined) for (const answer of answers) answer.model = model
  if (usage && answers.length > 0) answers.at(-1)!.usage = usage
}

/** Like `time`, but reads a date without a zone, as SQLite writes it, as UTC. */
export function utcTime(value: unknown): number | undefined {
  if (typeof value === "string" && /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?$/.test(value))
    return time(`${value.replace(" ", "T")}Z`)
  return time(value)
}

/** Returns the first and the last of the known times. */
export function spanOf(times: readonly (number | undefined)[]): { started_at?: number; ended_at?: number } {
  const knownTimes = times.filter((at) => at !== undefined)
  if (knownTimes.length === 0) return {}
  return {
    started_at: knownTimes.reduce((a, b) => Math.min(a, b)),
    ended_at: knownTimes.reduce((a, b) => Math.max(a, b)),
  }
}

/**
 * Returns the tokens and cost that the agent counted, or undefined if it counted no tokens. `prompt` includes the tokens read
 * from and written to the cache, so these are subtracted.
 */
export function usageFrom(
  counted: Partial<
    Record<"input" | "prompt" | "output" | "cache_read" | "cache_write" | "reasoning" | "cost", unknown>
  >,
): Usage | undefined {
  const countOf = (value: unknown) => Math.max(0, number(value) ?? 0)
  const [cache_read, cache_write, output] = [
    countOf(counted.cache_read),
    countOf(counted.cache_write),
    countOf(counted.output),
  ]
  const input = countOf(counted.input) + Math.max(0, countOf(counted.prompt) - cache_read - cache_write)
  if (input + output + cache_read + cache_write === 0) return undefined
  const [reasoning, cost] = [countOf(counted.reasoning) || undefined, countOf(counted.cost) || undefined]
  return { input, output, cache_read, cache_write, reasoning, cost }
}

/**
 * The facts that a parser gathered about a conversation. Fields of records may be passed unchecked, because values of the wrong
 * type are ignored. If the title is only a string, the agent made it. Without a `kind`, a conversation with a parent is a
 * subagent's.
 */
export type ConversationFields = {
  id: string
  kind?: Kind
  title?: Title | unknown
  cwd?: unknown
  cwds?: Iterable<unknown>
  git_branch?: unknown
  git_remote?: unknown
  git_commit?: unknown
  agent_version?: unknown
  parent?: unknown
  /** The parent's call that started this conversation. */
  call_id?: unknown
  fork_of?: unknown
  resume_of?: unknown
  /** Start and end times, in addition to those of the messages. */
  times?: readonly unknown[]
  messages: Message[]
  authority?: number
}

export function conversationFrom({ messages, ...fields }: ConversationFields): Conversation {
  const [parent, cwd] = [string(fields.parent), string(fields.cwd)]
  const agentTitle = string(fields.title)
  const cwds = [...(fields.cwds ?? [])].flatMap((path) => string(path) ?? [])
  return {
    id: fields.id,
    kind: fields.kind ?? (parent === undefined ? "person" : "subagent"),
    title: agentTitle === undefined ? (record(fields.title) as Title | undefined) : { text: agentTitle, from: "agent" },
    cwds: [...new Set(cwd === undefined ? cwds : [cwd, ...cwds])],
    git_branch: string(fields.git_branch),
    git_remote: string(fields.git_remote),
    git_commit: string(fields.git_commit),
    agent_version: string(fields.agent_version),
    parent: parent === undefined ? undefined : { id: parent, call_id: string(fields.call_id) },
    fork_of: string(fields.fork_of),
    resume_of: string(fields.resume_of),
    ...spanOf([...(fields.times ?? []).map(time), ...messages.map(({ at }) => at)]),
    messages,
    authority: fields.authority ?? 1,
  }
}

/** Builds the result of a parser: one conversation, or none if it has no messages. */
export function parsedFrom(fields: ConversationFields, unknown: ReturnType<typeof createCounts>): Parsed {
  return { conversations: fields.messages.length === 0 ? [] : [conversationFrom(fields)], unknown: unknown.all() }
}
