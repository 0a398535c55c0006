import { hash } from "node:crypto"
import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { bodyLine, loadLines, type PlacedMessage, saveBodies } from "./bodies.ts"
import { copiedNumbers, flagCopies } from "./copies.ts"
import { deleteEffects, saveEffects } from "./effects.ts"
import { type Facts, factsKey, factsOf, SINGLE_UNIT_FACTS } from "./facts.ts"
import { nextChange, refreshCounts } from "./feed.ts"
import { MESSAGE_FLAGS } from "./flags.ts"
import { keyText, mergeMessages, type UnitMessage } from "./merge.ts"
import {
  foldersIn,
  forgetStartProject,
  moveSubagents,
  privateParentProject,
  projectOfConversation,
  rememberStartProject,
  startProjectOf,
} from "./private-folders.ts"
import { projectIdOf, projectPathsOf, saveWorktrees } from "./project-paths.ts"
import { allowIndexMismatch } from "./rot/checked-rows.ts"
import { hasMissingRows } from "./rot/inspect.ts"
import { isIntact, rowSum } from "./rot/sums.ts"
import { finishDamagedWrite, refuseOutOfOrder } from "./rot/write-damaged.ts"
import { ROW_COUNTS } from "./row-counts.ts"
import { spellingsOf } from "./spellings.ts"
import type { ConversationWrite, MessageWrite, PaidFields, StoredMessage, UnitWrite, WriteResult } from "./store.ts"
import { type RowIn, TABLES } from "./tables.ts"

type ExistingConversation = { row: RowIn<"conversation">; facts: string; damaged: boolean }

/** `unit_id` is null if the message comes from the conversation's own unit. */
export type MessageTableRow = Omit<RowIn<"message">, "conversation_id" | "version" | "sum">

/** A stored message, its body (`line`), and the unit it came from (`fromUnit`). `damaged` is true if the row is not reliable. */
export type OldRow = MessageTableRow & { line: string; fromUnit: number; damaged?: boolean }

