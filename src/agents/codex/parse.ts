import { createHash } from "node:crypto"
import type { Conversation, Kind, Message, Title } from "../../core/conversation.ts"
import { number, type RawRecord, record, records, string, time } from "../../core/record.ts"
import { addRequest } from "../../core/usage.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { handleEvent } from "./events.ts"
import { agentMessageParts, codexUsage, handleItem, itemsText, messageParts, textFields } from "./items.ts"
import {
  addCwd,
  addMessage,
  containsText,
  countUnknown,
  type Draft,
  finishCall,
  historyKey,
  isSubagentThread,
  newRollout,
  type Rollout,
  rolloutId,
  speakerOf,
} from "./rollout.ts"

/**
 * Parses the records of a rollout. `response_item` records contain the conversation; events repeat it, and are used for what only
 * they contain: exit codes, diffs, tokens, rollbacks. If a file has no response items of a kind, events replace them.
 */
export function parseRollout(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const rollout = newRollout(unit)
  for (const line of raw) handleRecord(rollout, line)
  for (const [id, call] of rollout.calls) finishCall(call, id)
  if (!rollout.hasTokenCounts) {
    for (const { message, usage } of rollout.usageRecords) message.usage = addRequest(message.usage, usage)
  }
  const drafts = settleDrafts(rollout)
  const conversations = drafts.length === 0 ? [] : [conversationOf(rollout, drafts)]
  return { conversations, unknown: Object.fromEntries(rollout.unknown) }
}

const IGNORED_RECORDS = new Set(["world_state", "security_risk_score", "inter_agent_communication_metadata"])

function handleRecord(rollout: Rollout, line: RawRecord): void {
  const at = time(line.timestamp)
  rollout.lastAt = at ?? rollout.lastAt
  const payload = record(line.payload)
  if (line.type === "dex-thread") rollout.thread = line
  else if (line.type === "dex-cut") rollout.isCut = true
  else if (!payload) handleBareRecord(rollout, line, at)
  else {
    switch (line.type) {
      case "session_meta":
        handleHeader(rollout, payload)
        break
      case "turn_context":
        rollout.turn = string(payload.turn_id) ?? rollout.turn
        rollout.model = string(payload.model) ?? rollout.model
        addCwd(rollout, payload.cwd)
        break
      case "response_item":
        handleItem(rollout, payload, at, number(line.ordinal))
        break
      case "event_msg":
        handleEvent(rollout, payload, at)
        break
      case "compacted":
        handleCompaction(rollout, payload, at)
        break
      case "inter_agent_communication":
        addMessage(rollout, "user", agentMessageParts(payload), { payload, at, kind: "agent_message", isStandIn: true })
        break
      case "token_usage_record": {
        const usage = codexUsage(record(payload.usage))
        if (usage && rollout.lastReply) rollout.usageRecords.push({ message: rollout.lastReply, usage })
        break
      }
      default:
        if (!IGNORED_RECORDS.has(String(line.type))) countUnknown(rollout, String(line.type))
    }
  }
}

/**
 * Handles a record from before mid-2025, when there was no envelope: a header, then the items themselves, with state records in
 * between.
 */
function handleBareRecord(rollout: Rollout, line: RawRecord, at?: number): void {
  if (line.record_type === "state") return
  if (typeof line.type === "string") handleItem(rollout, line, at)
  else if (string(line.id) && line.timestamp !== undefined) handleHeader(rollout, line)
  else if (Object.keys(line).length > 0) countUnknown(rollout, "(no type)")
}

/** Handles a header. The first one belongs to the file. A later header of another thread begins records that a fork copied. */
function handleHeader(rollout: Rollout, meta: RawRecord): void {
  rollout.meta ??= meta
  rollout.currentThread = string(meta.id) ?? rollout.currentThread
  if (meta.id === rollout.meta.id) addCwd(rollout, meta.cwd)
}

