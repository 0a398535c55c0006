import { hash } from "node:crypto"
import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { bodyLine, loadLines, type PlacedMessage, saveBodies } from "./bodies.ts"
import { copiedNumbers, flagCopies } from "./copies.ts"
import { deleteEffects, saveEffects } from "./effects.ts"
import { type Facts, factsKey, factsOf, NAMING_FACTS } from "./facts.ts"
import { nextChange, refreshCounts } from "./feed.ts"
import { MESSAGE_FLAGS } from "./flags.ts"
import { keyText, mergeMessages, type UnitMessage } from "./merge.ts"
import {
  foldersIn,
  forgetStart,
  moveSubagents,
  privateParentProject,
  projectOfConversation,
  rememberStart,
  startProjectOf,
} from "./private-folders.ts"
import { projectIdOf, projectPathsOf } from "./project-paths.ts"
import { despiteIndexes } from "./rot/checked-rows.ts"
import { hasMissingRows } from "./rot/inspect.ts"
import { isIntact, rowSum } from "./rot/sums.ts"
import { finishDamaged, refuseOutOfOrder } from "./rot/write-damaged.ts"
import { ROW_COUNTS } from "./row-counts.ts"
import { spellingsOf } from "./spellings.ts"
import type { ConversationWrite, MessageWrite, PaidFields, StoredMessage, UnitWrite, WriteResult } from "./store.ts"
import { type RowIn, TABLES } from "./tables.ts"

type Existing = { row: RowIn<"conversation">; facts: string; damaged: boolean }

/** `unit_id` is null if the message comes from the conversation's own unit. */
export type MessageTableRow = Omit<RowIn<"message">, "conversation_id" | "version" | "sum">

/** A stored message with its body, to detect changes, and the unit it came from. `damaged` is true if its row is not reliable. */
export type OldRow = MessageTableRow & { line: string; by: number; damaged?: boolean }

type SavedConversation = {
  id: number
  changed: boolean
  added: number
  fresh: StoredMessage[]
  paid?: Omit<WriteResult["paid"][number], "ref">
  again: string[]
}

/**
 * Stores a unit's version of a conversation. Messages from other units of the same authority stay: the conversation is the union
 * of its units. Returns undefined if a unit of higher authority already contains it.
 */