type SavedConversation = {
  id: number
  changed: boolean
  added: number
  fresh: StoredMessage[]
  paid?: Omit<WriteResult["paid"][number], "ref">
  unitsToRead: string[]
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
  const storedConversation = findConversation(db, write.source, conversation.id)
  const existing = storedConversation?.row
  if (existing && conversation.authority < existing.authority && existing.unit_id !== unitId) return undefined

  const ownsConversation =
    !existing ||
    existing.unit_id === unitId ||
    (!write.foreign &&
      (conversation.authority > existing.authority || outranks(db, conversation.id, unitId, existing.unit_id)))
  const owner = ownsConversation ? unitId : existing.unit_id
  const storedFolders = existing ? foldersIn(existing.cwds) : []
  const startProject =
    existing && (!ownsConversation || write.foreign)
      ? startProjectOf(db, existing.id, existing.project_id)
      : conversation.project === undefined
        ? null
        : projectIdOf(db, spellingsOf(db, conversation.project, platform)[0], conversation.git_remote)
  const placement = {
    startProject,
    cwds: ownsConversation ? conversation.cwds : [...storedFolders, ...conversation.cwds],
    projects: conversation.projects,
    parentProject: privateParentProject(db, write.source, conversation.parent?.id),
  }
  const projectId = projectOfConversation(db, placement, platform)
  const { old, isDamaged } = existing
    ? loadMessages(db, existing)
    : { old: new Map<string, OldRow>(), isDamaged: false }
  const hasNewOwner = existing !== undefined && existing.unit_id !== owner
  if (hasNewOwner) changeOwner(db, existing.id, existing.unit_id, owner)
  const incoming = conversation.messages.map((message) => ({
    key: message.stored?.key ?? hashKey(message.key),
    message,
    fromUnit: unitId,
  }))
  const isShared = existing !== undefined && conversation.authority === existing.authority
  const remaining = isShared ? remainingMessages(old, incoming, unitId, write) : []
  const isMerged = remaining.length > 0 || (isShared && !ownsConversation)
  const accepted = write.foreign ? incoming.filter((entry) => !contradicts(entry, old.get(keyText(entry)))) : incoming
  const messages = isMerged
    ? mergeMessages(accepted, remaining, ownsConversation ? liveMessages(accepted) : liveRowsInOrder(old))
    : incoming
  const highestNumber = [...old.values()].reduce(
    (most, { number }) => Math.max(most, number),
    existing?.last_number ?? 0,
  )
  const numbered = numberMessages(messages, old, highestNumber)
  const id = existing?.id ?? insertConversation(db, write.source, conversation.id, unitId, conversation.authority)

  const added = numbered.filter((message) => !message.old)
  const matched = new Set(numbered.map((message) => message.old))
  const missing = [...old.values()].filter((row) => !matched.has(row))
  // Messages of another unit that cannot be read now stay, so that `heal` can restore them.
  const deleted = write.partial ? [] : missing.filter((row) => row.fromUnit === unitId || !isShared)
  const changed = numbered.filter(({ old, line }) => old && (old.line !== line || old.damaged))
  const moved = numbered.filter((message) => message.old && rowDiffers(message))
  if (added.length > 0 || deleted.length > 0 || changed.length > 0)
    saveBodies(db, id, [...numbered, ...readableRows(missing.filter((row) => !deleted.includes(row)))], deleted)
  for (const row of deleted) deleteMessage(db, id, row.number)
  const touched = new Set([...added, ...changed, ...moved])
  const version = touched.size > 0 ? nextChange(db) : 0
  for (const message of touched) saveMessage(db, id, message, version, owner)
  if (startProject !== null) saveWorktrees(db, startProject, conversation.worktrees ?? [], platform)
  const folders = projectId === null ? [] : projectPathsOf(db, projectId)
  for (const message of [...added, ...changed]) saveEffects(db, id, message, projectId, folders, platform)

  const lastNumber = numbered.reduce((most, message) => Math.max(most, message.number), highestNumber)
  const copies = flagCopies(db, write.source, id, added)
  const copied =
    copies || numbered.some(({ flags }) => flags & MESSAGE_FLAGS.copied) ? copiedNumbers(db, id) : new Set<number>()
  const counted = numbered.filter(({ number, message }) => !message.superseded && !copied.has(number))
  const facts = factsOf(
    remaining.length === 0 ? conversation : withMergedMessages(conversation, messages),
    counted.map(({ message }) => message),
    owner,
    projectId,
    lastNumber,
    copies?.forkOf ?? existingFork(db, id),
  )
  // If several units contain a conversation, one of them decides its title, folder and branch.
  if (!ownsConversation)
    Object.assign(facts, Object.fromEntries(SINGLE_UNIT_FACTS.map((name) => [name, existing[name]])))
  facts.project_id = projectId
  const isChanged =
    !existing ||
    hasNewOwner ||
    added.length + deleted.length + changed.length + moved.length > 0 ||
    copies !== undefined ||
    storedConversation?.damaged ||
    storedConversation?.facts !== factsKey(facts)
  const change = storedConversation?.damaged
    ? allowIndexMismatch(db, () => updateConversation(db, id, facts, write.source, conversation.id))
    : isChanged
      ? updateConversation(db, id, facts)
      : undefined
  if (isDamaged) finishDamagedWrite(db, id, missing.length === deleted.length, platform)
  rememberStartProject(db, id, startProject, projectId)
  if (existing?.project_id !== projectId) moveSubagents(db, id)
  const hasLessText = [...changed, ...moved].some(hasLostText)
  const unitsToRead = existing ? unitsToReadAgain(db, write.source, conversation, unitId, owner, hasLessText) : []
  const isLive = ({ message }: NumberedMessage) => !message.superseded
  const addedCount = added.filter(isLive).length - (copies?.uncounted ?? 0)
  const isAllLoaded = missing.length === deleted.length
  return {
    id,
    changed: isChanged,
    added: addedCount,
    fresh: [...touched].map(toStored),
    paid: change !== undefined && isAllLoaded ? { change, ...paidFields(numbered, copied, facts) } : undefined,
    unitsToRead,
  }
}

