import { createHash } from "node:crypto"
import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message, Part, Title } from "../../core/conversation.ts"
import { isRecord, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { cutLongTexts, digestOf } from "../kit/messages.ts"
import { contentText, type ToolUse } from "./content.ts"
import { messagesOf, type Thread, type ThreadMessages } from "./messages.ts"

/** The authority of a transcript. It is above that of a subagent's records inside its parent's transcript. */
const TRANSCRIPT_AUTHORITY = 10
const COPY_AUTHORITY = 5
const MAX_TITLE = 120

/** Record types that are parsed, or stored for a later parser; all others are counted. */
const KNOWN_TYPES = new Set([
  "agent-name",
  "ai-title",
  "assistant",
  "attachment",
  "cost-state",
  "custom-title",
  "dex-spilled",
  "dex-subagent",
  "last-prompt",
  "pr-link",
  "progress",
  "queue-operation",
  "relocated",
  "summary",
  "system",
  "user",
  "worktree-state",
])

/** Parses the conversations of one transcript: the one that it is named after, and subagents that are recorded only inside it. */
export function parseTranscript(all: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const count = (type: string) => unknown.add(type)
  const name = transcriptNameOf(unit.key)
  const { ownRecords, embedded, spilled } = assignRecords(all, name, count)
  const thread = messagesOf(
    { id: name.id, records: ownRecords, author: name.isSubagent ? "agent" : "person", spilled },
    count,
  )
  const conversations = [
    name.isSubagent ? subagentConversation(name, ownRecords, thread) : mainConversation(name, ownRecords, thread),
  ]
  for (const [id, side] of embedded) {
    const sideThread: Thread = { id, records: side.records, author: "agent", spilled }
    conversations.push(embeddedConversation(id, side, name, thread.calls, messagesOf(sideThread, count)))
  }
  return {
    conversations: conversations.filter((conversation) => conversation.messages.length > 0),
    unknown: unknown.all(),
  }
}

type Name = { id: string; isSubagent: boolean; session: string | undefined }

/**
 * Parses `<project>/<session>.jsonl`, `<project>/<session>/subagents/…/agent-<id>.jsonl` or, from older builds,
 * `<project>/agent-<id>.jsonl`.
 */
function transcriptNameOf(key: string): Name {
  const segments = key.split("/")
  const stem = segments.at(-1)!.replace(/\.jsonl$/, "")
  if (!stem.startsWith("agent-")) return { id: stem, isSubagent: false, session: stem }
  const subagentsAt = segments.indexOf("subagents")
  return {
    id: stem.slice("agent-".length),
    isSubagent: true,
    session: subagentsAt > 0 ? segments[subagentsAt - 1] : undefined,
  }
}

type EmbeddedThread = { records: RawRecord[]; call_id: string | undefined }
type AssignedRecords = { ownRecords: RawRecord[]; embedded: Map<string, EmbeddedThread>; spilled: Map<string, string> }

/** Assigns each record to its conversation. A record that was written twice counts once. */
function assignRecords(all: Iterable<RawRecord>, name: Name, countUnknown: (type: string) => void): AssignedRecords {
  const seenUuids = new Set<string>()
  const assigned: AssignedRecords = { ownRecords: [], embedded: new Map(), spilled: new Map() }
  const sidechains = new Map<string, string>()
  for (const raw of all) {
    const uuid = string(raw.uuid)
    if (uuid !== undefined) {
      if (seenUuids.has(uuid)) continue
      seenUuids.add(uuid)
    }
    if (raw.type === "dex-spilled") {
      assigned.spilled.set(String(raw.tool_use_id), contentText(raw.content))
      continue
    }
    if (!KNOWN_TYPES.has(String(raw.type))) {
      countUnknown(raw.type === undefined ? "untyped" : String(raw.type))
      continue
    }
    const data = raw.type === "progress" ? record(raw.data) : undefined
    if (data && data.type !== "agent_progress" && data.type !== "hook_progress")
      countUnknown(`progress:${String(data.type)}`)
    const agentId = data && string(data.agentId)
    if (agentId !== undefined) {
      const thread = embeddedThread(assigned, agentId)
      thread.call_id ??= string(raw.parentToolUseID)
      thread.records.push(...agentRecords(raw, data!, seenUuids))
    }
    if (raw.isSidechain === true && !name.isSubagent && uuid !== undefined && !data) {
      const root = sidechains.get(String(raw.parentUuid)) ?? string(raw.agentId) ?? uuid
      sidechains.set(uuid, root)
      embeddedThread(assigned, root).records.push(raw)
    } else assigned.ownRecords.push(raw)
  }
  return assigned
}

function embeddedThread({ embedded }: AssignedRecords, id: string): EmbeddedThread {
  const thread = embedded.get(id) ?? { records: [], call_id: undefined }
  embedded.set(id, thread)
  return thread
}

/** Returns a subagent's records in a progress record, each once, with the session, folder and version of that record. */
function agentRecords(raw: RawRecord, data: RawRecord, seenUuids: Set<string>): RawRecord[] {
  const { sessionId, cwd, gitBranch, version, entrypoint } = raw
  const messages = [...records(data.normalizedMessages), record(data.message)]
  return messages.flatMap((message) => {
    const uuid = message && string(message.uuid)
    if (!message || (uuid !== undefined && seenUuids.has(uuid))) return []
    if (uuid !== undefined) seenUuids.add(uuid)
    return [{ ...message, sessionId, cwd, gitBranch, version, entrypoint }]
  })
}

function mainConversation(name: Name, ownRecords: RawRecord[], thread: ThreadMessages): Conversation {
  const facts = factsOf(ownRecords)
  const title = titleOf(ownRecords)
  const fork_of = string(ownRecords.map((raw) => record(raw.forkedFrom)?.sessionId ?? raw.forkedFrom).find(string))
  const resume_of = fork_of === undefined ? resumedFrom(ownRecords, name.id) : undefined
  return {
    id: name.id,
    kind: facts.isAutomatic ? "automation" : "person",
    title,
    ...facts.fields,
    fork_of: fork_of !== undefined && fork_of !== name.id ? fork_of : undefined,
    resume_of,
    messages: thread.messages,
    authority: TRANSCRIPT_AUTHORITY,
  }
}

/** Finds the resumed conversation. Claude Code 1.0.x copied it into the new file; the copies have the old session id. */
function resumedFrom(ownRecords: RawRecord[], id: string): string | undefined {
  const sessions = new Set(ownRecords.flatMap((raw) => (raw.uuid !== undefined ? (string(raw.sessionId) ?? []) : [])))
  if (!sessions.delete(id)) return undefined
  return [...sessions].at(-1)
}

function subagentConversation(name: Name, ownRecords: RawRecord[], thread: ThreadMessages): Conversation {
  const facts = factsOf(ownRecords)
  const meta = ownRecords.findLast((raw) => raw.type === "dex-subagent")
  const parent =
    name.session ?? ownRecords.map((raw) => string(raw.sessionId)).find((id) => id && !id.startsWith("agent-"))
  const call_id = string(meta?.toolUseId)
  const description = string(meta?.description)
  const title: Title | undefined = description ? { text: shortTitle(description), from: "agent" } : titleOf(ownRecords)
  return {
    id: name.id,
    kind: "subagent",
    title,
    ...facts.fields,
    parent: parent === undefined ? undefined : { id: parent, call_id },
    messages: thread.messages,
    authority: TRANSCRIPT_AUTHORITY,
  }
}

function embeddedConversation(
  id: string,
  thread: EmbeddedThread,
  parent: Name,
  calls: Map<string, ToolUse>,
  parsed: ThreadMessages,
): Conversation {
  const call_id = thread.call_id ?? callByPrompt(thread.records, calls)
  const description = call_id === undefined ? undefined : string(calls.get(call_id)?.input.description)
  const title: Title | undefined = description ? { text: shortTitle(description), from: "agent" } : undefined
  return {
    id,
    kind: "subagent",
    title,
    ...factsOf(thread.records).fields,
    // A resumed conversation's copy still names the conversation that started the subagent.
    parent: { id: string(thread.records[0]?.sessionId) ?? parent.id, call_id },
    messages: parsed.messages,
    authority: COPY_AUTHORITY,
  }
}

/** Finds the call that started a sidechain. It has the same prompt; 1.0.x does not record its id. */
function callByPrompt(side: RawRecord[], calls: Map<string, ToolUse>): string | undefined {
  const prompt = contentText(record(side.find((raw) => raw.type === "user")?.message)?.content).trim()
  if (prompt === "") return undefined
  for (const call of calls.values()) {
    const callPrompt = string(call.input.prompt)
    if (callPrompt !== undefined && callPrompt.trim() === prompt) return call.id
  }
  return undefined
}

type ConversationFacts = Pick<
  Conversation,
  "cwds" | "git_branch" | "git_commit" | "agent_version" | "started_at" | "ended_at"
>

function factsOf(ownRecords: RawRecord[]): { fields: ConversationFacts; isAutomatic: boolean } {
  const cwds = new Set<string>()
  let git_branch: string | undefined
  let git_commit: string | undefined
  let agent_version: string | undefined
  let first = Number.POSITIVE_INFINITY
  let last = Number.NEGATIVE_INFINITY
  let [ranByScript, ranByPerson] = [false, false]
  for (const raw of ownRecords) {
    const worktree = record(raw.worktreeSession)
    for (const cwd of [raw.cwd, raw.relocatedCwd, worktree?.originalCwd, worktree?.worktreePath]) {
      if (typeof cwd === "string" && cwd !== "") cwds.add(cwd)
    }
    git_branch = string(raw.gitBranch) ?? string(worktree?.worktreeBranch) ?? git_branch
    git_commit ??= string(worktree?.originalHeadCommit)
    agent_version = string(raw.version) ?? agent_version
    if (typeof raw.entrypoint === "string") {
      if (raw.entrypoint.startsWith("sdk")) ranByScript = true
      else ranByPerson = true
    }
    const at = time(raw.timestamp)
    if (at === undefined) continue
    if (at < first) first = at
    if (at > last) last = at
  }
  return {
    fields: {
      cwds: [...cwds],
      git_branch,
      git_commit,
      agent_version,
      started_at: first <= last ? first : undefined,
      ended_at: first <= last ? last : undefined,
    },
    isAutomatic: ranByScript && !ranByPerson,
  }
}

/** Prefers the person's title to the agent's, and that to a summary. Of several titles of a kind, the last one counts. */
function titleOf(ownRecords: RawRecord[]): Title | undefined {
  const lastText = (type: string, field: string) =>
    string(ownRecords.findLast((raw) => raw.type === type && raw[field])?.[field])
  const personTitle = lastText("custom-title", "customTitle") ?? lastText("agent-name", "agentName")
  if (personTitle !== undefined) return { text: shortTitle(personTitle), from: "person" }
  const agentTitle = lastText("ai-title", "aiTitle")
  if (agentTitle !== undefined) return { text: shortTitle(agentTitle), from: "agent" }
  const summary = summaryOf(ownRecords)
  return summary === undefined ? undefined : { text: shortTitle(summary), from: "summary" }
}

/**
 * Finds the conversation's summary. Claude Code 2.0.x wrote summaries of other conversations into a file too: a summary belongs
 * to the conversation only if its leaf does.
 */
function summaryOf(ownRecords: RawRecord[]): string | undefined {
  const uuids = new Set(ownRecords.map((raw) => raw.uuid))
  const summary = ownRecords.findLast(
    (raw) => raw.type === "summary" && raw.leafUuid !== undefined && uuids.has(raw.leafUuid),
  )
  return string(summary?.summary)
}

function shortTitle(text: string): string {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE - 1)}…` : line
}

// Claude Code's log of prompts, with all projects in one file. Transcripts are deleted after a month, but the log remains, so it
// still has what the person typed in a deleted conversation.

/** The authority of the prompt log, below that of any transcript of the same conversation. */
const PROMPT_LOG_AUTHORITY = 1

export function stripPrompt(raw: RawRecord, chars: number): RawRecord {
  for (const pasted of Object.values(record(raw.pastedContents) ?? {})) {
    if (!isRecord(pasted) || pasted.type !== "image" || typeof pasted.content !== "string") continue
    Object.assign(pasted, digestOf(Buffer.from(pasted.content, "base64"), string(pasted.mediaType)))
    pasted.content = undefined
  }
  return chars > 1_000_000 ? cutLongTexts(raw) : raw
}

export function parseHistory(all: Iterable<RawRecord>): Parsed {
  const conversations = new Map<string, Conversation>()
  const promptKeys = new Set<string>()
  const unknown = createCounts()
  for (const raw of all) {
    if (typeof raw.display !== "string") {
      unknown.add(string(raw.type) ?? "untyped")
      continue
    }
    const message = promptOf(raw, raw.display)
    const conversation = conversationOf(raw, conversations)
    const promptKey = `${conversation.id} ${message.key}`
    if (message.parts.length === 0 || promptKeys.has(promptKey)) continue
    promptKeys.add(promptKey)
    addPrompt(message, conversation)
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

/** The conversation of a prompt. Older builds did not record it, so prompts of the same project and day are grouped. */
export function promptOwner(raw: RawRecord): string {
  const at = time(raw.timestamp)
  const day = at === undefined ? "undated" : new Date(at).toISOString().slice(0, 10)
  return string(raw.sessionId) ?? `history-${hash(string(raw.project) ?? "")}-${day}`
}

function conversationOf(raw: RawRecord, conversations: Map<string, Conversation>): Conversation {
  const project = string(raw.project)
  const id = promptOwner(raw)
  const existing = conversations.get(id)
  if (existing) return existing
  const conversation: Conversation = {
    id,
    kind: "person",
    cwds: project === undefined ? [] : [project],
    messages: [],
    authority: PROMPT_LOG_AUTHORITY,
  }
  conversations.set(id, conversation)
  return conversation
}

function addPrompt(message: Message, conversation: Conversation): void {
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
