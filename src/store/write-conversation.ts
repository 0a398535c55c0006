import { hash } from "node:crypto"
import { bodyLine, loadLines, type Placed, saveBodies } from "./bodies.ts"
import { copiedIn, flagCopies } from "./copies.ts"
import type { Db } from "./database.ts"
import { deleteEffects, saveEffects } from "./effects.ts"
import { type Facts, factsKey, factsOf } from "./facts.ts"
import { nextChange, refreshCounts } from "./feed.ts"
import { FLAG } from "./flags.ts"
import { makeReady } from "./heal.ts"
import { HELD, readHeld } from "./held.ts"
import { despiteIndexes } from "./mend.ts"
import type { Stored } from "./sound.ts"
import type { ConversationWrite, MessageWrite, StoredMessage, UnitWrite } from "./store.ts"
import { isSound, rowSum } from "./sums.ts"

type Existing = {
  id: number
  unit_id: number
  authority: number
  last_number: number
  held: string | null
  facts: string
  damaged: boolean
}

export type Row = {
  number: number
  position: number | null
  chunk: number
  key: Buffer
  role: string
  flags: number
  at: number | null
}

/** A stored message with its body, to see whether it changed; `damaged` where its row cannot be relied on. */
export type OldRow = Row & { line: string; damaged?: boolean }

/** Undefined when another unit with a better claim already tells this conversation. */
export function saveConversation(
  db: Db,
  write: UnitWrite,
  unitId: number,
  conversation: ConversationWrite,
): { id: number; changed: boolean; added: number; fresh: StoredMessage[] } | undefined {
  const existing = findConversation(db, write.source, conversation.id)
  if (existing && existing.unit_id !== unitId && !outranks(db, unitId, conversation.authority, existing))
    return undefined

  const projectId =
    conversation.project === undefined ? null : projectIdOf(db, conversation.project, conversation.git_remote)
  const old = existing ? loadMessages(db, existing) : new Map<string, OldRow>()
  const takenOver = existing !== undefined && existing.unit_id !== unitId
  const last = [...old.values()].reduce((most, { number }) => Math.max(most, number), existing?.last_number ?? 0)
  const numbered = numberMessages(conversation.messages, old, last)
  const id = existing?.id ?? insertConversation(db, write.source, conversation.id, unitId, conversation.authority)

  const added = numbered.filter((message) => !message.old)
  const kept = new Set(numbered.map((message) => message.old))
  const untold = [...old.values()].filter((row) => !kept.has(row))
  const gone = write.partial ? [] : untold
  const changed = numbered.filter(({ old, line }) => old && (old.line !== line || old.damaged))
  const moved = numbered.filter((message) => message.old && rowDiffers(message))
  if (added.length > 0 || gone.length > 0 || changed.length > 0)
    saveBodies(db, id, [...numbered, ...(write.partial ? readable(untold) : [])], gone)
  for (const row of gone) deleteMessage(db, id, row.number)
  const touched = new Set([...added, ...changed, ...moved])
  const version = touched.size > 0 ? nextChange(db) : 0
  for (const message of touched) saveMessage(db, id, message, version)
  for (const message of [...added, ...changed]) saveEffects(db, id, message, projectId, conversation.project)

  const lastNumber = numbered.reduce((most, message) => Math.max(most, message.number), last)
  const copies = flagCopies(db, write.source, id, added)
  const copied = copies || numbered.some(({ flags }) => flags & FLAG.copied) ? copiedIn(db, id) : new Set<number>()
  const counted = numbered.filter(({ number, message }) => !message.superseded && !copied.has(number))
  const facts = factsOf(
    conversation,
    counted.map(({ message }) => message),
    unitId,
    projectId,
    lastNumber,
    copies?.forkOf ?? existingFork(db, id),
  )
  const isChanged =
    !existing ||
    takenOver ||
    added.length + gone.length + changed.length + moved.length > 0 ||
    copies !== undefined ||
    existing.damaged ||
    existing.facts !== factsKey(facts)
  if (existing?.damaged) despiteIndexes(db, () => updateConversation(db, id, facts, write.source, conversation.id))
  else if (isChanged) updateConversation(db, id, facts)
  return { id, changed: isChanged, added: added.length, fresh: [...touched].map(toStored) }
}