/** Drops events that repeat response items, and marks the turns that were rolled back. */
function settleDrafts(rollout: Rollout): Draft[] {
  const coveredKinds = new Set(
    rollout.entries.flatMap((entry) => ("message" in entry && !entry.isStandIn ? entry.kind : [])),
  )
  const drafts: Draft[] = []
  for (const entry of rollout.entries) {
    if ("turns" in entry) rollBack(drafts, entry.turns)
    else if (!entry.isStandIn || !coveredKinds.has(entry.kind)) drafts.push(entry)
  }
  return withoutCopies(drafts)
}

/** Marks the last turns as abandoned. Each begins with a prompt. If there are fewer prompts, all from the first on are marked. */
function rollBack(drafts: Draft[], turns: number): void {
  let remaining = turns
  let firstAbandoned = drafts.length
  for (let i = drafts.length - 1; i >= 0 && remaining > 0; i--) {
    if (!drafts[i]!.startsTurn || drafts[i]!.message.abandoned) continue
    firstAbandoned = i
    remaining--
  }
  for (const { message } of drafts.slice(firstAbandoned)) message.abandoned = true
}

function conversationOf(rollout: Rollout, drafts: Draft[]): Conversation {
  const meta = rollout.meta ?? {}
  const git = record(meta.git)
  const id = rolloutId(rollout)
  const parent = parentOf(rollout)
  const forkOf = string(meta.forked_from_id) ?? string(record(meta.history_base)?.thread_id) ?? string(meta.id)
  const messages = drafts.map(({ message }) => message)
  const startedAt = time(meta.timestamp) ?? messages.find(({ at }) => at !== undefined)?.at
  const title = titleOf(rollout)
  return {
    id,
    kind: kindOf(rollout, parent),
    title,
    cwds: rollout.cwds,
    ...textFields({
      git_branch: git?.branch,
      git_remote: git?.repository_url,
      git_commit: git?.commit_hash,
      agent_version: meta.cli_version,
    }),
    parent: parent ? { id: parent } : undefined,
    fork_of: forkOf && forkOf !== id && forkOf !== parent ? forkOf : undefined,
    started_at: startedAt,
    ended_at: rollout.lastAt,
    messages,
    authority: 10,
  }
}

function parentOf({ meta, thread }: Rollout): string | undefined {
  const spawn = record(record(record(meta?.source)?.subagent)?.thread_spawn)
  return string(spawn?.parent_thread_id) ?? string(meta?.parent_thread_id) ?? string(thread.parent)
}

function kindOf(rollout: Rollout, parent: string | undefined): Kind {
  const { source, originator, thread_source } = rollout.meta ?? {}
  if (parent !== undefined || isSubagentThread(rollout)) return "subagent"
  const isScripted = source === "exec" || source === "mcp" || /exec|sdk/i.test(string(originator) ?? "")
  return isScripted || (thread_source !== undefined && thread_source !== "user") ? "automation" : "person"
}

/** In the terminal, only the person names a thread; the app and the extension generate names. */
function titleOf(rollout: Rollout): Title | undefined {
  const name = string(rollout.thread.name) ?? rollout.name
  const source = rollout.meta?.source
  if (name) return { text: name, from: source === "cli" || source === "exec" ? "person" : "agent" }
  const title = string(rollout.thread.title)
  return title ? { text: title, from: "agent" } : undefined
}

// A compaction replaces the history that the model receives with the person's prompts and a summary of the rest. It may
// also rewrite the rollout, which then has only its first record, the compaction, and later records.

/** The beginning of a summary in the history, used if Codex has no separate summary field. */
const SUMMARY_PREFIX = "Another language model started to solve this problem"

/**
 * Returns the records of a rollout that a compaction rewrote, with the dropped records in their original place. Undefined if the
 * rollout does not begin with a compaction.
 */
export function rejoinRollout(dropped: RawRecord[], current: RawRecord[]): RawRecord[] | undefined {
  const start = current.findIndex(({ type }) => type !== "dex-thread" && type !== "session_meta")
  const first = current.find((line) => !isSetup(line))
  return first?.type === "compacted"
    ? [...current.slice(0, start), CUT_MARK, ...dropped, ...current.slice(start)]
    : undefined
}

