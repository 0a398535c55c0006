import type { Db, Statement } from "./engine.ts"

// Typed queries. A row's type is derived from a shape, which is plain data. In tests, every statement's columns and every value
// are compared with the shape (test/support/check-rows.ts); outside of tests a query is the prepared statement itself.
// rowQuery(db, "select id, title from …", { id: "integer", title: "text?" }).all()
// valueQuery(db, "select id from … where name = ?", "integer").get(name)
// tupleQuery(db, "select kind, count(*) from …", ["text", "integer"]).all()

/** The type of a column: with `?` if the value may be null, a list if it is one of a few known values. */
export type ColumnType = keyof ValueTypes | `${keyof ValueTypes}?` | readonly (string | number | null)[]
export type Shape = { readonly [column: string]: ColumnType }
export type Shapes = { readonly [table: string]: Shape }

type ValueTypes = { integer: number; real: number; text: string; blob: Buffer }
type ValueOf<Type> = Type extends readonly (infer Value)[]
  ? Value
  : Type extends keyof ValueTypes
    ? ValueTypes[Type]
    : Type extends `${infer Name extends keyof ValueTypes}?`
      ? ValueTypes[Name] | null
      : never
export type RowOf<Columns> = { -readonly [Column in keyof Columns]: ValueOf<Columns[Column]> }

/** A prepared statement whose rows have a known type. */
type TypedQuery<Row> = {
  get(...values: unknown[]): Row | undefined
  all(...values: unknown[]): Row[]
  iterate(...values: unknown[]): IterableIterator<Row>
}

export type RowCheck = {
  rows(statement: Statement, shape: Shape): Statement
  values(statement: Statement, type: ColumnType): Statement
  tuples(statement: Statement, types: readonly ColumnType[]): Statement
  joins(statement: Statement, tables: Shapes, optionalTables: Shapes): Statement
  pragma(name: string, value: unknown, type: ColumnType): void
}

let rowCheck: RowCheck | undefined

export function checkRowsWith(newCheck: RowCheck | undefined): void {
  rowCheck = newCheck
}

export function rowQuery<const Columns extends Shape>(db: Db, sql: string, shape: Columns): TypedQuery<RowOf<Columns>> {
  const statement = db.prepare(sql)
  return (rowCheck ? rowCheck.rows(statement, shape) : statement) as TypedQuery<RowOf<Columns>>
}

/** A query for statements that return a single column. */
export function valueQuery<const Type extends ColumnType>(db: Db, sql: string, type: Type): TypedQuery<ValueOf<Type>> {
  const statement = db.prepare(sql).pluck()
  return (rowCheck ? rowCheck.values(statement, type) : statement) as TypedQuery<ValueOf<Type>>
}

/** A query that returns rows as arrays, which are faster to read than objects. Use it for many rows. */
export function tupleQuery<const Types extends readonly ColumnType[]>(
  db: Db,
  sql: string,
  types: Types,
): TypedQuery<RowOf<Types>> {
  const statement = db.prepare(sql).raw()
  return (rowCheck ? rowCheck.tuples(statement, types) : statement) as TypedQuery<RowOf<Types>>
}

/**
 * A query for joined tables. Each row has one object for each table. The columns of `optionalTables` are all null if nothing
 * was joined.
 */
export function joinQuery<const Tables extends Shapes, const Maybe extends Shapes>(
  db: Db,
  sql: string,
  tables: Tables,
  optionalTables: Maybe,
): TypedQuery<
  { [T in keyof Tables]: RowOf<Tables[T]> } & { [T in keyof Maybe]: RowOf<Maybe[T]> | { [C in keyof Maybe[T]]: null } }
> {
  const statement = db.prepare(sql).expand()
  return (rowCheck ? rowCheck.joins(statement, tables, optionalTables) : statement) as ReturnType<
    typeof joinQuery<Tables, Maybe>
  >
}

/** Returns the value of a pragma of this connection or its file. */
export function pragmaValue<const Type extends ColumnType>(db: Db, name: string, type: Type): ValueOf<Type> {
  const value = db.pragma(name, { simple: true })
  rowCheck?.pragma(name, value, type)
  return value as ValueOf<Type>
}
