import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Effect, Message, Origin, Part, Role } from "../../core/conversation.ts"
import { defined } from "../../core/defined.ts"
import type { RawRecord } from "../../core/record.ts"
import { number, record, string, time } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { fileEffect } from "../kit/effects.ts"
import { eventMessages } from "./events.ts"
import { joinGenerations, type RowMessages } from "./generations.ts"
import { errorNotice, fileParts, opencodeUsage, type PartsAndEffects, promptWithoutQuotes, toolParts } from "./parts.ts"

const AUTHORITY = { database: 10, files: 8 }

/** What the rows of one session say, from whichever era they are. */
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
  const asked: Origin = parentId ? "agent" : "person"
  const older = messageRows.sort(byTimeThenId).flatMap((row): RowMessages[] => {
    const id = string(row.id)
    const data = record(row.data)
    if (id === undefined || !data) return []
    const parts = (partsOf.get(id) ?? []).sort(byId)
    return [{ id, row, parts, messages: [...messagesOf(id, row, data, parts, asked, count)] }]
  })
  const newer = eventRows
    .sort((a, b) => (number(a.seq) ?? 0) - (number(b.seq) ?? 0))
    .map((row): RowMessages => ({ id: String(row.id), row, messages: eventMessages(row, asked, count) }))
  const messages: Message[] = []
  const abandonedFrom = revertedFrom(about)
  let abandoned = false
  for (const told of joinGenerations(older, newer, time(about.upgraded_at))) {
    const isTarget = told.id === abandonedFrom?.message
    if (isTarget && !abandonedFrom.keepsMessage) abandoned = true
    const isCopy = isCopied(record(told.row.data) ?? {}, about)
    for (const message of told.messages)
      messages.push({
        ...message,
        ...defined({ abandoned: abandoned || undefined }),
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

/** The message of a row, and the notice of what went wrong in it. */
function* messagesOf(
  id: string,
  row: RawRecord,
  data: RawRecord,
  partRows: RawRecord[],
  asked: Origin,
  count: (type: string) => void,
): Generator<Message> {
  const role = data.role
  if (role !== "user" && role !== "assistant") {
    count(`message ${String(role)}`)
    return
  }
  const assistant = record(record(data.metadata)?.assistant) ?? data // inside metadata before 0.3
  const at = time(row.time_created) ?? time(record(data.time)?.created)
  const parts: Part[] = []
  const effects: Effect[] = []
  for (const partRow of partRows) {
    const part = record(partRow.data) ?? {}
    const told = partsOfPart(part, string(partRow.id) ?? id, role, assistant.summary === true, asked)
    if (!told) count(`part ${String(part.type)}`)
    parts.push(...(told?.parts ?? []))
    effects.push(...(told?.effects ?? []))
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
    const said = string(record(error.data)?.message) ?? string(error.message)
    const text = [string(error.name), said].filter((word) => word !== undefined).join(": ")
    if (text) yield errorNotice(id, text, at)
  }
}

/** Undefined for a type that is not known. */
function partsOfPart(
  part: RawRecord,
  id: string,
  role: Role,
  isSummary: boolean,
  asked: Origin,
): PartsAndEffects | undefined {
  const text = string(part.text)
  switch (part.type) {
    case "text":
      if (text === undefined || text.trim() === "") return { parts: [] }
      if (part.synthetic === true || part.ignored === true)
        return { parts: [{ type: "text", text, origin: "injected" }] }
      if (role === "user") return { parts: [{ type: "text", text: promptWithoutQuotes(text), origin: asked }] }
      return {
        parts: [isSummary ? { type: "summary", text, origin: "agent" } : { type: "text", text, origin: "agent" }],
      }
    case "reasoning":
      return { parts: text === undefined ? [] : [{ type: "thinking", text, origin: "agent" }] }
    case "tool":
    case "tool-invocation":
      return toolParts(part, id)
    case "file":
      return fileParts(part, role === "user" ? asked : "agent")
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

/** A fork copies messages under new names, with the times they had: what they cost was paid in the one it copies. */
function isCopied(data: RawRecord, session: RawRecord): boolean {
  const [said, began] = [time(record(data.time)?.created), time(session.time_created)]
  return said !== undefined && began !== undefined && said < began
}

/** A step's patch lists files that its own tool calls have named already. */
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

/** After a revert the named message is gone too, unless only a part of it was taken back. */
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
