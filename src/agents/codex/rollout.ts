import { createHash } from "node:crypto"
import type { Message, Origin, Part, Role } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { number, record, string } from "../../core/record.ts"
import type { Usage } from "../../core/usage.ts"
import type { UnitName } from "../kit/connector.ts"
import { type CodexCall, newCall } from "./calls.ts"

/** What has been read of a rollout so far. */
export type Rollout = {
  unit: UnitName
  /** The file's own first record. */
  meta: RawRecord | undefined
  /** What Codex's database and index say of the thread. */
  thread: RawRecord
  name: string | undefined
  /** Whose records these are: a fork goes on with its parent's, from its parent's first record on. */
  scope: string | undefined
  turn: string | undefined
  model: string | undefined
  lastAt: number | undefined
  lastReply: Message | undefined
  lastTotal: RawRecord | undefined
  /** A compaction has removed records from the file. */
  isCut: boolean
  sawTokenCount: boolean
  usageRecords: { message: Message; usage: Usage }[]
  cwds: string[]
  entries: (Draft | Rollback)[]
  calls: Map<string, CodexCall>
  keys: Map<string, string>
  repeats: Map<string, number>
  unknown: Map<string, number>
}

/** `repeat`: a prompt that a compaction has copied, and which of those that say the same in it. */
export type Draft = { message: Message; startsTurn: boolean; kind?: DraftKind; isStandIn: boolean; repeat?: number }
export type Rollback = { turns: number }

/** Events tell some messages again. A stand-in is shown where no response item in the file tells one of its kind. */
export type DraftKind = "prompt" | "reply" | "thinking" | "letter"

export function newRollout(unit: UnitName): Rollout {
  return {
    unit,
    meta: undefined,
    thread: {},
    name: undefined,
    scope: undefined,
    turn: undefined,
    model: undefined,
    lastAt: undefined,
    lastReply: undefined,
    lastTotal: undefined,
    isCut: false,
    sawTokenCount: false,
    usageRecords: [],
    cwds: [],
    entries: [],
    calls: new Map(),
    keys: new Map(),
    repeats: new Map(),
    unknown: new Map(),
  }
}

export type About = { payload: RawRecord; at?: number; kind?: DraftKind; isStandIn?: boolean; startsTurn?: boolean }

/** Adds a message, unless it has no parts or was written twice. */
export function addMessage(rollout: Rollout, role: Role, parts: Part[], about: About): Message | undefined {
  if (parts.length === 0) return undefined
  const { at, kind, isStandIn = false, startsTurn = false } = about
  const key = keyOf(rollout, `${isStandIn}${role}${JSON.stringify(parts)}`, about.payload)
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
 * The key is the record's own id, with its turn where the id is a short one that other threads have as well. Older
 * records have none: theirs is the turn, the words, and which time they were said in it, because a fork repeats these of
 * what it copies, and not the times or positions.
 */
function keyOf(rollout: Rollout, content: string, payload: RawRecord): string | undefined {
  const place = placeOf(rollout, payload)
  const id = string(payload.id)
  if (id !== undefined) {
    const key = GLOBAL_ID.test(id) ? id : `${place}:${id}`
    const known = rollout.keys.get(key)
    if (known === undefined) rollout.keys.set(key, content)
    if (known === undefined) return key
    if (known === content) return undefined
  }
  const stem = `${place}:${createHash("sha256").update(content).digest("hex").slice(0, 16)}`
  const times = rollout.repeats.get(stem) ?? 0
  rollout.repeats.set(stem, times + 1)
  return `${stem}:${times}`
}

/** As keyOf, for a copy: it takes no key from what the rollout itself says. */
export function historyKey(rollout: Rollout, payload: RawRecord, content: string): string {
  const id = string(payload.id)
  if (id !== undefined && GLOBAL_ID.test(id)) return id
  const turn = turnOf(payload)
  const place = turn !== undefined && GLOBAL_ID.test(turn) ? turn : (rollout.scope ?? idOf(rollout))
  return `${place}:kept:${content}`
}

/** Long enough to be random: `call_0`, as some local models number their calls, is not. */
const GLOBAL_ID = /[0-9A-Za-z]{16}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}/

/** Turns were numbered within their thread before they had ids of their own. */
function placeOf(rollout: Rollout, payload: RawRecord): string {
  const turn = turnOf(payload) ?? rollout.turn
  if (turn !== undefined && GLOBAL_ID.test(turn)) return turn
  const thread = rollout.scope ?? idOf(rollout)
  return turn === undefined ? thread : `${thread}:${turn}`
}

function turnOf(payload: RawRecord): string | undefined {
  const about = record(payload.internal_chat_message_metadata_passthrough)
  return string(about?.turn_id) ?? string(payload.turn_id)
}

/** What is known of a call. Without an id an event tells of no call in particular, and is not kept. */
export function knownCall(rollout: Rollout, id: string | undefined): CodexCall {
  const call = (id !== undefined && rollout.calls.get(id)) || newCall()
  if (id !== undefined) rollout.calls.set(id, call)
  return call
}

export function countUnknown(rollout: Rollout, type: string): void {
  rollout.unknown.set(type, (rollout.unknown.get(type) ?? 0) + 1)
}

/** A thread that was reverted goes on in a second file under the same id: that one is told as a fork of the first. */
export function idOf({ meta, unit }: Rollout): string {
  const [, thread, rollout] = /([0-9a-f-]{36})(?:_([0-9a-f-]+))?$/.exec(unit.key) ?? []
  const id = string(meta?.id) ?? thread ?? unit.key
  return rollout && id === thread ? `${id}_${rollout}` : id
}

export function isSubagentThread({ meta }: Rollout): boolean {
  return record(meta?.source)?.subagent !== undefined || meta?.thread_source === "subagent"
}

/** Who speaks in a user's turn: in a subagent's thread the parent agent, except in what was copied from its parent. */
export function speakerOf(rollout: Rollout, payload: RawRecord, ordinal?: number): Origin {
  return isSubagentThread(rollout) && !isCopied(rollout, payload, ordinal) ? "agent" : "person"
}

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

function isCopied(rollout: Rollout, payload: RawRecord, ordinal: number | undefined): boolean {
  const start = number(rollout.meta?.subagent_history_start_ordinal)
  if (start !== undefined && ordinal !== undefined) return ordinal < start
  const own = string(rollout.meta?.id) ?? ""
  const turn = turnOf(payload) ?? rollout.turn ?? ""
  // such ids begin with their time: a turn older than the thread is not the thread's own
  return UUID_7.test(own) && UUID_7.test(turn) && turn < own
}

export function addCwd(rollout: Rollout, cwd: unknown): void {
  const path = string(cwd)
  if (path && !rollout.cwds.includes(path)) rollout.cwds.push(path)
}

/** True where an earlier message holds the text: what is told again in other records is shown once. */
export function wasSaid(rollout: Rollout, text: string): boolean {
  return rollout.entries.some(
    (entry) => "message" in entry && entry.message.parts.some((part) => part.text.includes(text)),
  )
}
