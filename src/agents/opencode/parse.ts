import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Effect, Message, Origin, Part, Role } from "../../core/conversation.ts"
import { withoutUndefined } from "../../core/defined.ts"
import { number, type RawRecord, record, string, time } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { fileEffect } from "../kit/effects.ts"
import {
  errorNotice,
  eventMessages,
  fileParts,
  opencodeUsage,
  type PartsAndEffects,
  promptWithoutQuotes,
  toolParts,
  usageIn,
} from "./parts.ts"

const AUTHORITY = { database: 10, files: 8 }

/** Parses the rows of one session, from any era. */
export function parseOpencode(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const count = (type: string) => unknown.add(type)
  const session: RawRecord[] = []
  const projects: RawRecord[] = []
  const messageRows: RawRecord[] = []
  const eventRows: RawRecord[] = []
  const partsOf = new Map<string, RawRecord[]>()
  for (const row of rows) {
    if (row.table === "session") session.push(row)
    else if (row.table === "project") projects.push(row)
    else if (row.table === "message") messageRows.push(row)
    else if (row.table === "session_message") eventRows.push(row)
    else if (row.table === "part") {
      const message = string(row.message_id) ?? ""
      const siblings = partsOf.get(message)
      if (siblings) siblings.push(row)
      else partsOf.set(message, [row])
    } else count(`table ${String(row.table)}`)
  }
  const about = session[0] ?? {}
  const parentId = string(about.parent_id)
  const promptOrigin: Origin = parentId ? "agent" : "person"
  const older = messageRows.sort(byTimeThenId).flatMap((row): RowMessages[] => {
    const id = string(row.id)
    const data = record(row.data)
    if (id === undefined || !data) return []
    const parts = (partsOf.get(id) ?? []).sort(byId)
    return [{ id, row, parts, messages: [...messagesOf(id, row, data, parts, promptOrigin, count)] }]
  })
  const newer = eventRows
    .sort((a, b) => (number(a.seq) ?? 0) - (number(b.seq) ?? 0))
    .map((row): RowMessages => ({ id: String(row.id), row, messages: eventMessages(row, promptOrigin, count) }))
  const messages: Message[] = []
  const abandonedFrom = revertedFrom(about)
  let abandoned = false
  for (const entry of joinGenerations(older, newer, time(about.upgraded_at))) {
    const isTarget = entry.id === abandonedFrom?.message
    if (isTarget && !abandonedFrom.keepsMessage) abandoned = true
    const isCopy = isCopied(record(entry.row.data) ?? {}, about)
    for (const message of entry.messages)
      messages.push({
        ...message,
        ...withoutUndefined({ abandoned: abandoned || undefined }),
        usage: isCopy ? undefined : message.usage,
      })
    if (isTarget) abandoned = true
  }
  if (messages.length === 0) return { conversations: [], unknown: unknown.all() }

  const ends = [...messageRows, ...eventRows].flatMap((row) => time(record(record(row.data)?.time)?.completed) ?? [])
  const times = [...ends, ...messages.flatMap((message) => message.at ?? [])]
  const conversation: Conversation = {
    id: string(about.id) ?? unit.key.slice(unit.key.indexOf(":") + 1),
    kind: parentId ? "subagent" : "person",
    title: titleOf(string(about.title)),
    cwds: cwdsOf(about, messageRows, eventRows, projects),
    agent_version: string(about.version),
    parent: parentId ? { id: parentId } : undefined,
    fork_of: string(about.fork_session_id),
    started_at: time(about.time_created) ?? times.reduce<number | undefined>(earlier, undefined),
    ended_at: times.reduce<number | undefined>(later, undefined) ?? time(about.time_updated),
    messages,
    authority: unit.key.startsWith("db:") ? AUTHORITY.database : AUTHORITY.files,
  }
  return { conversations: [conversation], unknown: unknown.all() }
}

/** Yields the message of a row, and a notice if it had an error. */
function* messagesOf(
  id: string,
  row: RawRecord,
  data: RawRecord,
  partRows: RawRecord[],
  promptOrigin: Origin,
  count: (type: string) => void,
): Generator<Message> {
  const role = data.role
  if (role !== "user" && role !== "assistant") {
    count(`message ${String(role)}`)
    return
  }
  const assistant = record(record(data.metadata)?.assistant) ?? data // it is inside metadata before 0.3
  const at = time(row.time_created) ?? time(record(data.time)?.created)
  const parts: Part[] = []
  const effects: Effect[] = []
  for (const partRow of partRows) {
    const part = record(partRow.data) ?? {}
    const content = partsOfPart(part, string(partRow.id) ?? id, role, assistant.summary === true, promptOrigin)
    if (!content) count(`part ${String(part.type)}`)
    parts.push(...(content?.parts ?? []))
    effects.push(...(content?.effects ?? []))
  }
  const usage = role === "assistant" ? opencodeUsage(assistant, partRows) : undefined
  const model = string(assistant.modelID) ?? string(record(data.model)?.modelID)
  const written = effects.filter((effect, index) => !isRepeated(effects, effect, index))
  if (parts.length > 0) {
    yield {
      key: id,
      role,
      at,
      model: role === "assistant" && model !== undefined ? model : undefined,
      parts,
      effects: written.length > 0 ? written : undefined,
      usage,
    }
  }
  const error = record(assistant.error)
  if (error) {
    const message = string(record(error.data)?.message) ?? string(error.message)
    const text = [string(error.name), message].filter((word) => word !== undefined).join(": ")
    if (text) yield errorNotice(id, text, at)
  }
}

