import { type Db, inTransaction, openDatabase } from "../../sqlite/database.ts"
import { HISTORY_MIGRATIONS } from "../migrations.ts"
import { type Cell, cellValue, corrected } from "./correct.ts"
import { keepSums } from "./keep-sums.ts"
import { type FoundRow, openPages, type Pages } from "./pages.ts"
import { type HistoryValue, knowSums, rowSum, SUMMED, SUMMED_COLUMNS, type Summed } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

export type Salvage = {
  /** Rows that are in the new file. */
  rows: number
  /** Pages of which not everything could be read. */
  damaged_pages: number
}

const BYTES_AT_ONCE = 16 << 20

/**
 * Makes a new history of every row of a damaged file that can still be read. It goes through the pages, not through
 * SQLite's trees; each row's checksum tells which table it is of and that it is whole. Rows without one, of an older
 * dex, are believed where the page is known to belong to a table.
 */
export function salvage(from: string, to: string): Salvage {
  const pages = openPages(from)
  const db = openDatabase(to, HISTORY_MIGRATIONS)
  knowSums(db)
  const names: Names = { conversations: new Map(), units: new Map(), projects: new Map(), rest: [] }
  const done: Salvage = { rows: 0, damaged_pages: 0 }
  try {
    let waiting: Identified[] = []
    let bytes = 0
    const flush = () => {
      inTransaction(db, () => {
        for (const { table, values, sum } of waiting)
          done.rows += db.prepare(tableSql(table).insert).run(...values, sum).changes
      })
      waiting = []
      bytes = 0
    }
    for (const found of identifiedRows(pages, shapesOf(db), names)) {
      if (found === "damaged page") {
        done.damaged_pages++
        continue
      }
      waiting.push(found)
      bytes += found.values.reduce<number>(
        (sum, value) => sum + (typeof value === "object" ? (value?.length ?? 0) : 50),
        0,
      )
      if (bytes >= BYTES_AT_ONCE) flush()
    }
    waiting.push(...names.rest) // what the tables have goes before what indexes repeat of them
    flush()
    keepSums(db)
    inTransaction(db, () => joinTogether(db, names))
    db.pragma("journal_mode = delete")
    return done
  } finally {
    pages.close()
    db.close()
  }
}

type Identified = { table: Summed; values: HistoryValue[]; sum: number | null }
/** What indexes say of rows that are gone, by their numbers. */
type Names = {
  conversations: Map<number, { source: string; name: string }>
  units: Map<number, { source: string; name: string }>
  projects: Map<number, string>
  /** Whole rows. */
  rest: Identified[]
}
/** In which order a table's values stand in the file; `rowid` where the first of them is kept as the row's number. */
type Shape = { columns: string[]; rowid: boolean; least: number }

/** As the newest schema has it; an older row has fewer values. */
function shapesOf(db: Db): Map<Summed, Shape> {
  return new Map(
    SUMMED.map((table) => {
      const columns = (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name)
      const rowid = ["project", "unit", "conversation", "file", "deletion"].includes(table)
      return [table, { columns, rowid, least: columns.indexOf("sum") }]
    }),
  )
}

function* identifiedRows(
  pages: Pages,
  shapes: Map<Summed, Shape>,
  names: Names,
): Generator<Identified | "damaged page", void, undefined> {
  const owners = ownersOf(pages)
  const unclear: { page: number; damaged: boolean }[] = []
  for (let page = 1; page <= pages.count; page++) {
    const { rows, isWhole } = pages.records(page)
    const proven = rows.map((row) => prove(row, shapes))
    const owner = owners.get(page)
    const table = proven.find((one) => one !== undefined)?.table ?? asTable(owner)
    if (owner !== undefined && asTable(owner) === undefined) for (const row of rows) takeName(owner, row, names)
    let unread = 0
    for (const [i, one] of proven.entries()) {
      const told = one ?? (table && believe(table, rows[i]!, shapes.get(table)!))
      if (told) yield told
      else if (table) unread++
    }
    if (!isWhole || unread > 0) unclear.push({ page, damaged: table !== undefined })
  }
  // What no page lists is looked for byte by byte, where there could be rows at all.
  for (const { page, damaged } of unclear) {
    if (pages.chained.has(page) || pages.isEmpty(page)) continue
    let isFound = false
    for (const row of pages.guesses(page)) {
      const one = prove(row, shapes)
      if (one) yield one
      isFound ||= one !== undefined
    }
    if (damaged || isFound) yield "damaged page"
  }
}

/** Which page belongs to which table or index, as far as the trees can be walked. */
function ownersOf(pages: Pages): Map<number, string> {
  const owners = new Map<number, string>()
  const walk = (root: number, name: string, visit: (page: number) => void = () => {}) => {
    const left = [root]
    for (let page = left.pop(); page !== undefined; page = left.pop()) {
      if (page < 1 || page > pages.count || owners.has(page)) continue
      owners.set(page, name)
      visit(page)
      left.push(...pages.children(page))
    }
  }
  const roots = new Map<number, string>()
  walk(1, "sqlite_schema", (page) => {
    for (const { cells } of pages.records(page).rows) {
      const [, name, , root] = cells.map(cellValue)
      if (cells.length === 5 && typeof name === "string" && typeof root === "number") roots.set(root, name)
    }
  })
  for (const [root, name] of roots) walk(root, name)
  return owners
}

function asTable(owner: string | undefined): Summed | undefined {
  return SUMMED.find((table) => table === owner)
}

