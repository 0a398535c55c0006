import type { Statement } from "../../src/store/sqlite/engine.ts"
import { type ColumnType, checkRowsWith, type RowCheck, type Shape } from "../../src/store/sqlite/typed-query.ts"

/**
 * Compares what SQLite returns with the shape that the query was given: the names of the columns and their declared types when it
 * is prepared, and the values of each row that is read. `values: false` is for tests that damage databases: a flipped bit may
 * turn a text into a number.
 */
export function checkRows({ values }: { values: boolean }): void {
  checkRowsWith(rowCheck(values))
}

checkRows({ values: true })

function rowCheck(withValues: boolean): RowCheck {
  return {
    rows(statement, shape) {
      const names = statement.columns().map((column) => column.name)
      const wanted = Object.keys(shape)
      // A table may get further columns later.
      const unwanted = /\bselect (\w+\.)?\*/.test(statement.source)
        ? []
        : names.filter((name) => !wanted.includes(name))
      const differences = [
        ...wanted.filter((name) => !names.includes(name)).map((name) => `there is no column ${name}`),
        ...unwanted.map((name) => `the shape has no ${name}`),
        ...names.filter((name, i) => names.indexOf(name) !== i).map((name) => `there are two columns ${name}`),
      ]
      if (differences.length > 0) refuse(statement, differences)
      compareDeclared(statement, (name) => shape[name])
      return checkedStatement(statement, withValues, (row) => valuesOf(row, shape))
    },
    values(statement, type) {
      const count = statement.columns().length
      if (count !== 1) refuse(statement, [`it has ${count} columns instead of one`])
      compareDeclared(statement, () => type)
      return checkedStatement(statement, withValues, (value) => differenceOf("the value", value, type))
    },
    tuples(statement, types) {
      const count = statement.columns().length
      if (count !== types.length) refuse(statement, [`it has ${count} columns instead of ${types.length}`])
      compareDeclared(statement, (_, i) => types[i]!)
      return checkedStatement(statement, withValues, (row) =>
        Array.isArray(row)
          ? types.flatMap((type, i) => differenceOf(`column ${i}`, row[i], type))
          : ["a row is no array"],
      )
    },
    joins(statement, tables, maybe) {
      const all = { ...tables, ...maybe }
      const columns = statement.columns()
      const missing = Object.entries(all).flatMap(([table, shape]) =>
        Object.keys(shape)
          .filter((name) => !columns.some((column) => column.table === table && column.name === name))
          .map((name) => `there is no column ${table}.${name}`),
      )
      if (missing.length > 0) refuse(statement, missing)
      return checkedStatement(statement, withValues, (row) =>
        typeof row !== "object" || row === null
          ? ["a row is no object"]
          : Object.entries(row).flatMap(([table, joined]) => {
              const isAbsent = table in maybe && Object.values(joined).every((value) => value === null)
              return isAbsent || !all[table] ? [] : valuesOf(joined, all[table])
            }),
      )
    },
    pragma(name, value, type) {
      const differences = differenceOf("the value", value, type)
      if (differences.length > 0) throw new TypeError(`pragma ${name}: ${differences.join(", ")}`)
    },
  }
}

function valuesOf(row: unknown, shape: Shape): string[] {
  if (typeof row !== "object" || row === null || Array.isArray(row)) return ["a row is no object"]
  const values = new Map(Object.entries(row))
  return Object.entries(shape).flatMap(([name, type]) => differenceOf(name, values.get(name), type))
}

function differenceOf(name: string, value: unknown, type: ColumnType): string[] {
  return isOf(value, type) ? [] : [`${name} is ${shown(value)} and should be ${shown(type)}`]
}

function isOf(value: unknown, type: ColumnType): boolean {
  if (typeof type !== "string") return type.some((one) => one === value)
  if (value === null) return type.endsWith("?")
  const plain = type.replace("?", "")
  if (plain === "blob") return Buffer.isBuffer(value)
  if (plain === "text") return typeof value === "string"
  return typeof value === "number" && (plain === "real" || Number.isInteger(value))
}

const DECLARED: Record<string, string> = { INTEGER: "integer", TEXT: "text", BLOB: "blob", REAL: "real" }

/** Compares the declared types. An expression has none. */
function compareDeclared(statement: Statement, typeOf: (name: string, i: number) => ColumnType | undefined): void {
  const differences = statement.columns().flatMap(({ name, type }, i) => {
    const declared = DECLARED[type?.toUpperCase() ?? ""]
    const wanted = typeOf(name, i)
    const given = wanted && plainType(wanted)
    return declared === undefined || given === undefined || declared === given
      ? []
      : [`${name} is declared ${declared} and not ${given}`]
  })
  if (differences.length > 0) refuse(statement, differences)
}

function plainType(type: ColumnType): string {
  if (typeof type === "string") return type.replace("?", "")
  return type.some((one) => typeof one === "string") ? "text" : "integer"
}

/** The statement, with each returned row compared. The statement itself is shared, so it is not changed. */
function checkedStatement(
  statement: Statement,
  withValues: boolean,
  differencesOf: (row: unknown) => string[],
): Statement {
  if (!withValues) return statement
  const same = (row: unknown) => {
    const differences = differencesOf(row)
    if (differences.length > 0) refuse(statement, differences)
    return row
  }
  return {
    ...statement,
    get(...values: unknown[]) {
      const row = statement.get(...values)
      return row === undefined ? row : same(row)
    },
    all: (...values: unknown[]) => statement.all(...values).map(same),
    *iterate(...values: unknown[]) {
      for (const row of statement.iterate(...values)) yield same(row)
    },
  }
}

function refuse(statement: Statement, differences: string[]): never {
  throw new TypeError(`A query does not match its shape: ${differences.join(", ")}\n${statement.source}`)
}

function shown(value: unknown): string {
  return Buffer.isBuffer(value) ? "a blob" : (JSON.stringify(value) ?? String(value)).slice(0, 80)
}
