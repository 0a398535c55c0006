import { crc32 } from "node:zlib"
import type { Db } from "../../sqlite/database.ts"
import { type HistoryRow, type HistoryValue, KEYS, rowSum, SUMMED_COLUMNS, type Summed } from "./sums.ts"
import { tableSql } from "./table-sql.ts"

// A checksum of four bytes also says which bit it is, where just one flipped: of all single bits only that one makes it
// right again. More than one flipped bit looks like a single one once in 4 billion, times the row's length in bits.

/** A value as it stands on disk: text may be no text any more. */
export type Cell = { type: "integer" | "real" | "text" | "blob"; bytes: Buffer } | { type: "null" }

/** A row with its one wrong bit put right, which may be one of its key; undefined where it is not just one. */
export function correctedRow(db: Db, table: Summed, row: HistoryRow): HistoryRow | undefined {
  if (typeof row.sum !== "number") return undefined
  const columns: readonly string[] = SUMMED_COLUMNS[table]
  const values = columns.map((name) => row[name] ?? null) // a column that a damaged schema does not name is no column
  const right = corrected(table, values.map(cellOf), row.sum) ?? correctedBytes(db, table, values, row.sum)
  return right && { ...Object.fromEntries(columns.map((name, i) => [name, right[i]!])), sum: rowSum(table, right) }
}

/** As text that is no longer text was read, its bytes are not known: they are looked up once more. */
function correctedBytes(db: Db, table: Summed, values: HistoryValue[], sum: number): HistoryValue[] | undefined {
  if (!values.some((value) => typeof value === "string" && value.includes("\ufffd"))) return undefined
  const stored = db
    .prepare(tableSql(table).cells)
    .raw()
    .get(...values.slice(0, KEYS[table])) as (string | Buffer | number | null)[] | undefined
  if (stored?.pop() !== sum) return undefined
  const cells = values.map((_, i) => ({ type: stored[2 * i], bytes: stored[2 * i + 1] }) as Cell)
  return corrected(table, cells, sum)
}

function cellOf(value: HistoryValue): Cell {
  if (value === null) return { type: "null" }
  if (typeof value === "number") return { type: "integer", bytes: Buffer.from(String(value)) }
  const bytes = Buffer.from(value as Uint8Array)
  return { type: typeof value === "string" ? "text" : "blob", bytes }
}

/** The values that the checksum was made of, if they differ from these in at most one bit. */
export function corrected(table: string, cells: readonly Cell[], sum: number): HistoryValue[] | undefined {
  const values = cells.map(cellValue)
  const wrong = (rowSum(table, values) ^ sum) | 0
  if (wrong === 0 || (wrong & (wrong - 1)) === 0) return values // the checksum's own bit
  return withText(table, cells, values, sum) ?? withNumber(table, values, sum)
}

export function cellValue(cell: Cell): HistoryValue {
  if (cell.type === "null") return null
  if (cell.type === "text") return cell.bytes.toString("utf8")
  return cell.type === "blob" ? cell.bytes : Number(cell.bytes.toString("latin1"))
}

/**
 * Looks for a bit of a text or a blob. A checksum is linear: flipping a bit changes it in a way that depends only on how
 * many bytes follow, so one walk from the end tries every bit.
 */
function withText(
  table: string,
  cells: readonly Cell[],
  values: readonly HistoryValue[],
  sum: number,
): HistoryValue[] | undefined {
  const pieces = summedBytes(table, cells)
  const now = crc32(Buffer.concat(pieces.map(({ bytes }) => bytes)))
  const wrong = (now ^ sum) >>> 0
  const changes = Uint32Array.from({ length: 8 }, (_, bit) => TABLE[1 << bit]!)
  for (const { column, bytes } of pieces.reverse()) {
    for (let at = bytes.length - 1; at >= 0; at--) {
      for (let bit = 0; bit < 8; bit++) {
        const change = changes[bit]!
        if (change === wrong && column !== undefined) {
          const mended = Buffer.from(bytes)
          mended[at]! ^= 1 << bit
          const right = values.with(column, cellValue({ ...cells[column], bytes: mended } as Cell))
          return rowSum(table, right) === sum ? right : undefined
        }
        changes[bit] = (change >>> 8) ^ TABLE[change & 255]!
      }
    }
  }
  return undefined
}

/** The bytes that `rowSum` looks at, in pieces; `column` where a piece is what is stored. */
function summedBytes(table: string, cells: readonly Cell[]): { bytes: Buffer; column?: number }[] {
  const pieces: { bytes: Buffer; column?: number }[] = [{ bytes: Buffer.from(table) }]
  for (const [i, cell] of cells.entries()) {
    if (cell.type === "null") continue
    const mark = { text: "t", blob: "x", integer: "n", real: "n" }[cell.type]
    pieces.push({ bytes: Buffer.from(`\0${i}${mark}`) })
    if (mark === "n") pieces.push({ bytes: Buffer.from(`${cellValue(cell)}`) })
    else pieces.push({ bytes: cell.bytes, column: i })
  }
  return pieces
}

const WIDTHS = [8, 16, 24, 32, 48, 64]

/** Looks for a bit of a whole number, in any of the widths that SQLite may have kept it in. */
function withNumber(table: string, values: readonly HistoryValue[], sum: number): HistoryValue[] | undefined {
  for (const [column, value] of values.entries()) {
    if (typeof value !== "number" || !Number.isSafeInteger(value)) continue
    for (const width of WIDTHS) {
      if (BigInt.asIntN(width, BigInt(value)) !== BigInt(value)) continue
      for (let bit = 0n; bit < width; bit++) {
        const other = Number(BigInt.asIntN(width, BigInt(value) ^ (1n << bit)))
        const right = values.with(column, other)
        if (Number.isSafeInteger(other) && rowSum(table, right) === sum) return right
      }
    }
  }
  return undefined
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1
  return rest
})
