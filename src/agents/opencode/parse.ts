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
  originalId,
  type PartsAndEffects,
  promptWithoutQuotes,
  toolParts,
  usageIn,
} from "./parts.ts"

const AUTHORITY = { database: 10, files: 8 }

/** Parses the rows of one session, as written by any version of OpenCode. */
export function parseOpencode(rows: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const countUnknown = (type: string) => unknown.add(type)
  const sessionRows: RawRecord[] = []
  const projects: RawRecord[] = []
  const messageRows: RawRecord[] = []
  const eventRows: RawRecord[] = []
  const partsOf = new Map<string, RawRecord[]>()
  for (const row of rows) {
    if (row.table === "session") sessionRows.push(row)
    else if (row.table === "project") projects.push(row)
    else if (row.table === "message") messageRows.push(row)
    else if (row.table === "session_message") eventRows.push(row)
    else if (row.table === "part") {
      const message = string(row.message_id) ?? ""
      const siblings = partsOf.get(message)
      if (siblings) siblings.push(row)
      else partsOf.set(message, [row])
    } else countUnknown(`table ${String(row.table)}`)
  }
  const session = sessionRows[0] ?? {}
  const parentId = string(session.parent_id)
  const promptOrigin: Origin = parentId ? "agent" : "person"
  const olderRows = messageRows.sort(byTimeThenId).flatMap((row): RowMessages[] => {
    const id = string(row.id)
    const data = record(row.data)
    if (id === undefined || !data) return []
    const parts = (partsOf.get(id) ?? []).sort(byId)
    return [{ id, row, parts, messages: [...messagesOf(id, row, data, parts, promptOrigin, countUnknown)] }]
  })
  const newerRows = eventRows
    .sort((a, b) => (number(a.seq) ?? 0) - (number(b.seq) ?? 0))
    .map((row): RowMessages => ({ id: String(row.id), row, messages: eventMessages(row, promptOrigin, countUnknown) }))
  const messages: Message[] = []
  const abandonedFrom = revertedFrom(session)
  let abandoned = false
  for (const entry of joinGenerations(olderRows, newerRows, time(session.upgraded_at))) {
    const isTarget = entry.id === abandonedFrom?.message
    if (isTarget && !abandonedFrom.keepsMessage) abandoned = true
    const isCopy = isCopied(record(entry.row.data) ?? {}, session)
    for (const message of entry.messages)
      messages.push({
        ...message,
        key: originalId(message.key),
        ...withoutUndefined({ abandoned: abandoned || undefined }),
        usage: isCopy ? undefined : message.usage,
      })
    if (isTarget) abandoned = true
  }
  if (messages.length === 0) return { conversations: [], unknown: unknown.all() }

  const completionTimes = [...messageRows, ...eventRows].flatMap(
    (row) => time(record(record(row.data)?.time)?.completed) ?? [],
  )
  const times = [...completionTimes, ...messages.flatMap((message) => message.at ?? [])]
  const conversation: Conversation = {
    id: string(session.id) ?? unit.key.slice(unit.key.indexOf(":") + 1),
    kind: parentId ? "subagent" : "person",
    title: titleOf(string(session.title)),
    cwds: cwdsOf(session, messageRows, eventRows, projects),
    agent_version: string(session.version),
    parent: parentId ? { id: parentId } : undefined,
    fork_of: string(session.fork_session_id),
    started_at: time(session.time_created) ?? times.reduce<number | undefined>(minTime, undefined),
    ended_at: times.reduce<number | undefined>(maxTime, undefined) ?? time(session.time_updated),
    messages,
    authority: unit.key.startsWith("db:") ? AUTHORITY.database : AUTHORITY.files,
  }
  return { conversations: [conversation], unknown: unknown.all() }
}

