import { createHash } from "node:crypto"
import type { Effect, Hunk, Message, Origin, Part, Role } from "../../core/conversation.ts"
import { withoutUndefined } from "../../core/defined.ts"
import { array, isRecord, number, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import type { Usage } from "../../core/usage.ts"
import type { UnitName } from "../kit/connector.ts"
import {
  commandEffect,
  commitEffects,
  editEffects,
  fileEffect,
  hunkOfNewFile,
  hunksOfDiff,
  parsePatch,
  patchIn,
  toolOrigin,
} from "../kit/effects.ts"

/** The state while a rollout is parsed. */
export type Rollout = {
  unit: UnitName
  /** The first header, which belongs to the file's own thread. */
  meta: RawRecord | undefined
  /** The facts from Codex's database and index. */
  thread: RawRecord
  name: string | undefined
  /** The thread to which the current records belong. A fork begins with its parent's records. */
  currentThread: string | undefined
  turn: string | undefined
  model: string | undefined
  lastTime: number | undefined
  lastReply: Message | undefined
  lastTotal: RawRecord | undefined
  /** True if a compaction has removed records from the file. */
  isCut: boolean
  hasTokenCounts: boolean
  usageRecords: { message: Message; usage: Usage }[]
  cwds: string[]
  entries: (Draft | Rollback)[]
  calls: Map<string, CodexCall>
  contentByKey: Map<string, string>
  repeatCounts: Map<string, number>
  unknown: Map<string, number>
}

/**
 * A message that may still be dropped. `repeat` is set for a prompt that a compaction copied: it numbers equal prompts in that
 * compaction.
 */
export type Draft = { message: Message; startsTurn: boolean; kind?: DraftKind; isStandIn: boolean; repeat?: number }
export type Rollback = { turnCount: number }

/**
 * The kinds of messages that events repeat. An event's message is a stand-in: it counts only if no response item has its kind.
 */
export type DraftKind = "prompt" | "reply" | "thinking" | "agent_message"

export function newRollout(unit: UnitName): Rollout {
  return {
    unit,
    meta: undefined,
    thread: {},
    name: undefined,
    currentThread: undefined,
    turn: undefined,
    model: undefined,
    lastTime: undefined,
    lastReply: undefined,
    lastTotal: undefined,
    isCut: false,
    hasTokenCounts: false,
    usageRecords: [],
    cwds: [],
    entries: [],
    calls: new Map(),
    contentByKey: new Map(),
    repeatCounts: new Map(),
    unknown: new Map(),
  }
}

export type MessageContext = {
  payload: RawRecord
  at?: number
  kind?: DraftKind
  isStandIn?: boolean
  startsTurn?: boolean
}

/** Adds a message, unless it has no parts or was written twice. */
export function addMessage(rollout: Rollout, role: Role, parts: Part[], context: MessageContext): Message | undefined {
  if (parts.length === 0) return undefined
  const { at, kind, isStandIn = false, startsTurn = false } = context
  const key = keyOf(rollout, `${isStandIn}${role}${JSON.stringify(parts)}`, context.payload)
  if (key === undefined) return undefined
  const message: Message = { key, role, parts }
  if (at !== undefined) message.at = at
  if (role === "assistant") {
    if (rollout.model) message.model = rollout.model
    if (!isStandIn || !rollout.lastReply) rollout.lastReply = message
  }
  rollout.entries.push({ message, startsTurn, kind, isStandIn })
  return message
}

/**
 * Returns the key of a message, or undefined for a record that was written twice. The key is the record's own id, with its turn
 * if the id is a short one that other threads may use too. Older records have no id: their key is the turn, the content, and
 * its number among equal contents in the turn, because a fork copies these, but not the times or positions.
 */
function keyOf(rollout: Rollout, content: string, payload: RawRecord): string | undefined {
  const turnKey = turnKeyOf(rollout, payload)
  const id = string(payload.id)
  if (id !== undefined) {
    const key = GLOBAL_ID.test(id) ? id : `${turnKey}:${id}`
    const knownContent = rollout.contentByKey.get(key)
    if (knownContent === undefined) rollout.contentByKey.set(key, content)
    if (knownContent === undefined) return key
    if (knownContent === content) return undefined
  }
  const stem = `${turnKey}:${createHash("sha256").update(content).digest("hex").slice(0, 16)}`
  const count = rollout.repeatCounts.get(stem) ?? 0
  rollout.repeatCounts.set(stem, count + 1)
  return `${stem}:${count}`
}

/** Like `keyOf`, for a prompt that a compaction copied. It does not change the keys of the rollout's own messages. */
export function historyKey(rollout: Rollout, payload: RawRecord, content: string): string {
  const id = string(payload.id)
  if (id !== undefined && GLOBAL_ID.test(id)) return id
  const turn = turnOf(payload)
  const turnKey = turn !== undefined && GLOBAL_ID.test(turn) ? turn : (rollout.currentThread ?? rolloutId(rollout))
  return `${turnKey}:kept:${content}`
}

/** Matches an id that is long enough to be random. Some local models only number their calls: `call_0`. */
const GLOBAL_ID = /[0-9A-Za-z]{16}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}/