export function saveConversation(
  db: Db,
  write: UnitWrite,
  unitId: number,
  conversation: ConversationWrite,
  platform: NodeJS.Platform,
): SavedConversation | undefined {
  const known = findConversation(db, write.source, conversation.id)
  const existing = known?.row
  if (existing && conversation.authority < existing.authority && existing.unit_id !== unitId) return undefined

  const owns =
    !existing ||
    existing.unit_id === unitId ||
    (!write.foreign &&
      (conversation.authority > existing.authority || outranks(db, conversation.id, unitId, existing.unit_id)))
  const owner = owns ? unitId : existing.unit_id
  const here = existing ? foldersIn(existing.cwds) : []
  const began =
    existing && (!owns || write.foreign)
      ? startProjectOf(db, existing.id, existing.project_id)
      : conversation.project === undefined
        ? null
        : projectIdOf(db, spellingsOf(db, conversation.project, platform)[0], conversation.git_remote)
  const filing = {
    began,
    cwds: owns ? conversation.cwds : [...here, ...conversation.cwds],
    projects: conversation.projects,
    above: privateParentProject(db, write.source, conversation.parent?.id),
  }
  const projectId = projectOfConversation(db, filing, platform)
  const { old, isDamaged } = existing
    ? loadMessages(db, existing)
    : { old: new Map<string, OldRow>(), isDamaged: false }
  const takenOver = existing !== undefined && existing.unit_id !== owner
  if (takenOver) handOver(db, existing.id, existing.unit_id, owner)
  const incoming = conversation.messages.map((message) => ({
    key: message.stored?.key ?? hashKey(message.key),
    message,
    by: unitId,
  }))
  const isShared = existing !== undefined && conversation.authority === existing.authority
  const staying = isShared ? stayingMessages(old, incoming, unitId, write) : []
  const isMerged = staying.length > 0 || (isShared && !owns)
  const accepted = write.foreign ? incoming.filter((one) => !contradicts(one, old.get(keyText(one)))) : incoming
  const messages = isMerged ? mergeMessages(accepted, staying, owns ? liveOf(accepted) : inOrder(old)) : incoming
  const last = [...old.values()].reduce((most, { number }) => Math.max(most, number), existing?.last_number ?? 0)
  const numbered = numberMessages(messages, old, last)
  const id = existing?.id ?? insertConversation(db, write.source, conversation.id, unitId, conversation.authority)

  const added = numbered.filter((message) => !message.old)
  const matched = new Set(numbered.map((message) => message.old))
  const missing = [...old.values()].filter((row) => !matched.has(row))
  // Messages of another unit that cannot be read now stay, so that `heal` can restore them.
  const gone = write.partial ? [] : missing.filter((row) => row.by === unitId || !isShared)
  const changed = numbered.filter(({ old, line }) => old && (old.line !== line || old.damaged))
  const moved = numbered.filter((message) => message.old && rowDiffers(message))
  if (added.length > 0 || gone.length > 0 || changed.length > 0)
    saveBodies(db, id, [...numbered, ...readable(missing.filter((row) => !gone.includes(row)))], gone)
  for (const row of gone) deleteMessage(db, id, row.number)
  const touched = new Set([...added, ...changed, ...moved])
  const version = touched.size > 0 ? nextChange(db) : 0
  for (const message of touched) saveMessage(db, id, message, version, owner)
  const folders = projectId === null ? [] : projectPathsOf(db, projectId)
  for (const message of [...added, ...changed]) saveEffects(db, id, message, projectId, folders, platform)

  const lastNumber = numbered.reduce((most, message) => Math.max(most, message.number), last)
  const copies = flagCopies(db, write.source, id, added)
  const copied =
    copies || numbered.some(({ flags }) => flags & MESSAGE_FLAGS.copied) ? copiedNumbers(db, id) : new Set<number>()
  const counted = numbered.filter(({ number, message }) => !message.superseded && !copied.has(number))
  const facts = factsOf(
    staying.length === 0 ? conversation : together(conversation, messages),
    counted.map(({ message }) => message),
    owner,
    projectId,
    lastNumber,
    copies?.forkOf ?? existingFork(db, id),
  )
  // If several units contain a conversation, one of them decides its title, folder and branch.
  if (!owns) Object.assign(facts, Object.fromEntries(NAMING_FACTS.map((name) => [name, existing[name]])))
  facts.project_id = projectId
  const isChanged =
    !existing ||
    takenOver ||
    added.length + gone.length + changed.length + moved.length > 0 ||
    copies !== undefined ||
    known?.damaged ||
    known?.facts !== factsKey(facts)
  const change = known?.damaged
    ? despiteIndexes(db, () => updateConversation(db, id, facts, write.source, conversation.id))
    : isChanged
      ? updateConversation(db, id, facts)
      : undefined
  if (isDamaged) finishDamaged(db, id, missing.length === gone.length, platform)
  rememberStart(db, id, began, projectId)
  if (existing?.project_id !== projectId) moveSubagents(db, id)
  const hasLessText = [...changed, ...moved].some(isLess)
  const again = existing ? unitsToReadAgain(db, write.source, conversation, unitId, owner, hasLessText) : []
  const isNew = ({ message }: NumberedMessage) => !message.superseded
  const newHere = added.filter(isNew).length - (copies?.uncounted ?? 0)
  const isAll = missing.length === gone.length
  return {
    id,
    changed: isChanged,
    added: newHere,
    fresh: [...touched].map(toStored),
    paid: change !== undefined && isAll ? { change, ...paidIn(numbered, copied, facts) } : undefined,
    again,
  }
}

/** Returns rows whose text can be read. They keep their chunk. */
function readable(rows: OldRow[]): PlacedMessage[] {
  return rows.filter(({ line }) => line !== "").map((row) => ({ ...row, old: row }))
}

function toStored({ number, flags, message }: NumberedMessage): StoredMessage {
  return {
    number,
    role: message.role,
    at: message.at,
    model: message.model,
    parts: message.parts,
    effects: message.effects ?? [],
    usage: message.usage,
    abandoned: (flags & MESSAGE_FLAGS.abandoned) !== 0,
    superseded: (flags & MESSAGE_FLAGS.superseded) !== 0,
    copied: (flags & MESSAGE_FLAGS.copied) !== 0,
  }
}

