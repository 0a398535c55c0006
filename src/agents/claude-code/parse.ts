import { createHash } from "node:crypto"
import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message, Part, Title } from "../../core/conversation.ts"
import { isRecord, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { cutLongTexts, digestOf } from "../kit/messages.ts"
import { contentText, type ToolUse } from "./content.ts"
import { messagesOf, type Thread, type ThreadMessages } from "./messages.ts"

/** The authority of a transcript. It is higher than the authority of a subagent's records inside its parent's transcript. */
const TRANSCRIPT_AUTHORITY = 10
const COPY_AUTHORITY = 5
const MAX_TITLE_LENGTH = 120

/** Record types that are parsed, or stored for a later parser; all others are counted. */
const KNOWN_TYPES = new Set([
  "agent-name",
  "ai-title",
  "assistant",
  "attachment",
  "continued-in",
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

/** Parses a transcript: the conversation after which the file is named, and subagents that are recorded only inside this file. */
export function parseTranscript(rawRecords: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const countUnknown = (type: string) => unknown.add(type)
  const name = transcriptNameOf(unit.key)
  const { ownRecords, embedded, spilled } = assignRecords(rawRecords, name, countUnknown)
  const thread = messagesOf(
    { id: name.id, records: ownRecords, author: name.isSubagent ? "agent" : "person", spilled },
    countUnknown,
  )
  const conversations = [
    name.isSubagent ? subagentConversation(name, ownRecords, thread) : mainConversation(name, ownRecords, thread),
  ]
  for (const [id, sidechain] of embedded) {
    const sidechainThread: Thread = { id, records: sidechain.records, author: "agent", spilled }
    conversations.push(
      embeddedConversation(id, sidechain, name, thread.calls, messagesOf(sidechainThread, countUnknown)),
    )
  }
  return {
    conversations: conversations.filter((conversation) => conversation.messages.length > 0),
    unknown: unknown.all(),
  }
}

type TranscriptName = { id: string; isSubagent: boolean; session: string | undefined }

/**
 * Parses `<project>/<session>.jsonl`, `<project>/<session>/subagents/…/agent-<id>.jsonl` or, from older builds,
 * `<project>/agent-<id>.jsonl`.
 */
function transcriptNameOf(key: string): TranscriptName {
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
function assignRecords(
  rawRecords: Iterable<RawRecord>,
  name: TranscriptName,
  countUnknown: (type: string) => void,
): AssignedRecords {
  const seenUuids = new Set<string>()
  const assigned: AssignedRecords = { ownRecords: [], embedded: new Map(), spilled: new Map() }
  const sidechains = new Map<string, string>()
  for (const raw of rawRecords) {
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

/** Returns a subagent's new records in a progress record, each with the progress record's session, folder and version. */
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

function mainConversation(name: TranscriptName, ownRecords: RawRecord[], thread: ThreadMessages): Conversation {
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

/** Finds the id of a resumed conversation, which Claude Code 1.0.x copied into the new file together with its session id. */
function resumedFrom(ownRecords: RawRecord[], id: string): string | undefined {
  const sessions = new Set(ownRecords.flatMap((raw) => (raw.uuid !== undefined ? (string(raw.sessionId) ?? []) : [])))
  if (!sessions.delete(id)) return undefined
  return [...sessions].at(-1)
}

function subagentConversation(name: TranscriptName, ownRecords: RawRecord[], thread: ThreadMessages): Conversation {
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
  parent: TranscriptName,
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
    // A copy in a resumed conversation still names the original conversation, which started the subagent.
    parent: { id: string(thread.records[0]?.sessionId) ?? parent.id, call_id },
    messages: parsed.messages,
    authority: COPY_AUTHORITY,
  }
}

/** Finds the call that started a sidechain by its prompt, because Claude Code 1.0.x does not record the call's id. */
function callByPrompt(sidechain: RawRecord[], calls: Map<string, ToolUse>): string | undefined {
  const prompt = contentText(record(sidechain.find((raw) => raw.type === "user")?.message)?.content).trim()
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
  let startedAt = Number.POSITIVE_INFINITY
  let endedAt = Number.NEGATIVE_INFINITY
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
    if (at < startedAt) startedAt = at
    if (at > endedAt) endedAt = at
  }
  return {
    fields: {
      cwds: [...cwds],
      git_branch,
      git_commit,
      agent_version,
      started_at: startedAt <= endedAt ? startedAt : undefined,
      ended_at: startedAt <= endedAt ? endedAt : undefined,
    },
    isAutomatic: ranByScript && !ranByPerson,
  }
}

/**
 * Prefers the person's title to the agent's, and the agent's to a summary. If there are several titles of one kind, the last one
 * counts.
 */
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
  return line.length > MAX_TITLE_LENGTH ? `${line.slice(0, MAX_TITLE_LENGTH - 1)}…` : line
}

// Parses Claude Code's log of prompts, one file for all projects. Claude Code deletes transcripts after a month but keeps the
// log, which therefore still contains what the person typed in a deleted conversation.

/** The authority of the prompt log. It is lower than the authority of any transcript. */
const PROMPT_LOG_AUTHORITY = 1

export function stripPrompt(raw: RawRecord, chars: number): RawRecord {
  for (const pasted of Object.values(record(raw.pastedContents) ?? {})) {
    if (!isRecord(pasted) || pasted.type !== "image" || typeof pasted.content !== "string") continue
    Object.assign(pasted, digestOf(Buffer.from(pasted.content, "base64"), string(pasted.mediaType)))
    pasted.content = undefined
  }
  return chars > 1_000_000 ? cutLongTexts(raw) : raw
}

export function parseHistory(rawRecords: Iterable<RawRecord>): Parsed {
  const conversations = new Map<string, Conversation>()
  const promptKeys = new Set<string>()
  const unknown = createCounts()
  for (const raw of rawRecords) {
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

/**
 * Returns the id of the conversation to which a prompt belongs. Older builds did not record it, so prompts of the same project
 * and day are grouped.
 */
export function promptConversationId(raw: RawRecord): string {
  const at = time(raw.timestamp)
  const day = at === undefined ? "undated" : new Date(at).toISOString().slice(0, 10)
  return string(raw.sessionId) ?? `history-${hash(string(raw.project) ?? "")}-${day}`
}

function conversationOf(raw: RawRecord, conversations: Map<string, Conversation>): Conversation {
  const project = string(raw.project)
  const id = promptConversationId(raw)
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