/** The record that marks a rollout as cut. */
const CUT_MARK: RawRecord = { type: "dex-cut" }

function isSetup({ type, payload }: RawRecord): boolean {
  if (type === "event_msg") return SETUP_EVENTS.has((payload as RawRecord | undefined)?.type)
  return SETUP_RECORDS.has(type)
}

const SETUP_RECORDS = new Set<unknown>(["dex-thread", "session_meta", "turn_context", "world_state"])
const SETUP_EVENTS = new Set<unknown>(["task_started", "thread_settings_applied", "token_count"])

/**
 * Adds the summary. If everything before it is gone from the rollout, also adds the prompts in the replacement history, because
 * some of them may not be recorded anywhere else.
 */
function handleCompaction(rollout: Rollout, payload: RawRecord, at?: number): void {
  const history = records(payload.replacement_history)
  const message = string(payload.message)
  // A remote compaction has the summary only in the replacement history, and that may be encrypted.
  const last = message === undefined && history.at(-1)?.type !== "compaction" ? history.at(-1) : undefined
  const text = message ?? string(itemsText(last?.content).trim())
  rollout.isCut ||= rollout.entries.length === 0
  if (rollout.isCut)
    addCompactedPrompts(
      rollout,
      history.filter((item) => item !== last && !isSummary(item, message)),
    )
  if (text === undefined || (message === undefined && containsText(rollout, text))) return
  addMessage(rollout, "system", [{ type: "summary", text, origin: "agent" }], { payload, at })
}

function isSummary({ content }: RawRecord, message: string | undefined): boolean {
  const text = itemsText(content)
  return text.startsWith(SUMMARY_PREFIX) || (message !== undefined && text.includes(message))
}

function addCompactedPrompts(rollout: Rollout, history: RawRecord[]): void {
  const counts = new Map<string, number>()
  for (const item of history) {
    if (item.type !== "message" || item.role !== "user") continue
    const parts = messageParts(rollout, item)
    if (!parts.some(({ origin }) => origin === speakerOf(rollout, item))) continue
    const content = createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16)
    const repeat = counts.get(content) ?? 0
    counts.set(content, repeat + 1)
    // The time of a copied prompt is unknown.
    const copy: Message = { key: historyKey(rollout, item, `${content}:${repeat}`), role: "user", parts }
    rollout.entries.push({ message: copy, startsTurn: true, kind: "prompt", isStandIn: false, repeat })
  }
}

/** Drops the prompts of a compaction that the rollout itself or an earlier compaction contains too. */
export function withoutCopies(drafts: Draft[]): Draft[] {
  if (!drafts.some(({ repeat }) => repeat !== undefined)) return drafts
  const ownPrompts = drafts.filter(({ repeat, message }) => repeat === undefined && message.role === "user")
  const keys = new Set(ownPrompts.map(({ message }) => message.key))
  const prompts = ownPrompts.map(({ message }) => wordsOf(message))
  return drafts.filter(({ message, repeat }) => {
    if (repeat === undefined) return true
    const words = wordsOf(message)
    const isKnown = keys.has(message.key) || prompts.filter((text) => isSamePrompt(text, words)).length > repeat
    if (!isKnown) prompts.push(words)
    return !isKnown
  })
}

function wordsOf({ parts }: Message): string {
  return parts.flatMap(({ text, origin }) => (origin === "injected" ? [] : text.trim())).join("\n")
}

/** Whether a copy is the same prompt. Codex shortens a long prompt in the middle. */
function isSamePrompt(text: string, copy: string): boolean {
  if (text === copy) return true
  const [start, end] = copy.split(/…\d+ tokens truncated…/)
  return end !== undefined && text.startsWith(start!.trimEnd()) && text.endsWith(end.trimStart())
}