/** Returns the messages as the history would return them now. Copies are known only at this point. */
function paidIn(numbered: NumberedMessage[], copied: Set<number>, { ended_at, started_at }: Facts) {
  const ended = ended_at ?? started_at
  const messages = numbered.map(
    ({ number, message: { at, model, usage, effects = [], superseded = false } }): PaidFields => ({
      number,
      at,
      model,
      usage,
      effects,
      superseded,
      copied: copied.has(number),
    }),
  )
  return { ended_at: ended ?? undefined, messages }
}

function findConversation(db: Db, source: string, nativeId: string): Existing | undefined {
  const sql = "select * from conversation where source = ? and native_id = ?"
  const row = rowQuery(db, sql, TABLES.conversation).get(source, nativeId)
  return row && { row, facts: factsKey(row), damaged: !isIntact(db, "conversation", row) }
}

/**
 * Returns the stored messages that stay when one of a conversation's units is written: those of other units and, if the unit's
 * earlier records are no longer available, its own earlier messages.
 */
function stayingMessages(
  old: Map<string, OldRow>,
  incoming: UnitMessage[],
  unitId: number,
  write: UnitWrite,
): UnitMessage[] {
  const now = new Set(incoming.map(keyText))
  const rows = [...old.values()]
  const others = rows.filter((row) => row.by !== unitId && row.line !== "" && !row.damaged)
  const keepsOwn = !write.partial && (others.length > 0 || !write.isComplete)
  const lost = keepsOwn ? rows.filter((row) => row.by === unitId && !now.has(keyText(row)) && row.line !== "") : []
  const staying = [...others.map((row) => toMessageWrite(row)), ...lost.map((row) => toMessageWrite(row, true))]
  return staying.sort((a, b) => a.position - b.position)
}

/** Whether an imported message differs from the stored one, and does not just repeat or extend it. */
function contradicts({ by, message }: UnitMessage, here: OldRow | undefined): boolean {
  if (!here || here.by === by || here.line === "" || here.damaged) return false
  const now = message.parts.map(({ text }) => text)
  return !toMessageWrite(here).message.parts.every(({ text }) => now.some((longer) => longer.startsWith(text)))
}

function liveOf(messages: UnitMessage[]): UnitMessage[] {
  return messages.filter(({ message }) => !message.superseded)
}

function inOrder(old: Map<string, OldRow>): OldRow[] {
  const live = [...old.values()].filter(({ flags }) => (flags & MESSAGE_FLAGS.superseded) === 0)
  return live.sort((a, b) => (a.position ?? a.number) - (b.position ?? b.number))
}

/** A conversation from several units lasts from the first message of any of them to the last. */
function together(conversation: ConversationWrite, messages: UnitMessage[]): ConversationWrite {
  const { started_at: _, ended_at: __, ...named } = conversation
  return { ...named, messages: messages.map(({ message }) => message) }
}

/** Converts a stored message to the form in which it was written. Only the hash of its key is known. */
export function toMessageWrite(
  row: OldRow,
  superseded = (row.flags & MESSAGE_FLAGS.superseded) !== 0,
): UnitMessage & { position: number } {
  const { model, usage, parts, effects }: MessageWrite = JSON.parse(row.line)
  const message: MessageWrite = {
    key: "",
    role: row.role,
    at: row.at ?? undefined,
    model,
    parts,
    effects,
    usage,
    abandoned: (row.flags & MESSAGE_FLAGS.abandoned) !== 0 || undefined,
    superseded: superseded || undefined,
  }
  return { key: row.key, message, by: row.by, position: row.position ?? row.number }
}

/**
 * Returns the other units with this conversation that should be read again: all of them if this unit now has less text than
 * before, since they may have the complete message; otherwise those that take precedence over this one for naming the
 * conversation.
 */
function unitsToReadAgain(
  db: Db,
  source: string,
  { id: nativeId, authority }: ConversationWrite,
  unitId: number,
  owner: number,
  hasLessText: boolean,
): string[] {
  const others = rowQuery(
    db,
    `select u.id, u.key from claim k join unit u on u.id = k.unit_id
       where k.native_id = ? and u.source = ? and k.authority = ? and u.id <> ? and u.state = 'present'`,
    { id: "integer", key: "text" },
  ).all(nativeId, source, authority, unitId)
  const names = (other: number) => owner === unitId && outranks(db, nativeId, other, owner)
  return others.filter(({ id }) => hasLessText || names(id)).map(({ key }) => key)
}

