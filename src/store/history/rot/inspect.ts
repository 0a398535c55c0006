import type { Ref } from "../../../core/ref.ts"
import type { Db } from "../../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { numberOfLine, readBlock } from "../codec.ts"
import { readRowCounts } from "../row-counts.ts"
import { TABLES } from "../tables.ts"
import { conversationRef, damagedRows, type StoredRow } from "./checked-rows.ts"
import { type HistoryRow, type HistoryValue, isIntact, type SummedTable } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

// Finds damage: rows and blocks that are not as they were written. Nothing here changes the history.

/** Which parts of a conversation are damaged, and what would restore them. */
export type Injury = {
  ref: Ref
  /** The damaged parts, described for the user: "message 12", "its title, dates or project". */
  what: string[]
  /**
   * `source`: the agent's file still exists. `records`: the raw records are complete. `nothing`: the unreadable parts are lost.
   */
  restores: "source" | "records" | "nothing"
}

export type Inspection = {
  conversations: Injury[]
  /** Other damage, described for the user. */
  others: string[]
  /** The number of conversations and units that an older dex wrote and that have no checksums yet. */
  unsealed: number
}

/** True if SQLite reports that an index does not match its table. */
export function isIndexMismatch(problem: string): boolean {
  return /^(row \d+ (missing from|values differ from)|wrong # of entries in|non-unique entry in) index /.test(problem)
}

type DamagedRow = { table: SummedTable; row: HistoryRow }

const MESSAGE_TABLES = ["message", "body"] as const
const EFFECT_TABLES = ["touch", "command", "made"] as const
export const CONVERSATION_TABLES = [...MESSAGE_TABLES, ...EFFECT_TABLES] as const
const DESCRIBING_TABLES = ["conversation", "project", "unit"]

/** Checks everything, row by row and block by block. */
export function inspect(db: Db): Inspection {
  const ids = valueQuery(db, "select id from conversation order by id", "integer").all()
  const knownIds = new Set<HistoryValue>(ids)
  const damaged = CONVERSATION_TABLES.flatMap((table) => damagedRows(db, table).map((row) => ({ table, row })))
  const conversationOf = ({ row }: DamagedRow) => row.conversation_id!
  const damagedByConversation = Map.groupBy(damaged, conversationOf)
  const checkedUnits = new Map<HistoryValue, boolean>()
  const areRecordsIntact = (unit: StoredRow) => {
    const areIntact = checkedUnits.get(unit.id!) ?? hasIntactRecords(db, unit)
    checkedUnits.set(unit.id!, areIntact)
    return areIntact
  }
  const conversations = ids.flatMap(
    (id) => inspectConversation(db, id, damagedByConversation.get(id) ?? [], areRecordsIntact) ?? [],
  )
  const strayCount = damaged.filter((row) => !knownIds.has(conversationOf(row))).length
  return {
    conversations,
    others: [...inspectOthers(db), ...describeCount(strayCount, "row", "without a conversation")],
    unsealed: countUnsealed(db),
  }
}

/** The number of conversations and units with missing checksums. */
export function countUnsealed(db: Db): number {
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

/** Inspects one conversation. `damaged` are its damaged rows, which are looked up if omitted. */
export function inspectConversation(
  db: Db,
  id: number,
  damaged: DamagedRow[] = damagedRowsOf(db, id),
  areRecordsIntact = (unit: StoredRow) => hasIntactRecords(db, unit),
): Injury | undefined {
  const stored = rowQuery(db, "select * from conversation where id = ?", TABLES.conversation).get(id)!
  const project = rowQuery(db, "select * from project where id = ?", TABLES.project).get(stored.project_id)
  const unit = rowQuery(db, "select * from unit where id = ?", TABLES.unit).get(stored.unit_id)
  const rows = [...damaged]
  if (!isIntact(db, "conversation", stored)) rows.push({ table: "conversation", row: stored })
  if (project && !isIntact(db, "project", project)) rows.push({ table: "project", row: project })
  if (unit && !isIntact(db, "unit", unit)) rows.push({ table: "unit", row: unit })
  const hasMissing = hasMissingRows(db, id, MESSAGE_TABLES)
  // If all rows exist and have correct checksums, the blocks are intact and need not be decompressed.
  const isComplete =
    stored.held !== null && !hasMissing && !rows.some(({ table }) => table === "message" || table === "body")
  const unreadable = isComplete ? [] : unreadableMessages(db, id)
  const hasDamagedRecords = unit !== undefined && !areRecordsIntact(unit)
  const isDamaged = (...tables: string[]) => rows.some(({ table }) => tables.includes(table))
  const damagedParts = [
    ...(isDamaged(...DESCRIBING_TABLES) || !unit ? ["its title, dates or project"] : []),
    ...(unreadable.length > 0 ? [describeMessages(unreadable)] : []),
    ...(hasMissing ? ["missing rows"] : []),
    ...(unreadable.length === 0 && isDamaged("message", "body")
      ? ["the order, time or other details of its messages"]
      : []),
    ...(isDamaged(...EFFECT_TABLES) || hasMissingRows(db, id, EFFECT_TABLES) ? [EFFECTS_DESCRIPTION] : []),
    ...(hasDamagedRecords ? ["its raw records"] : []),
  ]
  if (damagedParts.length === 0) return undefined
  return { ref: conversationRef(db, stored), what: damagedParts, restores: remedyOf(unit, hasDamagedRecords) }
}

const EFFECTS_DESCRIPTION = "its files, commands or commits"

/** True if files, commands or commits are damaged and can be recreated, because all messages are intact. */
export function canRenewEffects(db: Db, id: number, { what }: Injury): boolean {
  return (
    what.includes(EFFECTS_DESCRIPTION) &&
    !hasMissingRows(db, id, MESSAGE_TABLES) &&
    MESSAGE_TABLES.every((table) => damagedRows(db, table, id).length === 0)
  )
}

function damagedRowsOf(db: Db, id: number): DamagedRow[] {
  return CONVERSATION_TABLES.flatMap((table) => damagedRows(db, table, id).map((row) => ({ table, row })))
}

function describeMessages(numbers: number[]): string {
  return numbers.length === 1
    ? `message ${numbers[0]}`
    : `${numbers.length} messages (${Math.min(...numbers)} to ${Math.max(...numbers)})`
}

function remedyOf(unit: StoredRow | undefined, hasDamagedRecords: boolean): Injury["restores"] {
  if (unit?.state === "present") return "source"
  return unit && !hasDamagedRecords && unit.raw_withheld !== 1 ? "records" : "nothing"
}

/** True if a table has fewer or more rows of the conversation than were written. */
export function hasMissingRows(
  db: Db,
  id: number,
  tables: readonly (typeof CONVERSATION_TABLES)[number][] = CONVERSATION_TABLES,
): boolean {
  const storedCounts = valueQuery(db, "select held from conversation where id = ?", "text?").get(id) ?? null
  if (storedCounts === null) return false
  const counts = readRowCounts(storedCounts)
  return tables.some((table) => db.prepare(tableSql(table).countOf).pluck().get(id, id) !== counts[table])
}

/** Returns the numbers of the messages whose text is in no readable block. */
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
export function hasIntactRecords(db: Db, unit: StoredRow): boolean {
  const blocks = rowQuery(db, "select * from raw where unit_id = ? order by kind, seq", TABLES.raw)
  const nextSeqs = [0, 0]
  for (const row of blocks.iterate(unit.id!)) {
    const isReadable = row.sum !== null || readBlock(row.data)?.length === row.records
    if (!isIntact(db, "raw", row) || row.seq !== nextSeqs[row.kind] || !isReadable) return false
    nextSeqs[row.kind]!++
  }
  return unit.blocks === null || unit.blocks === nextSeqs[0]! + nextSeqs[1]!
}

const OTHER_TABLES: [table: SummedTable, singular: string, plural: string][] = [
  ["meta", "history setting", "history settings"],
  ["project", "project", "projects"],
  ["project_path", "other folder of a project", "other folders of projects"],
  ["unit", "file's record", "files' records"],
  ["container", "database's record", "databases' records"],
  ["claim", "link between a file and a conversation", "links between files and conversations"],
  ["file", "file name", "file names"],
  ["deletion", "deletion", "deletions"],
  ["tombstone", "mark of a forgotten conversation", "marks of forgotten conversations"],
  ["collection", "collection of documents", "collections of documents"],
]

function inspectOthers(db: Db): string[] {
  const rows = OTHER_TABLES.flatMap(([table, singular, plural]) =>
    describeCount(damagedRows(db, table).length, singular, "damaged", plural),
  )
  const selectOrphans = "select count(distinct unit_id) from raw where unit_id not in (select id from unit)"
  const orphanCount = valueQuery(db, selectOrphans, "integer").get()!
  const selectUnused = "select * from unit u where not exists (select 1 from conversation c where c.unit_id = u.id)"
  const withoutConversation = rowQuery(db, selectUnused, TABLES.unit).all()
  const damagedCount = withoutConversation.filter((unit) => !hasIntactRecords(db, unit)).length
  return [...rows, ...describeCount(orphanCount + damagedCount, "file's raw records", "damaged", "files' raw records")]
}

function describeCount(count: number, singular: string, state: string, plural = `${singular}s`): string[] {
  return count === 0 ? [] : [`${count} ${count === 1 ? singular : plural} ${state}`]
}
