import { createHash } from "node:crypto"
import type { Conversation, Kind, Message, Title } from "../../core/conversation.ts"
import { number, parseObject, type RawRecord, record, records, string, time } from "../../core/record.ts"
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
  for (const line of raw)
    for (const each of line.table === "thread_items" ? rolloutLines(line) : [line]) handleRecord(rollout, each)
  for (const [id, call] of rollout.calls) finishCall(call, id)
  if (!rollout.hasTokenCounts) {
    for (const { message, usage } of rollout.usageRecords) message.usage = addRequest(message.usage, usage)
  }
  const drafts = settleDrafts(rollout)
  const conversations = drafts.length === 0 ? [] : [conversationOf(rollout, drafts)]
  return { conversations, unknown: Object.fromEntries(rollout.unknown) }
}

/** The keys of threads that are read from Codex's database of items, because they have no rollout. */
export const HISTORY_PREFIX = "history:"
const AUTHORITY = { rollout: 10, history: 5 }

const IGNORED_RECORDS = new Set(["world_state", "security_risk_score", "inter_agent_communication_metadata"])

function handleRecord(rollout: Rollout, line: RawRecord): void {
  const at = time(line.timestamp)
  rollout.lastTime = at ?? rollout.lastTime
  const payload = record(line.payload)
  if (line.type === "dex-thread") rollout.thread = line
  else if (line.type === "dex-cut") rollout.isCut = true
  else if (line.type === "dex-history") handleHistoryHeader(rollout, line)
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
 * Handles a record from before mid-2025, when records had no envelope. Such a file has a header, then the items themselves, with
 * state records in between.
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

/** Handles what Codex's list says about a thread without a rollout. */
function handleHistoryHeader(rollout: Rollout, line: RawRecord): void {
  const { id, cwd, cli_version, thread_source, model } = line
  const source = parseObject(string(line.source) ?? "") ?? line.source
  const git = { commit_hash: line.git_sha, branch: line.git_branch, repository_url: line.git_origin_url }
  handleHeader(rollout, { id, cwd, cli_version, source, thread_source, git })
  rollout.model = string(model)
}

/** The records of a rollout from which Codex made an item. Items of other types are as in `item_completed`. */
function rolloutLines({
  item_json,
  turn_id,
  rollout_ordinal: ordinal,
  created_at_ms: timestamp,
}: RawRecord): RawRecord[] {
  const item = record(item_json) ?? {}
  const id = string(item.id)
  const line = (type: string, payload: RawRecord) => ({ type, timestamp, ordinal, payload })
  const response = (payload: RawRecord) => line("response_item", { ...payload, turn_id })
  const completed = (type: string, fields: RawRecord = item) =>
    line("event_msg", { type: "item_completed", turn_id, item: { ...fields, id, type } })
  const call = (name: string, input: RawRecord, output: unknown) => [
    response({ type: "function_call", id: `${id}:call`, call_id: id, name, arguments: JSON.stringify(input) }),
    response({ type: "function_call_output", id: `${id}:output`, call_id: id, output: output ?? "" }),
  ]
  switch (item.type) {
    case "userMessage":
      return [response({ type: "message", id, role: "user", content: item.content })]
    case "agentMessage":
      return [response({ type: "message", id, role: "assistant", content: [{ type: "output_text", text: item.text }] })]
    case "reasoning":
      return [completed("Reasoning", { summary_text: item.summary, raw_content: item.content })]
    case "commandExecution": {
      const [action, ...others] = records(item.commandActions)
      const cmd = (others.length === 0 ? string(action?.command) : undefined) ?? item.command
      const outcome = { command: cmd, exit_code: item.exitCode, status: item.status }
      return [...call("exec_command", { cmd }, item.aggregatedOutput), completed("CommandExecution", outcome)]
    }
    case "fileChange": {
      const changes = records(item.changes).map(({ path, kind, diff }) => {
        const type = string(record(kind)?.type) ?? ""
        const move_path = record(kind)?.move_path ?? undefined
        return [String(path), type === "add" ? { type, content: diff } : { type, unified_diff: diff, move_path }]
      })
      const outcome = { changes: Object.fromEntries(changes), status: item.status }
      return [...call("apply_patch", { files: changes.map(([path]) => path) }, ""), completed("FileChange", outcome)]
    }
    case "mcpToolCall": {
      const text = itemsText(record(item.result)?.content) || (string(record(item.error)?.message) ?? "")
      return [
        ...call(`mcp__${item.server}__${item.tool}`, record(item.arguments) ?? {}, text),
        completed("McpToolCall"),
      ]
    }
    default:
      return [completed(String(item.type).replace(/^./, (letter) => letter.toUpperCase()))]
  }
}

/** Marks the turns that were rolled back. Drops events that repeat response items, and known prompts that a compaction copied. */
function settleDrafts(rollout: Rollout): Draft[] {
  const coveredKinds = new Set(
    rollout.entries.flatMap((entry) => ("message" in entry && !entry.isStandIn ? entry.kind : [])),
  )
  const drafts: Draft[] = []
  for (const entry of rollout.entries) {
    if ("turnCount" in entry) rollBack(drafts, entry.turnCount)
    else if (!entry.isStandIn || !coveredKinds.has(entry.kind)) drafts.push(entry)
  }
  return withoutCopies(drafts)
}

/**
 * Marks the last `turnCount` turns as abandoned. Each turn begins with a prompt. If there are fewer prompts, marks everything
 * from the first prompt on.
 */
function rollBack(drafts: Draft[], turnCount: number): void {
  let remaining = turnCount
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
    ended_at: rollout.lastTime,
    messages,
    authority: rollout.unit.key.startsWith(HISTORY_PREFIX) ? AUTHORITY.history : AUTHORITY.rollout,
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

/**
 * Returns the thread's name or title. In the terminal, only the person names a thread; the app and the extension generate names.
 */
function titleOf(rollout: Rollout): Title | undefined {
  const name = string(rollout.thread.name) ?? rollout.name
  const source = rollout.meta?.source
  if (name) return { text: name, from: source === "cli" || source === "exec" ? "person" : "agent" }
  const title = string(rollout.thread.title)
  return title ? { text: title, from: "agent" } : undefined
}

// A compaction replaces the history that the model receives with the person's prompts and a summary of the rest. It may
// also rewrite the rollout, which then has only its first record, the compaction, and later records.

/** The first words of a summary in the replacement history. */
const SUMMARY_PREFIX = "Another language model started to solve this problem"

/**
 * Returns the records of a rollout that a compaction rewrote, with the dropped records in their original place. Undefined if the
 * rollout does not begin with a compaction.
 */
export function rejoinRollout(dropped: RawRecord[], current: RawRecord[]): RawRecord[] | undefined {
  const setupEnd = current.findIndex(({ type }) => type !== "dex-thread" && type !== "session_meta")
  const firstContent = current.find((line) => !isSetup(line))
  return firstContent?.type === "compacted"
    ? [...current.slice(0, setupEnd), CUT_MARK, ...dropped, ...current.slice(setupEnd)]
    : undefined
}

/** A record that dex inserts to show that a compaction cut the rollout. */
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
  const summaryItem = message === undefined && history.at(-1)?.type !== "compaction" ? history.at(-1) : undefined
  const text = message ?? string(itemsText(summaryItem?.content).trim())
  rollout.isCut ||= rollout.entries.length === 0
  if (rollout.isCut)
    addCompactedPrompts(
      rollout,
      history.filter((item) => item !== summaryItem && !isSummary(item, message)),
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
  const promptTexts = ownPrompts.map(({ message }) => promptTextOf(message))
  return drafts.filter(({ message, repeat }) => {
    if (repeat === undefined) return true
    const copiedText = promptTextOf(message)
    const isKnown =
      keys.has(message.key) || promptTexts.filter((text) => isSamePrompt(text, copiedText)).length > repeat
    if (!isKnown) promptTexts.push(copiedText)
    return !isKnown
  })
}

function promptTextOf({ parts }: Message): string {
  return parts.flatMap(({ text, origin }) => (origin === "injected" ? [] : text.trim())).join("\n")
}

/** Whether a text and a copy are the same prompt. In the copy of a long prompt, Codex leaves out the middle. */
function isSamePrompt(text: string, copy: string): boolean {
  if (text === copy) return true
  const [start, end] = copy.split(/…\d+ tokens truncated…/)
  return end !== undefined && text.startsWith(start!.trimEnd()) && text.endsWith(end.trimStart())
}
