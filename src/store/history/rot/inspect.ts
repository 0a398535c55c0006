import type { Ref } from "../../../core/ref.ts"
import type { Db } from "../../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { numberOfLine, readBlock } from "../codec.ts"
import { readRowCounts } from "../row-counts.ts"
import { TABLES } from "../tables.ts"
import { conversationRef, damagedRows, type Stored } from "./checked-rows.ts"
import { type HistoryRow, type HistoryValue, isIntact, type Summed } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

// Finds what is not as it was written. Nothing here changes anything.

/** Which parts of a conversation are damaged, and what would restore them. */
export type Injury = {
  ref: Ref
  /** For a person: "message 12", "its title, dates or project". */
  what: string[]
  /**
   * `source`: the agent's file still exists. `records`: the raw records are complete. `nothing`: the unreadable parts are lost.
   */
  restores: "source" | "records" | "nothing"
}

export type Inspection = {
  conversations: Injury[]
  /** Other damage, for a person. */
  others: string[]
  /** Conversations that an older dex wrote and that have no checksums yet. */
  unsealed: number
}

/** Whether a problem that SQLite reports is an index that does not match its table. */
export function isOfIndex(problem: string): boolean {
  return /^(row \d+ (missing from|values differ from)|wrong # of entries in|non-unique entry in) index /.test(problem)
}

type Bad = { table: Summed; row: HistoryRow }

const MESSAGES = ["message", "body"] as const
const EFFECTS = ["touch", "command", "made"] as const
export const PARTS = [...MESSAGES, ...EFFECTS] as const
const HEADS = ["conversation", "project", "unit"]

/** Checks everything, row by row and block by block. */
export function inspect(db: Db): Inspection {
  const ids = valueQuery(db, "select id from conversation order by id", "integer").all()
  const known = new Set<HistoryValue>(ids)
  const bad = PARTS.flatMap((table) => damagedRows(db, table).map((row) => ({ table, row })))
  const ownerOf = ({ row }: Bad) => row.conversation_id!
  const byOwner = Map.groupBy(bad, ownerOf)
  const looked = new Map<HistoryValue, boolean>()
  const areRecordsIntact = (unit: Stored) => {
    const isUnitIntact = looked.get(unit.id!) ?? hasIntactRecords(db, unit)
    looked.set(unit.id!, isUnitIntact)
    return isUnitIntact
  }
  const conversations = ids.flatMap((id) => inspectConversation(db, id, byOwner.get(id) ?? [], areRecordsIntact) ?? [])
  const strays = bad.filter((one) => !known.has(ownerOf(one))).length
  return {
    conversations,
    others: [...inspectOthers(db), ...counted(strays, "row", "out of place")],
    unsealed: unsealed(db),
  }
}

/** The number of conversations and units with missing checksums. */
export function unsealed(db: Db): number {
  const sql = `select (select count(*) from conversation where held is null)
    + (select count(*) from unit u where blocks is null
        and not exists (select 1 from conversation c where c.unit_id = u.id and c.held is null))`
  return valueQuery(db, sql, "integer").get()!
}

export function injuriesOf(db: Db, refs: readonly Ref[]): Injury[] {
  const idOf = valueQuery(db, "select id from conversation where source = ? and native_id = ?", "integer")
  return refs.flatMap((ref) => {
    const id = idOf.get(ref.source, ref.id)
    return (id === undefined ? undefined : inspectConversation(db, id)) ?? []
  })
}

/** `bad` are its damaged rows; they are looked up if omitted. */
export function inspectConversation(
  db: Db,
  id: number,
  bad: Bad[] = badRowsOf(db, id),
  areRecordsIntact = (unit: Stored) => hasIntactRecords(db, unit),
): Injury | undefined {
  const stored = rowQuery(db, "select * from conversation where id = ?", TABLES.conversation).get(id)!
  const project = rowQuery(db, "select * from project where id = ?", TABLES.project).get(stored.project_id)
  const unit = rowQuery(db, "select * from unit where id = ?", TABLES.unit).get(stored.unit_id)
  const rows = [...bad]
  if (!isIntact(db, "conversation", stored)) rows.push({ table: "conversation", row: stored })
  if (project && !isIntact(db, "project", project)) rows.push({ table: "project", row: project })
  if (unit && !isIntact(db, "unit", unit)) rows.push({ table: "unit", row: unit })
  const missing = hasMissingRows(db, id, MESSAGES)
  // If all rows are there with correct checksums, all blocks are as they were written: no need to decompress them.
  const isComplete =
    stored.held !== null && !missing && !rows.some(({ table }) => table === "message" || table === "body")
  const unreadable = isComplete ? [] : unreadableMessages(db, id)
  const badRecords = unit !== undefined && !areRecordsIntact(unit)
  const has = (...tables: string[]) => rows.some(({ table }) => tables.includes(table))
  const what = [
    ...(has(...HEADS) || !unit ? ["its title, dates or project"] : []),
    ...(unreadable.length > 0 ? [messagesInWords(unreadable)] : []),
    ...(missing ? ["missing rows"] : []),
    ...(unreadable.length === 0 && has("message", "body") ? ["the order or the bytes of its messages"] : []),
    ...(has(...EFFECTS) || hasMissingRows(db, id, EFFECTS) ? [EFFECTS_IN_WORDS] : []),
    ...(badRecords ? ["its raw records"] : []),
  ]
  if (what.length === 0) return undefined
  return { ref: conversationRef(db, stored), what, restores: remedyOf(unit, badRecords) }
}

const EFFECTS_IN_WORDS = "its files, commands or commits"

/** True if files, commands or commits are damaged and can be made again, because all messages are as they were written. */
export function canRenewEffects(db: Db, id: number, { what }: Injury): boolean {
  return (
    what.includes(EFFECTS_IN_WORDS) &&
    !hasMissingRows(db, id, MESSAGES) &&
    MESSAGES.every((table) => damagedRows(db, table, id).length === 0)
  )
}

function badRowsOf(db: Db, id: number): Bad[] {
  return PARTS.flatMap((table) => damagedRows(db, table, id).map((row) => ({ table, row })))
}

function messagesInWords(numbers: number[]): string {
  return numbers.length === 1
    ? `message ${numbers[0]}`
    : `${numbers.length} messages (${Math.min(...numbers)} to ${Math.max(...numbers)})`
}

function remedyOf(unit: Stored | undefined, badRecords: boolean): Injury["restores"] {
  if (unit?.state === "present") return "source"
  return unit && !badRecords && unit.raw_withheld !== 1 ? "records" : "nothing"
}

/** True if a table has fewer or more rows of the conversation than were written. */
export function hasMissingRows(db: Db, id: number, tables: readonly (typeof PARTS)[number][] = PARTS): boolean {
  const held = valueQuery(db, "select held from conversation where id = ?", "text?").get(id) ?? null
  if (held === null) return false
  const counts = readRowCounts(held)
  return tables.some((table) => db.prepare(tableSql(table).countOf).pluck().get(id, id) !== counts[table])
}

/** The messages whose text is in no readable block. */
function unreadableMessages(db: Db, id: number): number[] {
  const readable = new Set<string>()
  const blocks = tupleQuery(db, "select chunk, data from body where conversation_id = ?", ["integer", "blob"]).all(id)
  for (const [chunk, data] of blocks)
    for (const line of readBlock(data) ?? []) readable.add(`${chunk} ${numberOfLine(line)}`)
  const sql = "select number, chunk from message where conversation_id = ? order by number"
  const rows = tupleQuery(db, sql, ["integer", "integer"]).all(id)
  return rows.filter(([number, chunk]) => !readable.has(`${chunk} ${number}`)).map(([number]) => number)
}

/** Whether all raw records of a unit exist, in order, and can be read. A correct checksum proves that a block can be read. */
export function hasIntactRecords(db: Db, unit: Stored): boolean {
  const blocks = rowQuery(db, "select * from raw where unit_id = ? order by kind, seq", TABLES.raw)
  const next = [0, 0]
  for (const row of blocks.iterate(unit.id!)) {
    const isRead = row.sum !== null || readBlock(row.data)?.length === row.records
    if (!isIntact(db, "raw", row) || row.seq !== next[row.kind] || !isRead) return false
    next[row.kind]!++
  }
  return unit.blocks === null || unit.blocks === next[0]! + next[1]!
}

const OTHERS: [table: Summed, one: string, more: string][] = [
  ["meta", "setting of the history", "settings of the history"],
  ["project", "project", "projects"],
  ["project_path", "folder of a project elsewhere", "folders of projects elsewhere"],
  ["unit", "file's record", "files' records"],
  ["container", "database's record", "databases' records"],
  ["claim", "note of where a conversation is", "notes of where conversations are"],
  ["file", "file name", "file names"],
  ["deletion", "deletion", "deletions"],
  ["tombstone", "mark of a forgotten conversation", "marks of forgotten conversations"],
  ["collection", "collection of documents", "collections of documents"],
]

function inspectOthers(db: Db): string[] {
  const rows = OTHERS.flatMap(([table, one, more]) => counted(damagedRows(db, table).length, one, "damaged", more))
  const stray = "select count(distinct unit_id) from raw where unit_id not in (select id from unit)"
  const orphans = valueQuery(db, stray, "integer").get()!
  const unused = "select * from unit u where not exists (select 1 from conversation c where c.unit_id = u.id)"
  const empty = rowQuery(db, unused, TABLES.unit).all()
  const withoutOwner = empty.filter((unit) => !hasIntactRecords(db, unit)).length
  return [...rows, ...counted(orphans + withoutOwner, "file's raw records", "damaged", "files' raw records")]
}

function counted(count: number, one: string, is: string, more = `${one}s`): string[] {
  return count === 0 ? [] : [`${count} ${count === 1 ? one : more} ${is}`]
}