/** What stays in its chunk as it is. */
function readable(rows: OldRow[]): Placed[] {
  return rows.filter(({ line }) => line !== "").map((row) => ({ ...row, old: row }))
}

function toStored({ number, flags, message }: Numbered): StoredMessage {
  return {
    number,
    role: message.role,
    ...(message.at !== undefined && { at: message.at }),
    ...(message.model !== undefined && { model: message.model }),
    parts: message.parts,
    effects: message.effects ?? [],
    ...(message.usage !== undefined && { usage: message.usage }),
    abandoned: (flags & FLAG.abandoned) !== 0,
    superseded: (flags & FLAG.superseded) !== 0,
    copied: (flags & FLAG.copied) !== 0,
  }
}

function findConversation(db: Db, source: string, nativeId: string): Existing | undefined {
  const find = db.prepare("select * from conversation where source = ? and native_id = ?")
  let row = find.get(source, nativeId) as (Existing & Stored) | undefined
  if (row && !isSound("conversation", row)) {
    makeReady(db, row.id)
    row = find.get(source, nativeId) as typeof row
  }
  return row && { ...row, facts: factsKey(row), damaged: !isSound("conversation", row) }
}

/** A better authority wins; among equals one that is still there, then the one written last, then the smaller key. */
function outranks(db: Db, unitId: number, authority: number, existing: Existing): boolean {
  if (authority !== existing.authority) return authority > existing.authority
  const rank = db.prepare("select state, modified_at, key from unit where id = ?")
  const mine = rank.get(unitId) as { state: string; modified_at: number; key: string }
  const theirs = rank.get(existing.unit_id) as typeof mine | undefined
  if (!theirs) return true
  if (mine.state !== theirs.state) return mine.state === "present"
  if (mine.modified_at !== theirs.modified_at) return mine.modified_at > theirs.modified_at
  return mine.key < theirs.key
}

export type Numbered = {
  number: number
  position: number
  line: string
  message: MessageWrite
  key: Buffer
  flags: number
  chunk: number
  old?: OldRow
}

/** A native record keeps the number it was given; what is found late is numbered after the last. */
function numberMessages(messages: MessageWrite[], old: Map<string, OldRow>, lastNumber: number): Numbered[] {
  let next = lastNumber + 1
  // Of a damaged row not even the key is known for sure: what it says tells which message it is.
  const damaged = [...old.values()].filter((row) => row.damaged)
  return messages.map((message, index) => {
    const key = hashKey(message.key)
    const row =
      old.get(key.toString("latin1")) ?? damaged.find(({ number, line }) => line === bodyLine(number, message))
    const number = row?.number ?? next++
    const numbered: Numbered = {
      number,
      position: index + 1,
      message,
      key,
      flags: flagsOf(message) | (row ? row.flags & FLAG.copied : 0),
      chunk: row && !row.damaged ? row.chunk : -1,
      line: bodyLine(number, message),
    }
    if (row) numbered.old = row
    return numbered
  })
}

function flagsOf(message: MessageWrite): number {
  const prompt = message.parts.some((part) => part.origin === "person")
  return (
    (message.abandoned ? FLAG.abandoned : 0) | (message.superseded ? FLAG.superseded : 0) | (prompt ? FLAG.prompt : 0)
  )
}

function rowDiffers({ old, message, position, number, flags }: Numbered): boolean {
  return (
    old!.damaged === true ||
    old!.role !== message.role ||
    old!.flags !== flags ||
    old!.at !== (message.at ?? null) ||
    (old!.position ?? old!.number) !== position ||
    old!.number !== number
  )
}

/** Short enough to keep for every message, long enough never to collide. */
function hashKey(key: string): Buffer {
  return hash("sha1", key, "buffer").subarray(0, 12)
}

function loadMessages(db: Db, { id, held }: Existing): Map<string, OldRow> {
  const rows = readMessages(db, id)
  const isWhole = held === null || readHeld(held).message === rows.length
  if (isWhole && rows.every(({ line, damaged }) => line !== "" && !damaged)) return byKey(rows)
  makeReady(db, id)
  const mended = readMessages(db, id)
  return byKey([...mended, ...withoutRow(db, id, mended)])
}