/** Returns undefined for an unknown type. */
function partsOfPart(
  part: RawRecord,
  id: string,
  role: Role,
  isSummary: boolean,
  promptOrigin: Origin,
): PartsAndEffects | undefined {
  const text = string(part.text)
  switch (part.type) {
    case "text":
      if (text === undefined || text.trim() === "") return { parts: [] }
      if (part.synthetic === true || part.ignored === true)
        return { parts: [{ type: "text", text, origin: "injected" }] }
      if (role === "user") return { parts: [{ type: "text", text: promptWithoutQuotes(text), origin: promptOrigin }] }
      return {
        parts: [isSummary ? { type: "summary", text, origin: "agent" } : { type: "text", text, origin: "agent" }],
      }
    case "reasoning":
      return { parts: text === undefined ? [] : [{ type: "thinking", text, origin: "agent" }] }
    case "tool":
    case "tool-invocation":
      return toolParts(part, id)
    case "file":
      return fileParts(part, role === "user" ? promptOrigin : "agent")
    case "subtask": {
      const prompt = string(part.prompt)
      return { parts: prompt === undefined ? [] : [{ type: "text", text: prompt, origin: "injected" }] }
    }
    case "patch": {
      const files = Array.isArray(part.files) ? part.files.flatMap((file) => string(file) ?? []) : []
      return { parts: [], effects: files.map((file) => fileEffect(file, "edited")) }
    }
    case "step-start":
    case "step-finish":
    case "snapshot":
    case "agent":
    case "retry":
    case "compaction":
    case "source-url":
      return { parts: [] }
    default:
      return undefined
  }
}

/** Whether a fork copied this message. It has a new id and its original time, and its cost belongs to the original session. */
function isCopied(data: RawRecord, session: RawRecord): boolean {
  const [writtenAt, startedAt] = [time(record(data.time)?.created), time(session.time_created)]
  return writtenAt !== undefined && startedAt !== undefined && writtenAt < startedAt
}

/** Whether a step's patch repeats files that its tool calls already named. */
function isRepeated(effects: Effect[], effect: Effect, index: number): boolean {
  if (effect.type !== "file" || effect.call_id !== undefined) return false
  return effects.some(
    (other, at) =>
      other.type === "file" &&
      other.path === effect.path &&
      other.action === effect.action &&
      (other.call_id !== undefined || at < index),
  )
}

/** The message from which a session was reverted. It is gone too, unless only a part of it was reverted. */
function revertedFrom(session: RawRecord): { message: string; keepsMessage: boolean } | undefined {
  const revert = record(session.revert)
  const message = string(revert?.messageID)
  return message === undefined ? undefined : { message, keepsMessage: string(revert?.partID) !== undefined }
}

function titleOf(title: string | undefined): Conversation["title"] {
  if (title === undefined || /^(New|Child) session( - |$)/.test(title)) return undefined
  return { text: title, from: "agent" }
}

function cwdsOf(session: RawRecord, messages: RawRecord[], events: RawRecord[], projects: RawRecord[]): string[] {
  const cwds = new Set<string>()
  const add = (path: unknown) => {
    if (string(path)) cwds.add(string(path)!)
  }
  add(session.directory)
  for (const { data } of messages) {
    const about = record(record(record(data)?.metadata)?.assistant) ?? record(data)
    add(record(about?.path)?.cwd)
  }
  for (const { type, data } of events) {
    if (type === "location-switched") add(record(record(data)?.location)?.directory)
  }
  if (cwds.size === 0) for (const { worktree } of projects) if (worktree !== "/") add(worktree)
  return [...cwds]
}

function byTimeThenId(a: RawRecord, b: RawRecord): number {
  return (time(a.time_created) ?? 0) - (time(b.time_created) ?? 0) || byId(a, b)
}

function byId(a: RawRecord, b: RawRecord): number {
  return String(a.id) < String(b.id) ? -1 : 1
}

function earlier(a: number | undefined, b: number): number {
  return a === undefined ? b : Math.min(a, b)
}

