import { afterEach, beforeEach, expect, test } from "vitest"
import { withStatementCache } from "../../src/store/sqlite/database.ts"
import { type Db, openSqlite } from "../../src/store/sqlite/engine.ts"
import { joinQuery, pragmaValue, rowQuery, tupleQuery, valueQuery } from "../../src/store/sqlite/typed-query.ts"
import { checkRows } from "../support/check-rows.ts"

let db: Db
beforeEach(() => {
  db = withStatementCache(openSqlite(":memory:"))
  db.exec(`create table shop (id integer primary key, name text not null, rate real, data blob, state text, any_type)`)
  db.exec(
    "insert into shop (name, rate, data, state) values ('one', 0.5, x'00', 'open'), ('two', null, null, 'closed')",
  )
})
afterEach(() => {
  checkRows({ values: true })
  db.close()
})

const SHOP = { id: "integer", name: "text", rate: "real?", data: "blob?" } as const
const ALL = "select id, name, rate, data from shop order by id"

test("a query returns rows of its shape", () => {
  const [one, two] = rowQuery(db, ALL, SHOP).all()
  expect(one).toEqual({ id: 1, name: "one", rate: 0.5, data: Buffer.from([0]) })
  expect(two!.name.length + (two!.rate ?? 0)).toBe(3)
  expect(rowQuery(db, "select state from shop where id = ?", { state: ["open", "closed"] }).get(2)?.state).toBe(
    "closed",
  )
  expect(valueQuery(db, "select name from shop where id = ?", "text").get(3)).toBeUndefined()
  expect([...tupleQuery(db, "select id, name from shop", ["integer", "text"]).iterate()]).toEqual([
    [1, "one"],
    [2, "two"],
  ])
  expect(pragmaValue(db, "user_version", "integer")).toBe(0)
  expect(rowQuery(db, "select * from shop where id = ?", { name: "text" }).get(1)?.name).toBe("one")
})

test("a wrong shape is rejected before anything is read", () => {
  const refused = (sql: string, shape: Parameters<typeof rowQuery>[2]) => expect(() => rowQuery(db, sql, shape))
  refused(ALL, { ...SHOP, opened: "integer" }).toThrow(/there is no column opened\nselect id, name/)
  refused(ALL, { id: "integer", name: "text" }).toThrow("the shape has no rate, the shape has no data")
  refused(ALL, { ...SHOP, name: "integer" }).toThrow("name is declared text and not integer")
  refused("select id, name, id from shop", { id: "integer", name: "text" }).toThrow("there are two columns id")
  refused("select * from shop", { opened: "text" }).toThrow("there is no column opened")
  expect(() => valueQuery(db, ALL, "integer")).toThrow("it has 4 columns instead of one")
  expect(() => valueQuery(db, "select name from shop", "integer")).toThrow("name is declared text and not integer")
  expect(() => tupleQuery(db, "select id, name from shop", ["integer"])).toThrow("it has 2 columns instead of 1")
})

test("a value of another type is rejected, however it is read", () => {
  const wrong = 'rate is null and should be "real"'
  const shops = rowQuery(db, ALL, { ...SHOP, rate: "real" })
  expect(() => shops.all()).toThrow(wrong)
  expect(() => [...shops.iterate()]).toThrow(wrong)
  expect(shops.get()?.rate).toBe(0.5)
  const sum = valueQuery(db, "select sum(rate) from shop where id = ?", "real")
  expect(() => sum.get(2)).toThrow('the value is null and should be "real"')
  expect(() => rowQuery(db, "select state from shop", { state: ["open"] }).all()).toThrow('state is "closed"')
  expect(() => tupleQuery(db, "select id, rate * 1 from shop", ["integer", "integer"]).all()).toThrow("column 1 is 0.5")
  expect(() => pragmaValue(db, "journal_mode", "integer")).toThrow('pragma journal_mode: the value is "memory"')
})

test("each joined table is compared with its own shape; if nothing was joined, it is null", () => {
  db.exec("create table sale (id integer primary key, shop_id integer not null); insert into sale values (7, 1)")
  const sql = "select shop.id, shop.name, sale.id from shop left join sale on sale.shop_id = shop.id order by shop.id"
  const shop = { id: "integer", name: "text" } as const
  const sales = joinQuery(db, sql, { shop }, { sale: { id: "integer" } }).all()
  expect(sales.map((row) => [row.shop.name, row.sale.id])).toEqual([
    ["one", 7],
    ["two", null],
  ])
  expect(() => joinQuery(db, sql, { shop }, { sale: { day: "text" } })).toThrow("there is no column sale.day")
  expect(() => joinQuery(db, sql, { shop, sale: { id: "integer" } }, {}).all()).toThrow("id is null")
  expect(() => joinQuery(db, sql, { shop: { name: "integer" } }, {}).all()).toThrow('name is "one"')
})

test("a statement that returned single values elsewhere is detected", () => {
  expect(valueQuery(db, "select name from shop", "text").all()).toEqual(["one", "two"])
  expect(() => rowQuery(db, "select name from shop", { name: "text" }).all()).toThrow("a row is no object")
})

test("tests that damage databases check the columns only", () => {
  checkRows({ values: false })
  expect(rowQuery(db, ALL, { ...SHOP, rate: "real" }).all()[1]!.rate).toBeNull()
  expect(() => rowQuery(db, ALL, { id: "integer" })).toThrow("the shape has no name")
})