function isLess({ old, line, flags, by }: NumberedMessage): boolean {
  if (!old || old.by !== by) return false
  return (
    line.length < old.line.length ||
    ((flags & MESSAGE_FLAGS.superseded) !== 0 && (old.flags & MESSAGE_FLAGS.superseded) === 0)
  )
}

/**
 * Decides which of two units of the same authority names a conversation that both contain: the one that is still present and
 * still contains it, then the one that contains its beginning, then the one whose path sorts first.
 */
function outranks(db: Db, nativeId: string, unitId: number, rivalId: number): boolean {
  const rank = rowQuery(
    db,
    `select u.state = 'present' and ifnull(k.live, 1) as there, ifnull(k.began_at, 9e15) as began_at, u.path
     from unit u left join claim k on k.unit_id = u.id and k.native_id = ? where u.id = ?`,
    { there: "integer", began_at: "integer", path: "text" },
  )
  const mine = rank.get(nativeId, unitId)!
  const theirs = rank.get(nativeId, rivalId)
  if (!theirs) return true
  if (mine.there !== theirs.there) return mine.there === 1
  if (mine.began_at !== theirs.began_at) return mine.began_at < theirs.began_at
  return mine.path < theirs.path
}

export type NumberedMessage = {
  number: number
  position: number
  line: string
  message: MessageWrite
  key: Buffer
  flags: number
  chunk: number
  by: number
  old?: OldRow
}

/** Numbers the messages. A native record keeps its number; records found later are numbered after the last one. */
function numberMessages(messages: UnitMessage[], old: Map<string, OldRow>, lastNumber: number): NumberedMessage[] {
  let next = lastNumber + 1
  // Even the key of a damaged row is not reliable, so the row is identified by its text.
  const damaged = [...old.values()].filter((row) => row.damaged)
  return messages.map(({ key, message, by }, index) => {
    const row = old.get(keyText({ key })) ?? damaged.find(({ number, line }) => line === bodyLine(number, message))
    const number = row?.number ?? (lastNumber === 0 ? message.stored?.number : undefined) ?? next++
    const numbered: NumberedMessage = {
      number,
      position: index + 1,
      message,
      key,
      flags: flagsOf(message) | (row ? row.flags & MESSAGE_FLAGS.copied : 0),
      chunk: row && !row.damaged ? row.chunk : -1,
      by,
      line: bodyLine(number, message),
    }
    if (row) numbered.old = row
    return numbered
  })
}

function flagsOf(message: MessageWrite): number {
  const prompt = message.parts.some((part) => part.origin === "person")
  return (
    (message.abandoned ? MESSAGE_FLAGS.abandoned : 0) |
    (message.superseded ? MESSAGE_FLAGS.superseded : 0) |
    (prompt ? MESSAGE_FLAGS.prompt : 0)
  )
}

function rowDiffers({ old, message, position, number, flags, by }: NumberedMessage): boolean {
  return (
    old!.damaged === true ||
    old!.by !== by ||
    old!.role !== message.role ||
    old!.flags !== flags ||
    old!.at !== (message.at ?? null) ||
    (old!.position ?? old!.number) !== position ||
    old!.number !== number
  )
}

/** Returns a hash that is short enough to store for every message and long enough never to collide. */
function hashKey(key: string): Buffer {
  return hash("sha1", key, "buffer").subarray(0, 12)
}

function loadMessages(
  db: Db,
  { id, unit_id }: RowIn<"conversation">,
): { old: Map<string, OldRow>; isDamaged: boolean } {
  const rows = readMessages(db, id, unit_id)
  const isDamaged = hasMissingRows(db, id) || rows.some(({ line, damaged }) => line === "" || damaged)
  if (!isDamaged) return { old: byKey(rows), isDamaged }
  refuseOutOfOrder(db, id)
  return { old: byKey([...rows, ...withoutRow(db, id, rows, unit_id)]), isDamaged }
}

/** Returns messages whose row is missing but whose text exists; the text contains their number. */
function withoutRow(db: Db, id: number, rows: OldRow[], by: number): OldRow[] {
  const known = new Set(rows.map(({ number }) => number))
  const none = {
    position: null,
    chunk: -1,
    role: "system" as const,
    flags: 0,
    at: null,
    unit_id: null,
    by,
    damaged: true,
  }
  return [...loadLines(db, id)]
    .filter(([number]) => !known.has(number))
    .map(([number, line]) => ({ ...none, number, line, key: Buffer.from(`without a row ${number}`) }))
}