/** Returns the rows whose text can be read, with the chunks that they are in now. */
function readableRows(rows: OldRow[]): PlacedMessage[] {
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

/** Returns the data from which spending is computed. `copied` are the numbers of the messages that are copies. */
function paidFields(numbered: NumberedMessage[], copied: Set<number>, { ended_at, started_at }: Facts) {
  const end = ended_at ?? started_at
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
  return { ended_at: end ?? undefined, messages }
}

function findConversation(db: Db, source: string, nativeId: string): ExistingConversation | undefined {
  const sql = "select * from conversation where source = ? and native_id = ?"
  const row = rowQuery(db, sql, TABLES.conversation).get(source, nativeId)
  return row && { row, facts: factsKey(row), damaged: !isIntact(db, "conversation", row) }
}

/**
 * Returns the stored messages that stay when one of a conversation's units is written: those of other units, and earlier messages
 * of this unit if other units have messages too or if its earlier records are no longer available. The latter become superseded.
 */
function remainingMessages(
  old: Map<string, OldRow>,
  incoming: UnitMessage[],
  unitId: number,
  write: UnitWrite,
): UnitMessage[] {
  const incomingKeys = new Set(incoming.map(keyText))
  const rows = [...old.values()]
  const others = rows.filter((row) => row.fromUnit !== unitId && row.line !== "" && !row.damaged)
  const keepsOwn = !write.partial && (others.length > 0 || !write.isComplete)
  const superseded = keepsOwn
    ? rows.filter((row) => row.fromUnit === unitId && !incomingKeys.has(keyText(row)) && row.line !== "")
    : []
  const remaining = [...others.map((row) => toMessageWrite(row)), ...superseded.map((row) => toMessageWrite(row, true))]
  return remaining.sort((a, b) => a.position - b.position)
}

/** True if an imported message lacks or changes text of the stored one, instead of only continuing it. */
function contradicts({ fromUnit, message }: UnitMessage, stored: OldRow | undefined): boolean {
  if (!stored || stored.fromUnit === fromUnit || stored.line === "" || stored.damaged) return false
  const texts = message.parts.map(({ text }) => text)
  return !toMessageWrite(stored).message.parts.every(({ text }) => texts.some((longer) => longer.startsWith(text)))
}

function liveMessages(messages: UnitMessage[]): UnitMessage[] {
  return messages.filter(({ message }) => !message.superseded)
}

function liveRowsInOrder(old: Map<string, OldRow>): OldRow[] {
  const live = [...old.values()].filter(({ flags }) => (flags & MESSAGE_FLAGS.superseded) === 0)
  return live.sort((a, b) => (a.position ?? a.number) - (b.position ?? b.number))
}

/** Replaces the messages with those of all units. Removes the start and end, which are then computed from the messages. */
function withMergedMessages(conversation: ConversationWrite, messages: UnitMessage[]): ConversationWrite {
  const { started_at: _, ended_at: __, ...rest } = conversation
  return { ...rest, messages: messages.map(({ message }) => message) }
}

/** Converts a stored message to the form in which it was written, without its original key, of which only the hash is stored. */
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
  return { key: row.key, message, fromUnit: row.fromUnit, position: row.position ?? row.number }
}

/**
 * Returns the other units with this conversation that should be read again: all of them if this unit now has less text than
 * before, since they may have the complete message; otherwise those that take precedence over this one in naming the
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
  const takesPrecedence = (other: number) => owner === unitId && outranks(db, nativeId, other, owner)
  return others.filter(({ id }) => hasLessText || takesPrecedence(id)).map(({ key }) => key)
}

function hasLostText({ old, line, flags, fromUnit }: NumberedMessage): boolean {
  if (!old || old.fromUnit !== fromUnit) return false
  return (
    line.length < old.line.length ||
    ((flags & MESSAGE_FLAGS.superseded) !== 0 && (old.flags & MESSAGE_FLAGS.superseded) === 0)
  )
}

/**
 * True if a unit, rather than its rival of the same authority, names a conversation that both contain. The unit that is still
 * present and still contains it comes first, then the one that contains its beginning, then the one whose path sorts first.
 */
function outranks(db: Db, nativeId: string, unitId: number, rivalId: number): boolean {
  const selectRank = rowQuery(
    db,
    `select u.state = 'present' and ifnull(k.live, 1) as there, ifnull(k.began_at, 9e15) as began_at, u.path
     from unit u left join claim k on k.unit_id = u.id and k.native_id = ? where u.id = ?`,
    { there: "integer", began_at: "integer", path: "text" },
  )
  const unitRank = selectRank.get(nativeId, unitId)!
  const rivalRank = selectRank.get(nativeId, rivalId)
  if (!rivalRank) return true
  if (unitRank.there !== rivalRank.there) return unitRank.there === 1
  if (unitRank.began_at !== rivalRank.began_at) return unitRank.began_at < rivalRank.began_at
  return unitRank.path < rivalRank.path
}

export type NumberedMessage = {
  number: number
  position: number
  line: string
  message: MessageWrite
  key: Buffer
  flags: number
  chunk: number
  fromUnit: number
  old?: OldRow
}

/** Numbers the messages. A stored message keeps its number; new ones are numbered after the last one. */
function numberMessages(messages: UnitMessage[], old: Map<string, OldRow>, lastNumber: number): NumberedMessage[] {
  let next = lastNumber + 1
  // The key of a damaged row is not reliable either, so the row is identified by its text.
  const damaged = [...old.values()].filter((row) => row.damaged)
  return messages.map(({ key, message, fromUnit }, index) => {
    const row = old.get(keyText({ key })) ?? damaged.find(({ number, line }) => line === bodyLine(number, message))
    const number = row?.number ?? (lastNumber === 0 ? message.stored?.number : undefined) ?? next++
    const numbered: NumberedMessage = {
      number,
      position: index + 1,
      message,
      key,
      flags: flagsOf(message) | (row ? row.flags & MESSAGE_FLAGS.copied : 0),
      chunk: row && !row.damaged ? row.chunk : -1,
      fromUnit,
      line: bodyLine(number, message),
    }
    if (row) numbered.old = row
    return numbered
  })
}

