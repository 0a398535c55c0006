import type { Db } from "../../sqlite/database.ts"
import { KEY_LENGTHS, SUMMED_COLUMNS, SUMMED_TABLES, type SummedTable } from "./sums.ts"

// The statements for every table with checksums, built only from the names in `SUMMED_COLUMNS`.

export type TableSql = {
  /** Selects all damaged rows, or only those whose key begins with a given value (`damagedOf`). */
  damaged: string
  damagedOf: string
  /** Selects all rows whose key begins with a given value. */
  allOf: string
  /** Selects all rows in the order of their keys, or in reverse. */
  forward: string
  backward: string
  insert: string
  /**
   * Adds checksums to rows without one: to a limited number of them, or to those whose key begins with a given value
   * (`sealOf`).
   */
  seal: string
  sealOf: string
  /**
   * Counts the rows whose key begins with a given value, which must be bound twice: if the table is out of order, the range that
   * SQLite reads may include other rows, so each row is compared again.
   */
  countOf: string
  deleteOf: string
  deleteOne: string
  deleteDamaged: string
  triggers: string
}

const cache = new Map<SummedTable, TableSql>()

export function tableSql(table: SummedTable): TableSql {
  const sql = cache.get(table) ?? buildSql(table)
  cache.set(table, sql)
  return sql
}

/** Returns a condition that is true for a row that is not damaged, or that has no checksum yet. */
export function intactSql(alias: string, table: SummedTable): string {
  return ["ifnull(", alias, ".sum = ", sumExpression(table, `${alias}.`), ", not is_sealed())"].join("")
}

function sumExpression(table: SummedTable, prefix = ""): string {
  const columns = SUMMED_COLUMNS[table].map((name) => prefix + name)
  return ["row_sum('", table, "', ", columns.join(", "), ")"].join("")
}

function buildSql(table: SummedTable): TableSql {
  const columns: readonly string[] = SUMMED_COLUMNS[table]
  const key = columns.slice(0, KEY_LENGTHS[table])
  const ownerCondition = [key[0], "= ?"].join(" ")
  const damaged = ["select * from", table, "as t where not", intactSql("t", table)].join(" ")
  const seal = ["update", table, "set sum =", sumExpression(table), "where sum is null"].join(" ")
  return {
    damaged,
    damagedOf: [damaged, "and", ownerCondition].join(" "),
    forward: ["select * from", table, "order by", key.join(", ")].join(" "),
    backward: ["select * from", table, "order by", key.map((name) => [name, "desc"].join(" ")).join(", ")].join(" "),
    allOf: ["select * from", table, "where", ownerCondition].join(" "),
    insert: [
      "insert or ignore into",
      table,
      ["(", [...columns, "sum"].join(", "), ") values (", [...columns, "sum"].map(() => "?").join(", "), ")"].join(""),
    ].join(" "),
    seal: [seal, "limit ?"].join(" "),
    sealOf: [seal, "and", ownerCondition].join(" "),
    countOf: ["select count(*) filter (where ", ownerCondition, ") from ", table, " where ", ownerCondition].join(""),
    deleteOf: ["delete from", table, "where", ownerCondition].join(" "),
    deleteDamaged: ["delete from", table, "as t where not", intactSql("t", table)].join(" "),
    deleteOne: ["delete from", table, "where", key.map((name) => [name, "= ?"].join(" ")).join(" and ")].join(" "),
    triggers: [...sumTriggers(table, key), ...countTriggers(table)].join(";"),
  }
}

function sumTriggers(table: SummedTable, key: readonly string[]): string[] {
  const keyCondition = key.map((name) => [name, " = new.", name].join("")).join(" and ")
  const update = ["update", table, "set sum =", sumExpression(table, "new."), "where", keyCondition]
  return [
    [
      `create temp trigger sum_new_${table} after insert on`,
      table,
      "when new.sum is null begin",
      ...update,
      "; end",
    ].join(" "),
    [
      `create temp trigger sum_changed_${table} after update on`,
      table,
      "when new.sum is old.sum or new.sum is null begin",
      ...update,
      "and (new.sum is null or old.sum is",
      sumExpression(table, "old."),
      "); end",
    ].join(" "),
  ]
}

/** The column in which the owner of rows, a unit or a conversation, stores how many rows of this table it has. */
const COUNT_COLUMNS: Partial<Record<SummedTable, [owner: string, column: string]>> = {
  raw: ["unit", "blocks"],
  message: ["conversation", "held"],
  body: ["conversation", "held"],
  touch: ["conversation", "held"],
  command: ["conversation", "held"],
  made: ["conversation", "held"],
}

function countTriggers(table: SummedTable): string[] {
  const [owner, column] = COUNT_COLUMNS[table] ?? []
  if (owner === undefined || column === undefined) return []
  const clearCount = [
    "update",
    owner,
    "set",
    column,
    "= null where id =",
    `old.${SUMMED_COLUMNS[table][0]}`,
    "and",
    column,
  ]
  return [
    [
      `create temp trigger forget_count_${table} after delete on`,
      table,
      "for each row begin",
      ...clearCount,
      "is not null; end",
    ].join(" "),
  ]
}

/**
 * Creates triggers, only for this connection, that compute the checksum of every row written without one. A row that was damaged
 * before a change stays damaged, unless the same statement sets `sum = null`, which means that all values are new. After rows
 * were deleted, the row count is unknown (null) until the caller sets it again.
 */
export function createSumTriggers(db: Db): void {
  for (const table of SUMMED_TABLES) db.exec(tableSql(table).triggers)
}