/** Yields the message of a row, followed by a notice if the message had an error. */
function* messagesOf(
  id: string,
  row: RawRecord,
  data: RawRecord,
  partRows: RawRecord[],
  promptOrigin: Origin,
  countUnknown: (type: string) => void,
): Generator<Message> {
  const role = data.role
  if (role !== "user" && role !== "assistant") {
    countUnknown(`message ${String(role)}`)
    return
  }
  const assistant = record(record(data.metadata)?.assistant) ?? data // before 0.3, the assistant's fields were inside metadata
  const at = time(row.time_created) ?? time(record(data.time)?.created)
  const parts: Part[] = []
  const effects: Effect[] = []
  for (const partRow of partRows) {
    const part = record(partRow.data) ?? {}
    const content = partsOfPart(part, string(partRow.id) ?? id, role, assistant.summary === true, promptOrigin)
    if (!content) countUnknown(`part ${String(part.type)}`)
    parts.push(...(content?.parts ?? []))
    effects.push(...(content?.effects ?? []))
  }
  const usage = role === "assistant" ? opencodeUsage(assistant, partRows) : undefined
  const model = string(assistant.modelID) ?? string(record(data.model)?.modelID)
  const uniqueEffects = effects.filter((effect, index) => !isRepeated(effects, effect, index))
  if (parts.length > 0) {
    yield {
      key: id,
      role,
      at,
      model: role === "assistant" && model !== undefined ? model : undefined,
      parts,
      effects: uniqueEffects.length > 0 ? uniqueEffects : undefined,
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

/** Whether a file in a step's patch is already named by a tool call or an earlier effect. */
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

/** Returns the first reverted message of a session. `keepsMessage` is true if only parts of that message were reverted. */
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
    const fields = record(record(record(data)?.metadata)?.assistant) ?? record(data)
    add(record(fields?.path)?.cwd)
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

function minTime(a: number | undefined, b: number): number {
  return a === undefined ? b : Math.min(a, b)
}

function maxTime(a: number | undefined, b: number): number {
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
function joinGenerations(
  olderRows: RowMessages[],
  newerRows: RowMessages[],
  upgradedAt: number | undefined,
): RowMessages[] {
  if (newerRows.length === 0 || olderRows.length === 0) return newerRows.length === 0 ? olderRows : newerRows
  const olderById = new Map(olderRows.map((entry) => [entry.id, entry]))
  const newerById = new Map(newerRows.map((entry) => [entry.id, entry]))
  const summaries = new Map(
    olderRows.filter(({ row }) => isSummaryOf(row, newerById)).map((entry) => [parentOf(entry.row), entry]),
  )
  const olderOnly = olderRows.filter((entry) => !newerById.has(entry.id) && !isSummaryOf(entry.row, newerById))
  const unmatched = olderOnly.map((entry) => (isReverted(entry, olderById, upgradedAt) ? markAbandoned(entry) : entry))
  const joined: RowMessages[] = []
  let next = 0
  let latest = 0
  for (const entry of newerRows) {
    latest = Math.max(latest, timeOf(entry))
    while (next < unmatched.length && timeOf(unmatched[next]!) < latest) joined.push(unmatched[next++]!)
    joined.push(mergeRows(entry, summaries.get(entry.id) ?? olderById.get(entry.id)))
  }
  return [...joined, ...unmatched.slice(next)]
}

function timeOf({ row }: RowMessages): number {
  return time(row.time_created) ?? 0
}

/** Whether a row is a summary that the upgrade merged with its request into one row. */
function isSummaryOf(row: RawRecord, newerById: Map<string, RowMessages>): boolean {
  return record(row.data)?.summary === true && newerById.get(parentOf(row))?.row.type === "compaction"
}

function parentOf({ data }: RawRecord): string {
  return string(record(data)?.parentID) ?? ""
}

function isReverted(entry: RowMessages, olderById: Map<string, RowMessages>, upgradedAt: number | undefined): boolean {
  if (upgradedAt === undefined || timeOf(entry) > upgradedAt) return false
  const parent = olderById.get(parentOf(entry.row))
  return ![entry, parent].some((each) => each?.parts?.some(({ data }) => TYPES_NOT_UPGRADED.has(record(data)?.type)))
}

const TYPES_NOT_UPGRADED = new Set<unknown>(["subtask", "compaction"])

function markAbandoned(entry: RowMessages): RowMessages {
  return { ...entry, messages: entry.messages.map((message) => ({ ...message, abandoned: true })) }
}

/** Adds the effects, usage and results that the upgrade did not copy from the older row to the newer one. */
function mergeRows(newer: RowMessages, older: RowMessages | undefined): RowMessages {
  if (!older) return newer
  const olderMessage = older.messages.find(({ key }) => key === older.id)
  const newerMessage = newer.messages.find(({ key }) => key === newer.id)
  if (!olderMessage || !newerMessage) return newer.messages.length > 0 ? newer : older
  if (newer.row.type === "compaction") return { ...newer, messages: older.messages }
  const effects = [...(newerMessage.effects ?? []), ...mentions(olderMessage, newerMessage)]
  const usage = stepsUsage(older, newerMessage)
  return {
    ...newer,
    messages: [
      {
        ...newerMessage,
        parts: newerMessage.parts.map((part) => clearedResult(part, olderMessage) ?? part),
        ...withoutUndefined({ effects: effects.length > 0 ? effects : undefined, usage }),
      },
      ...(older.messages.length > 1 ? older.messages : newer.messages).slice(1),
    ],
  }
}

/** The newer row counts only the last step of an answer. If it otherwise equals the older row, the steps are added up. */
function stepsUsage({ row, parts = [] }: RowMessages, { usage }: Message): Message["usage"] {
  const data = record(row.data) ?? {}
  return JSON.stringify(usageIn([data])) === JSON.stringify(usage) ? opencodeUsage(data, parts) : usage
}

/** Returns the effects for files that only the older rows name: files attached to the prompt, or changed by a step. */
function mentions(older: Message, newer: Message): Effect[] {
  const alreadyNamed = new Set(
    newer.effects?.map((effect) => effect.type === "file" && `${effect.action} ${effect.path}`),
  )
  return (older.effects ?? []).filter(
    (effect) =>
      effect.type === "file" && effect.call_id === undefined && !alreadyNamed.has(`${effect.action} ${effect.path}`),
  )
}

/** Returns a result that the upgrade did not copy because 1.x no longer showed it to the model. */
function clearedResult(part: Part, older: Message): Part | undefined {
  if (part.type !== "tool_result" || part.text !== "[Old tool result content cleared]") return undefined
  return older.parts.find((other) => other.type === "tool_result" && other.call_id === part.call_id)
}