function flagsOf(message: MessageWrite): number {
  const isPrompt = message.parts.some((part) => part.origin === "person")
  return (
    (message.abandoned ? MESSAGE_FLAGS.abandoned : 0) |
    (message.superseded ? MESSAGE_FLAGS.superseded : 0) |
    (isPrompt ? MESSAGE_FLAGS.prompt : 0)
  )
}

function rowDiffers({ old, message, position, number, flags, fromUnit }: NumberedMessage): boolean {
  return (
    old!.damaged === true ||
    old!.fromUnit !== fromUnit ||
    old!.role !== message.role ||
    old!.flags !== flags ||
    old!.at !== (message.at ?? null) ||
    (old!.position ?? old!.number) !== position ||
    old!.number !== number
  )
}

/** Shortens a key to a hash, which is stored with every message and is long enough not to collide. */
function hashKey(key: string): Buffer {
  return hash("sha1", key, "buffer").subarray(0, 12)
}

function loadMessages(
  db: Db,
  { id, unit_id }: RowIn<"conversation">,
): { old: Map<string, OldRow>; isDamaged: boolean } {
  const rows = readMessages(db, id, unit_id)
  const isDamaged = hasMissingRows(db, id) || rows.some(({ line, damaged }) => line === "" || damaged)
  if (!isDamaged) return { old: rowsByKey(rows), isDamaged }
  refuseOutOfOrder(db, id)
  return { old: rowsByKey([...rows, ...messagesWithoutRow(db, id, rows, unit_id)]), isDamaged }
}

/** Returns messages whose row is missing but whose text exists; the text contains their number. */
function messagesWithoutRow(db: Db, id: number, rows: OldRow[], fromUnit: number): OldRow[] {
  const existingNumbers = new Set(rows.map(({ number }) => number))
  const emptyRow = {
    position: null,
    chunk: -1,
    role: "system" as const,
    flags: 0,
    at: null,
    unit_id: null,
    fromUnit,
    damaged: true,
  }
  return [...loadLines(db, id)]
    .filter(([number]) => !existingNumbers.has(number))
    .map(([number, line]) => ({ ...emptyRow, number, line, key: Buffer.from(`without a row ${number}`) }))
}

function readMessages(db: Db, id: number, owner: number): OldRow[] {
  const lines = loadLines(db, id)
  const rows = rowQuery(db, "select * from message where conversation_id = ?", TABLES.message).all(id)
  return rows.map((row) => ({
    ...row,
    fromUnit: row.unit_id ?? owner,
    line: lines.get(row.number) ?? "",
    ...(!isIntact(db, "message", row) && { damaged: true, fromUnit: owner }),
  }))
}

function rowsByKey(rows: OldRow[]): Map<string, OldRow> {
  return new Map(rows.map((row) => [keyText(row), row]))
}

function saveMessage(
  db: Db,
  id: number,
  { number, position, chunk, key, flags, message, fromUnit }: NumberedMessage,
  version: number,
  owner: number,
): void {
  const at = message.at ?? null
  const storedPosition = position === number ? null : position
  const values = [
    id,
    number,
    storedPosition,
    chunk,
    key,
    message.role,
    flags,
    at,
    version,
    fromUnit === owner ? null : fromUnit,
  ]
  db.prepare(
    `insert or replace into message (conversation_id, number, position, chunk, key, role, flags, at, version, unit_id, sum)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(...values, rowSum("message", values))
}

function deleteMessage(db: Db, id: number, number: number): void {
  db.prepare("delete from message where conversation_id = ? and number = ?").run(id, number)
  deleteEffects(db, id, number)
}

/** Adjusts the messages to a new owner: a message without a unit id belongs to the conversation's own unit. */
function changeOwner(db: Db, id: number, from: number, to: number): void {
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

/** Returns the row ids of the conversations that only this unit contains. */
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
    db.prepare(DELETE_ROWS[table]).run(id)
  }
  db.prepare("delete from conversation where id = ?").run(id)
  forgetStartProject(db, id)
  db.prepare("insert into deletion (change_seq, conversation_id) values (?, ?)").run(nextChange(db), id)
}

const DELETE_ROWS = {
  message: "delete from message where conversation_id = ?",
  body: "delete from body where conversation_id = ?",
  touch: "delete from touch where conversation_id = ?",
  command: "delete from command where conversation_id = ?",
  made: "delete from made where conversation_id = ?",
}