function readMessages(db: Db, id: number, owner: number): OldRow[] {
  const lines = loadLines(db, id)
  const rows = rowQuery(db, "select * from message where conversation_id = ?", TABLES.message).all(id)
  return rows.map((row) => ({
    ...row,
    by: row.unit_id ?? owner,
    line: lines.get(row.number) ?? "",
    ...(!isIntact(db, "message", row) && { damaged: true, by: owner }),
  }))
}

function byKey(rows: OldRow[]): Map<string, OldRow> {
  return new Map(rows.map((row) => [keyText(row), row]))
}

function saveMessage(
  db: Db,
  id: number,
  { number, position, chunk, key, flags, message, by }: NumberedMessage,
  version: number,
  owner: number,
): void {
  const at = message.at ?? null
  const place = position === number ? null : position
  const values = [id, number, place, chunk, key, message.role, flags, at, version, by === owner ? null : by]
  db.prepare(
    `insert or replace into message (conversation_id, number, position, chunk, key, role, flags, at, version, unit_id, sum)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(...values, rowSum("message", values))
}

function deleteMessage(db: Db, id: number, number: number): void {
  db.prepare("delete from message where conversation_id = ? and number = ?").run(id, number)
  deleteEffects(db, id, number)
}

/** A message without a unit id belongs to the conversation's own unit, which changes now. */
function handOver(db: Db, id: number, from: number, to: number): void {
  db.prepare("update message set unit_id = ? where conversation_id = ? and unit_id is null").run(from, id)
  db.prepare("update message set unit_id = null where conversation_id = ? and unit_id = ?").run(id, to)
}

function insertConversation(db: Db, source: string, nativeId: string, unitId: number, authority: number): number {
  return valueQuery(
    db,
    `insert into conversation (source, native_id, unit_id, authority, kind, message_count, last_number, estimated_tokens, text_bytes, change_seq)
       values (?, ?, ?, ?, 'person', 0, 0, 0, 0, 0) returning id`,
    "integer",
  ).get(source, nativeId, unitId, authority)!
}

function existingFork(db: Db, id: number): string | undefined {
  return valueQuery(db, "select fork_of from conversation where id = ?", "text?").get(id) ?? undefined
}

/**
 * Updates the row of a conversation. A damaged row also gets its source and id again, and then a new checksum. Returns the number
 * of the change.
 */
function updateConversation(db: Db, id: number, facts: Facts, source?: string, nativeId?: string): number {
  db.prepare(
    `update conversation set unit_id = @unit_id, authority = @authority, project_id = @project_id, kind = @kind, title = @title,
       title_from = @title_from, cwds = @cwds, git_branch = @git_branch, git_commit = @git_commit, agent_version = @agent_version,
       parent_id = @parent_id, parent_call_id = @parent_call_id, fork_of = @fork_of, resume_of = @resume_of,
       started_at = @started_at, ended_at = @ended_at, models = @models, usage = @usage, message_count = @message_count,
       last_number = @last_number, estimated_tokens = @estimated_tokens, text_bytes = @text_bytes, held = ${ROW_COUNTS}
     where id = @id`,
  ).run({ ...facts, id })
  const change = refreshCounts(db, id)
  const sql = "update conversation set source = ?, native_id = ?, sum = null where id = ?"
  if (source !== undefined) db.prepare(sql).run(source, nativeId, id)
  return change
}

/** Returns the conversations that only this unit contains. */
export function conversationsOnlyIn(db: Db, unitId: number): number[] {
  return valueQuery(
    db,
    `select id from conversation c where unit_id = ?
       and not exists (select 1 from message m where m.conversation_id = c.id and m.unit_id is not null)`,
    "integer",
  ).all(unitId)
}

/** Deletes every row of a conversation and records the deletion in the feed. */
export function deleteConversation(db: Db, id: number): void {
  for (const table of ["message", "body", "touch", "command", "made"] as const) {
    db.prepare(DELETE_OF[table]).run(id)
  }
  db.prepare("delete from conversation where id = ?").run(id)
  forgetStart(db, id)
  db.prepare("insert into deletion (change_seq, conversation_id) values (?, ?)").run(nextChange(db), id)
}

const DELETE_OF = {
  message: "delete from message where conversation_id = ?",
  body: "delete from body where conversation_id = ?",
  touch: "delete from touch where conversation_id = ?",
  command: "delete from command where conversation_id = ?",
  made: "delete from made where conversation_id = ?",
}