/** Identifies a turn by its id or, in files from before turns had ids, by its thread and its number in the thread. */
function turnKeyOf(rollout: Rollout, payload: RawRecord): string {
  const turn = turnOf(payload) ?? rollout.turn
  if (turn !== undefined && GLOBAL_ID.test(turn)) return turn
  const thread = rollout.currentThread ?? rolloutId(rollout)
  return turn === undefined ? thread : `${thread}:${turn}`
}

function turnOf(payload: RawRecord): string | undefined {
  const metadata = record(payload.internal_chat_message_metadata_passthrough)
  return string(metadata?.turn_id) ?? string(payload.turn_id)
}

/** Returns the state of the call with this id, which is created if necessary. Without an id, the returned state is not kept. */
export function callWithId(rollout: Rollout, id: string | undefined): CodexCall {
  const call = (id !== undefined && rollout.calls.get(id)) || createCall()
  if (id !== undefined) rollout.calls.set(id, call)
  return call
}

export function countUnknown(rollout: Rollout, type: string): void {
  rollout.unknown.set(type, (rollout.unknown.get(type) ?? 0) + 1)
}

/**
 * The id of the conversation. A reverted thread continues in a second file under the same id: that file becomes a fork of the
 * first.
 */
export function rolloutId({ meta, unit }: Rollout): string {
  const [, thread, rollout] = /([0-9a-f-]{36})(?:_([0-9a-f-]+))?$/.exec(unit.key) ?? []
  const id = string(meta?.id) ?? thread ?? unit.key
  return rollout && id === thread ? `${id}_${rollout}` : id
}

export function isSubagentThread({ meta }: Rollout): boolean {
  return record(meta?.source)?.subagent !== undefined || meta?.thread_source === "subagent"
}

