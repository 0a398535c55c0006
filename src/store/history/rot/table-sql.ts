import { KEYS, SUMMED_COLUMNS, type Summed } from "./sums.ts"

// The statements for every table with checksums, built only from the names in `SUMMED_COLUMNS`.

export type TableSql = {
  /** The damaged rows: all of them, or those whose key begins with a given value. */
  damaged: string
  damagedOf: string
  allOf: string
  /** All rows, in key order. */
  forward: string
  backward: string
  insert: string
  /** Adds checksums to a number of rows without one. */
  seal: string
  sealOf: string
  /** Takes the value twice: a row out of order may be among the others of the index, so each is compared by itself too. */
  countOf: string
  deleteOf: string
  deleteOne: string
  deleteDamaged: string
  triggers: string
}

const made = new Map<Summed, TableSql>()

export function tableSql(table: Summed): TableSql {
  const sql = made.get(table) ?? sqlOf(table)
  made.set(table, sql)
  return sql
}

/** SQL that is true for a row that is as it was written, or that has no checksum yet. */
export function intactSql(alias: string, table: Summed): string {
  return ["ifnull(", alias, ".sum = ", sumOf(table, `${alias}.`), ", not is_sealed())"].join("")
}

function sumOf(table: Summed, prefix = ""): string {
  const columns = SUMMED_COLUMNS[table].map((name) => prefix + name)
  return ["row_sum('", table, "', ", columns.join(", "), ")"].join("")
}

function sqlOf(table: Summed): TableSql {
  const columns: readonly string[] = SUMMED_COLUMNS[table]
  const key = columns.slice(0, KEYS[table])
  const first = [key[0], "= ?"].join(" ")
  const damaged = ["select * from", table, "as t where not", intactSql("t", table)].join(" ")
  const seal = ["update", table, "set sum =", sumOf(table), "where sum is null"].join(" ")
  return {
    damaged,
    damagedOf: [damaged, "and", first].join(" "),
    forward: ["select * from", table, "order by", key.join(", ")].join(" "),
    backward: ["select * from", table, "order by", key.map((name) => [name, "desc"].join(" ")).join(", ")].join(" "),
    allOf: ["select * from", table, "where", first].join(" "),
    insert: [
      "insert or ignore into",
      table,
      ["(", [...columns, "sum"].join(", "), ") values (", [...columns, "sum"].map(() => "?").join(", "), ")"].join(""),
    ].join(" "),
    seal: [seal, "limit ?"].join(" "),
    sealOf: [seal, "and", first].join(" "),
    countOf: ["select count(*) filter (where ", first, ") from ", table, " where ", first].join(""),
    deleteOf: ["delete from", table, "where", first].join(" "),
    deleteDamaged: ["delete from", table, "as t where not", intactSql("t", table)].join(" "),
    deleteOne: ["delete from", table, "where", key.map((name) => [name, "= ?"].join(" ")).join(" and ")].join(" "),
    triggers: [...sumTriggers(table, key), ...countTriggers(table)].join(";"),
  }
}

function sumTriggers(table: Summed, key: readonly string[]): string[] {
  const same = key.map((name) => [name, " = new.", name].join("")).join(" and ")
  const update = ["update", table, "set sum =", sumOf(table, "new."), "where", same]
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
      sumOf(table, "old."),
      "); end",
    ].join(" "),
  ]
}

/** The table and column that count the rows of a table. */
const COUNTED: Partial<Record<Summed, [owner: string, column: string]>> = {
  raw: ["unit", "blocks"],
  message: ["conversation", "held"],
  body: ["conversation", "held"],
  touch: ["conversation", "held"],
  command: ["conversation", "held"],
  made: ["conversation", "held"],
}

function countTriggers(table: Summed): string[] {
  const [owner, column] = COUNTED[table] ?? []
  if (owner === undefined || column === undefined) return []
  const forget = ["update", owner, "set", column, "= null where id =", `old.${SUMMED_COLUMNS[table][0]}`, "and", column]
  return [
    [
      `create temp trigger forget_count_${table} after delete on`,
      table,
      "for each row begin",
      ...forget,
      "is not null; end",
    ].join(" "),
  ]
}