function later(a: number | undefined, b: number): number {
  return a === undefined ? b : Math.max(a, b)
}

/** A row and its messages. `parts` contains the part rows of a 1.x message. */
type RowMessages = { id: string; row: RawRecord; parts?: RawRecord[]; messages: Message[] }

/**
 * Joins the messages of a session that is in both generations of OpenCode's tables, ordered by time. If both have a
 * row, the newer one wins. A row that only the older tables have was written by an older program after the upgrade, or
 * is of a kind that the upgrade does not copy (subtasks). Any other such row has been reverted since, and is marked as
 * abandoned.
 */
function joinGenerations(older: RowMessages[], newer: RowMessages[], upgradedAt: number | undefined): RowMessages[] {
  if (newer.length === 0 || older.length === 0) return newer.length === 0 ? older : newer
  const before = new Map(older.map((one) => [one.id, one]))
  const known = new Map(newer.map((one) => [one.id, one]))
  const summaries = new Map(older.filter(({ row }) => isSummaryOf(row, known)).map((one) => [parentOf(one.row), one]))
  const only = older.filter((one) => !known.has(one.id) && !isSummaryOf(one.row, known))
  const rest = only.map((one) => (isReverted(one, before, upgradedAt) ? abandoned(one) : one))
  const joined: RowMessages[] = []
  let next = 0
  let latest = 0
  for (const one of newer) {
    latest = Math.max(latest, atOf(one))
    while (next < rest.length && atOf(rest[next]!) < latest) joined.push(rest[next++]!)
    joined.push(together(one, summaries.get(one.id) ?? before.get(one.id)))
  }
  return [...joined, ...rest.slice(next)]
}

function atOf({ row }: RowMessages): number {
  return time(row.time_created) ?? 0
}

/** The upgrade merges the request to compact and the summary that answers it into one row. */
function isSummaryOf(row: RawRecord, known: Map<string, RowMessages>): boolean {
  return record(row.data)?.summary === true && known.get(parentOf(row))?.row.type === "compaction"
}

function parentOf({ data }: RawRecord): string {
  return string(record(data)?.parentID) ?? ""
}

function isReverted(one: RowMessages, before: Map<string, RowMessages>, upgradedAt: number | undefined): boolean {
  if (upgradedAt === undefined || atOf(one) > upgradedAt) return false
  const parent = before.get(parentOf(one.row))
  return ![one, parent].some((one) => one?.parts?.some(({ data }) => NOT_UPGRADED.has(record(data)?.type)))
}

const NOT_UPGRADED = new Set<unknown>(["subtask", "compaction"])

function abandoned(one: RowMessages): RowMessages {
  return { ...one, messages: one.messages.map((message) => ({ ...message, abandoned: true })) }
}

/** Completes the newer row with what the upgrade omitted. */
function together(newer: RowMessages, older: RowMessages | undefined): RowMessages {
  if (!older) return newer
  const was = older.messages.find(({ key }) => key === older.id)
  const message = newer.messages.find(({ key }) => key === newer.id)
  if (!was || !message) return newer.messages.length > 0 ? newer : older
  if (newer.row.type === "compaction") return { ...newer, messages: older.messages }
  const effects = [...(message.effects ?? []), ...mentions(was, message)]
  const usage = stepsUsage(older, message)
  return {
    ...newer,
    messages: [
      {
        ...message,
        parts: message.parts.map((part) => clearedResult(part, was) ?? part),
        ...withoutUndefined({ effects: effects.length > 0 ? effects : undefined, usage }),
      },
      ...(older.messages.length > 1 ? older.messages : newer.messages).slice(1),
    ],
  }
}

/** The newer row counts only the last step of an answer. If it otherwise equals the older row, the steps are added up. */
function stepsUsage({ row, parts = [] }: RowMessages, { usage }: Message): Message["usage"] {
  const own = record(row.data) ?? {}
  return JSON.stringify(usageIn([own])) === JSON.stringify(usage) ? opencodeUsage(own, parts) : usage
}

/** Returns files that only the older rows name: attached to the prompt, or changed by a step. */
function mentions(was: Message, now: Message): Effect[] {
  const named = new Set(now.effects?.map((effect) => effect.type === "file" && `${effect.action} ${effect.path}`))
  return (was.effects ?? []).filter(
    (effect) => effect.type === "file" && effect.call_id === undefined && !named.has(`${effect.action} ${effect.path}`),
  )
}

/** Returns a result that the upgrade did not copy because 1.x no longer showed it to the model. */
function clearedResult(now: Part, was: Message): Part | undefined {
  if (now.type !== "tool_result" || now.text !== "[Old tool result content cleared]") return undefined
  return was.parts.find((part) => part.type === "tool_result" && part.call_id === now.call_id)
}