/** The author of a user's turn. In a subagent's thread it is the parent agent, except in text copied from its parent. */
export function speakerOf(rollout: Rollout, payload: RawRecord, ordinal?: number): Origin {
  return isSubagentThread(rollout) && !isCopied(rollout, payload, ordinal) ? "agent" : "person"
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

function isCopied(rollout: Rollout, payload: RawRecord, ordinal: number | undefined): boolean {
  const ownHistoryStart = number(rollout.meta?.subagent_history_start_ordinal)
  if (ownHistoryStart !== undefined && ordinal !== undefined) return ordinal < ownHistoryStart
  const ownId = string(rollout.meta?.id) ?? ""
  const turn = turnOf(payload) ?? rollout.turn ?? ""
  // ids of this version begin with their time, so a turn older than the thread was copied
  return UUID_V7.test(ownId) && UUID_V7.test(turn) && turn < ownId
}

export function addCwd(rollout: Rollout, cwd: unknown): void {
  const path = string(cwd)
  if (path && !rollout.cwds.includes(path)) rollout.cwds.push(path)
}

export function containsText(rollout: Rollout, text: string): boolean {
  return rollout.entries.some(
    (entry) => "message" in entry && entry.message.parts.some((part) => part.text.includes(text)),
  )
}

type Result = Extract<Part, { type: "tool_result" }>

/** A tool call, with everything that later records add to it, in any order. */
export type CodexCall = {
  message?: Message
  tool?: string
  command?: string
  patch?: string
  image?: string
  result?: Result
  exitStatus?: number
  failed?: boolean
  changes?: RawRecord
  reads: string[]
  isRemote: boolean
}

export const createCall = (): CodexCall => ({ reads: [], isRemote: false })

const SHELL_TOOLS = /^(shell|shell_command|local_shell|exec_command|container\.exec|unified_exec)$/

/** Sets the fields of a call that can be derived from its input: its command, patch or image. */
export function describeCall(call: CodexCall, tool: string, input: string, args: RawRecord | undefined): void {
  call.tool = tool
  if (tool === "apply_patch") call.patch = patchIn(string(args?.input) ?? input)
  else if (tool === "view_image") call.image = string(args?.path)
  else if (SHELL_TOOLS.test(tool) && args) {
    call.command = commandText(args.cmd ?? args.command)
    if (call.command && /\bapply_?patch\b/.test(call.command)) call.patch = patchIn(call.command)
  }
}

/** Returns a command as text. From `["bash", "-lc", script]`, which Codex uses for every command, returns only the script. */
export function commandText(command: unknown): string | undefined {
  if (typeof command === "string") return string(command)
  const argv = array(command).filter((word) => typeof word === "string")
  if (argv.length === 3 && /(^|\/)(ba|z|da|fi)?sh$/.test(argv[0]!) && /^-l?c$/.test(argv[1]!)) return string(argv[2])
  return string(argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`)).join(" "))
}

/** Call this after all records are read. Adds effects to the message with the call, and hunks to the result. */
export function finishCall(call: CodexCall, id: string): void {
  const { message, result } = call
  const failed = call.failed ?? (call.exitStatus === undefined ? isFailedPatch(call) : call.exitStatus !== 0)
  if (result) {
    if (call.tool) result.tool = call.tool
    result.origin = call.isRemote ? "web" : toolOrigin(result.tool)
    if (failed !== undefined) result.is_error = failed
  }
  if (!message) return
  const effects: Effect[] = []
  const edits = call.patch !== undefined || call.changes ? editsOf(call, id, failed) : undefined
  if (edits) {
    if (result && edits.hunks.length > 0) result.hunks = edits.hunks
    effects.push(...editEffects(edits.hunks, id), ...edits.deleted)
  } else if (call.command) {
    const output = result?.text ?? ""
    effects.push(commandEffect(call.command, { call_id: id, exit_status: call.exitStatus, failed, output }))
    effects.push(...call.reads.map((path) => fileEffect(path, "read", id)))
    if (!failed) effects.push(...commitEffects(call.command, output, id))
  } else if (call.image) effects.push(fileEffect(call.image, "read", id))
  if (effects.length > 0) message.effects = [...(message.effects ?? []), ...effects]
}

/** Whether a patch did not apply, which only its output reports. Returns undefined for a call without a patch or a result. */
function isFailedPatch({ patch, result }: CodexCall): boolean | undefined {
  if (patch === undefined || !result) return undefined
  return /^(apply_patch verification failed|error|failed|invalid|patch rejected)/i.test(result.text)
}

type Edits = { hunks: Hunk[]; deleted: Effect[] }

/** Returns the edits of a call. A patch that failed, or whose outcome is unknown, has changed nothing. */
function editsOf(call: CodexCall, id: string, failed: boolean | undefined): Edits {
  const noEdits = { hunks: [], deleted: [] }
  if (failed || (!call.result && !call.changes)) return noEdits
  const reportedEdits = call.changes ? editsOfChanges(call.changes, id) : noEdits
  if (reportedEdits.hunks.length > 0 || reportedEdits.deleted.length > 0) return reportedEdits
  const patch = parsePatch(call.patch ?? "")
  return { hunks: patch.hunks, deleted: patch.deleted.map((path) => fileEffect(path, "edited", id)) }
}

/** Parses `{path: {type: "update", unified_diff}}`, or `{path: {update: {unified_diff}}}` in older files. */
function editsOfChanges(changes: RawRecord, id: string): Edits {
  const edits: Edits = { hunks: [], deleted: [] }
  for (const [path, value] of Object.entries(changes)) {
    const fields = record(value)
    const [tag] = Object.keys(fields ?? {})
    const change = typeof fields?.type === "string" ? fields : { ...record(fields?.[tag ?? ""]), type: tag }
    const diff = string(change.unified_diff)
    const content = string(change.content)
    if (change.type === "add" && content !== undefined) edits.hunks.push(hunkOfNewFile(path, content))
    else if (change.type === "update" && diff) edits.hunks.push(...hunksOfDiff(diff, string(change.move_path) ?? path))
    else if (change.type === "delete") {
      const removed = number(change.lines)
      edits.deleted.push({
        ...fileEffect(path, "edited", id),
        ...withoutUndefined({ added: removed === undefined ? undefined : 0, removed }),
      })
    }
  }
  return edits
}

/** Returns the files that a command read according to `parsed_cmd`, Codex's own analysis of the command. */
export function filesRead(parsed: unknown): string[] {
  return records(parsed).flatMap((step) => (step.type === "read" ? (string(step.path) ?? []) : []))
}

export type CallOutput = { text: string; exitStatus?: number; failed?: boolean; images: RawRecord[] }

/** Parses a tool's output in any of its formats: text, JSON text with metadata, content items, `{content, success}`. */
export function readCallOutput(output: unknown): CallOutput {
  if (typeof output === "string") return outputOfText(output)
  if (Array.isArray(output)) {
    const items = output.filter(isRecord)
    const text = items.flatMap((item) => (typeof item.text === "string" ? [item.text] : [])).join("\n")
    return { ...outputOfText(text), images: items.filter((item) => item.type === "input_image") }
  }
  const fields = record(output)
  if (!fields) return { text: "", images: [] }
  if (typeof fields.text === "string") return readCallOutput([fields])
  const inner = readCallOutput(fields.content ?? fields.output ?? "")
  return typeof fields.success === "boolean" ? { ...inner, failed: !fields.success } : inner
}

function outputOfText(text: string): CallOutput {
  const wrapped = text.startsWith("{") ? parseObject(text) : undefined
  const metadata = record(wrapped?.metadata)
  if (typeof wrapped?.output === "string" && metadata) {
    return { text: wrapped.output, exitStatus: number(metadata.exit_code), images: [] }
  }
  const head = HEADER.exec(text)?.[0] ?? ""
  const exitCode = /^(?:Process exited with code|Exit code:) (-?\d{1,10})$/m.exec(head)?.[1]
  return {
    text: text.slice(head.length),
    exitStatus: exitCode === undefined ? undefined : Number(exitCode),
    images: [],
  }
}

/** Matches Codex's header before a command's output. An exit code counts only here, because the output may contain any text. */
const HEADER =
  /^(?:(?:Chunk ID|Wall time|Process|Exit code|Original token count|Total output lines)\b[^\n]{0,200}\n){1,8}Output:(?:\n|$)/