/** Messages whose text is there and whose row is gone: the text tells their number. */
function withoutRow(db: Db, id: number, rows: OldRow[]): OldRow[] {
  const known = new Set(rows.map(({ number }) => number))
  const none = { position: null, chunk: -1, role: "", flags: 0, at: null, damaged: true }
  return [...loadLines(db, id)]
    .filter(([number]) => !known.has(number))
    .map(([number, line]) => ({ ...none, number, line, key: Buffer.from(`without a row ${number}`) }))
}

function readMessages(db: Db, id: number): OldRow[] {
  const lines = loadLines(db, id)
  const rows = db.prepare("select * from message where conversation_id = ?").all(id) as (Row & Stored)[]
  return rows.map((row) => ({
    ...row,
    line: lines.get(row.number) ?? "",
    ...(!isSound("message", row) && { damaged: true }),
  }))
}

function byKey(rows: OldRow[]): Map<string, OldRow> {
  return new Map(rows.map((row) => [row.key.toString("latin1"), row]))
}

function saveMessage(
  db: Db,
  id: number,
  { number, position, chunk, key, flags, message }: Numbered,
  version: number,
): void {
  const at = message.at ?? null
  const values = [id, number, position === number ? null : position, chunk, key, message.role, flags, at, version]
  db.prepare(
    "insert or replace into message (conversation_id, number, position, chunk, key, role, flags, at, version, sum) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  ).run(...values, rowSum("message", values))
}

function deleteMessage(db: Db, id: number, number: number): void {
  db.prepare("delete from message where conversation_id = ? and number = ?").run(id, number)
  deleteEffects(db, id, number)
}

function projectIdOf(db: Db, path: string, remote: string | undefined): number {
  return db
    .prepare(
      "insert into project (path, git_remote) values (?, ?) on conflict (path) do update set git_remote = ifnull(excluded.git_remote, git_remote) returning id",
    )
    .pluck()
    .get(path, remote ?? null) as number
}

function insertConversation(db: Db, source: string, nativeId: string, unitId: number, authority: number): number {
  return db
    .prepare(
      `insert into conversation (source, native_id, unit_id, authority, kind, message_count, last_number, estimated_tokens, text_bytes, change_seq)
       values (?, ?, ?, ?, 'person', 0, 0, 0, 0, 0) returning id`,
    )
    .pluck()
    .get(source, nativeId, unitId, authority) as number
}

function existingFork(db: Db, id: number): string | undefined {
  return (db.prepare("select fork_of from conversation where id = ?").pluck().get(id) as string | null) ?? undefined
}

/** A row that was damaged gets its name again too; then all of it is as it was written just now. */
function updateConversation(db: Db, id: number, facts: Facts, source?: string, nativeId?: string): void {
  db.prepare(
    `update conversation set unit_id = @unit_id, authority = @authority, project_id = @project_id, kind = @kind, title = @title,
       title_from = @title_from, cwds = @cwds, git_branch = @git_branch, git_commit = @git_commit, agent_version = @agent_version,
       parent_id = @parent_id, parent_call_id = @parent_call_id, fork_of = @fork_of, resume_of = @resume_of,
       started_at = @started_at, ended_at = @ended_at, models = @models, usage = @usage, message_count = @message_count,
       last_number = @last_number, estimated_tokens = @estimated_tokens, text_bytes = @text_bytes, held = ${HELD}
     where id = @id`,
  ).run({ ...facts, id })
  refreshCounts(db, id)
  if (source === undefined) return
  const sql = "update conversation set source = ?, native_id = ?, sum = null where id = ?"
  db.prepare(sql).run(source, nativeId, id)
}

export function conversationsOf(db: Db, unitId: number): number[] {
  return db.prepare("select id from conversation where unit_id = ?").pluck().all(unitId) as number[]
}

/** Removes every row of a conversation and says so in the feed. */
export function deleteConversation(db: Db, id: number): void {
  for (const table of ["message", "body", "touch", "command", "made"] as const) {
    db.prepare(DELETE_OF[table]).run(id)
  }
  db.prepare("delete from conversation where id = ?").run(id)
  db.prepare("insert into deletion (change_seq, conversation_id) values (?, ?)").run(nextChange(db), id)
}

const DELETE_OF = {
  message: "delete from message where conversation_id = ?",
  body: "delete from body where conversation_id = ?",
  touch: "delete from touch where conversation_id = ?",
  command: "delete from command where conversation_id = ?",
  made: "delete from made where conversation_id = ?",
}