/** The row, if its checksum says what it is. */
function prove(row: FoundRow, shapes: Map<Summed, Shape>): Identified | undefined {
  for (const table of SUMMED) {
    const cells = inOrder(table, row, shapes.get(table)!)
    if (!cells || cells.sum === null) continue
    const values = cells.values.map(cellValue)
    if (rowSum(table, values) === cells.sum) return { table, values, sum: cells.sum }
  }
  return undefined
}

/** The row, where its table is known: as it is if it has no checksum, or with its one wrong bit put right. */
function believe(table: Summed, row: FoundRow, shape: Shape): Identified | undefined {
  const cells = inOrder(table, row, shape)
  if (!cells) return undefined
  const values = cells.sum === null ? cells.values.map(cellValue) : corrected(table, cells.values, cells.sum)
  if (!values || values[0] === null) return undefined
  return { table, values, sum: cells.sum === null ? null : rowSum(table, values) }
}

/** The values that a table's checksum covers, and the checksum. Undefined where the row cannot be of that table. */
function inOrder(
  table: Summed,
  { rowid, cells }: FoundRow,
  shape: Shape,
): { values: Cell[]; sum: number | null } | undefined {
  const isLong = cells.length >= shape.least && cells.length <= shape.columns.length
  if (!isLong || shape.rowid !== (rowid !== undefined)) return undefined
  const cellOf = (name: string): Cell => cells[shape.columns.indexOf(name)] ?? { type: "null" }
  const [first] = SUMMED_COLUMNS[table]
  const sum = cellValue(cellOf("sum"))
  const values = SUMMED_COLUMNS[table].map((name) =>
    shape.rowid && name === first ? ({ type: "integer", bytes: Buffer.from(String(rowid)) } as Cell) : cellOf(name),
  )
  return { values, sum: typeof sum === "number" ? sum : null }
}

/** What indexes repeat of tables. */
function takeName(index: string, { cells }: FoundRow, names: Names): void {
  const [a, b, c] = cells.map(cellValue)
  const keep = (table: Summed, known: HistoryValue[]) => {
    const values = SUMMED_COLUMNS[table].map((_, i) => known[i] ?? null)
    names.rest.push({ table, values, sum: rowSum(table, values) })
  }
  if (index === "tombstone_copy" && typeof a === "object" && a?.length === 32) keep("tombstone", [a])
  if (index === "meta_copy" && typeof a === "string" && typeof b === "string") keep("meta", [a, b])
  if (index === "claim_unit" && typeof a === "number" && typeof b === "string") keep("claim", [b, a])
  if (index === "sqlite_autoindex_project_1" && typeof a === "string" && typeof b === "number") names.projects.set(b, a)
  if (typeof a !== "string" || typeof b !== "string" || typeof c !== "number") return
  if (index === "sqlite_autoindex_conversation_1") names.conversations.set(c, { source: a, name: b })
  if (index === "sqlite_autoindex_unit_1") names.units.set(c, { source: a, name: b })
}

/** Rows that hang on others that are gone get these again, as little as is known of them: they are read again. */
function joinTogether(db: Db, names: Names): void {
  const missing = (sql: string) => db.prepare(sql).pluck().all() as number[]
  for (const id of missing(MISSING_UNITS)) {
    const known = names.units.get(id)
    if (known) db.prepare(NEW_UNIT).run({ id, source: known.source, key: known.name })
  }
  for (const id of missing(MISSING_CONVERSATIONS)) {
    const known = names.conversations.get(id)
    const unit = known && db.prepare(UNIT_OF).pluck().get(known.name, known.source)
    if (!known || unit === undefined) continue
    db.prepare(NEW_CONVERSATION).run({ id, source: known.source, name: known.name, unit })
    db.prepare("update unit set connector_version = 0 where id = ?").run(unit)
  }
  // Nobody knows whether it was private.
  for (const id of missing(MISSING_PROJECTS))
    db.prepare("insert or ignore into project (id, path, private) values (?, ?, 1)").run(
      id,
      names.projects.get(id) ?? `(unknown project ${id})`,
    )
  const change = db.prepare(LAST_CHANGE).pluck().get()
  db.prepare("insert or replace into meta (key, value) values ('change_seq', ?)").run(String(change))
  // Under another name, so that whatever follows the history begins anew.
  db.prepare("insert or replace into meta (key, value) values ('history_id', ?)").run(globalThis.crypto.randomUUID())
}

const MISSING_UNITS =
  "select unit_id from (select unit_id from raw union select unit_id from claim union select unit_id from conversation) where unit_id not in (select id from unit)"
const MISSING_CONVERSATIONS =
  "select conversation_id from (select conversation_id from message union select conversation_id from body) where conversation_id not in (select id from conversation)"
const MISSING_PROJECTS =
  "select distinct project_id from conversation where project_id is not null and project_id not in (select id from project)"
const NEW_UNIT = `insert or ignore into unit (id, source, key, path, stamp, cursor, born_at, modified_at, connector_version, redaction_version, state)
  values (@id, @source, @key, @key, '', 'null', 0, 0, 0, 0, 'archived')`
const UNIT_OF =
  "select l.unit_id from claim l join unit u on u.id = l.unit_id where l.native_id = ? and u.source = ? order by l.unit_id limit 1"
const NEW_CONVERSATION = `insert or ignore into conversation (id, source, native_id, unit_id, authority, kind, message_count, last_number, estimated_tokens, text_bytes, change_seq)
  values (@id, @source, @name, @unit, 0, 'person', 0, ifnull((select max(number) from message where conversation_id = @id), 0), 0, 0, 0)`
const LAST_CHANGE = `select max(n) from (select ifnull(max(change_seq), 0) as n from conversation union all select ifnull(max(change_seq), 0) from deletion
  union all select ifnull(max(version), 0) from message union all select cast(value as integer) from meta where key = 'change_seq')`
