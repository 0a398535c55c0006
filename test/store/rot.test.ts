import { readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { packBlock, readBlock } from "../../src/store/history/codec.ts"
import { copyReadable } from "../../src/store/history/rot/copy-readable.ts"
import {
  checksumOf,
  isIntact,
  KEY_LENGTHS,
  SUMMED_COLUMNS,
  SUMMED_TABLES,
  type SummedTable,
} from "../../src/store/history/rot/sums.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../src/store/history/store.ts"
import { type Db, openSqlite } from "../../src/store/sqlite/engine.ts"
import { checkRows } from "../support/check-rows.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { downgradeHistory } from "../support/old-history.ts"
import { bytesOf, flipBitAt, type StoredRow } from "../support/sqlite-bytes.ts"
import { tempDir } from "../support/temp.ts"
import { A, everything, fullHistory, writeA, writeB } from "./full-history.ts"

// A flipped bit may make a number of a text: here only the columns of queries are checked.
checkRows({ values: false })

const INTACT = { conversations: [], others: [], unsealed: 0 }

test("a flipped bit in a block never gives other text: the text is the same, or the damage is detected", () => {
  const lines = Array.from({ length: 40 }, (_, i) => JSON.stringify({ n: i + 1, parts: [{ text: `é ${i} ${i * i}` }] }))
  const { data } = packBlock(lines)
  const noticed = { damaged: 0, same: 0 }
  for (let bit = 0; bit < data.length * 8; bit++) {
    const flipped = Buffer.from(data)
    flipped[bit >> 3]! ^= 1 << (bit & 7)
    const read = readBlock(flipped)
    if (read === undefined) noticed.damaged++
    else {
      expect([bit, read]).toEqual([bit, lines])
      noticed.same++
    }
  }
  expect(noticed.same).toBeLessThan(noticed.damaged / 100)
})

test("every row of every table has a checksum, whichever code wrote it", async () => {
  const { path, store } = await fullHistory()
  store.close()
  const db = openSqlite(path)
  onTestFinished(() => db.close() && undefined)
  for (const table of SUMMED_TABLES) {
    const rows = db.prepare(`select * from ${table}`).all() as never[]
    expect([table, rows.length > 0]).toEqual([table, true])
    for (const row of rows)
      expect([table, (row as { sum: number }).sum !== null && isIntact(db, table, row)]).toEqual([table, true])
  }
})

test("a change in any stored value is detected, and the value is not shown", async () => {
  const { path, store } = await fullHistory()
  const clean = stringsIn(await shownBy(store))
  expect(await store.inspect()).toEqual(INTACT)
  for (const table of SUMMED_TABLES) {
    for (const column of [
      ...SUMMED_COLUMNS[table].slice(KEY_LENGTHS[table] === SUMMED_COLUMNS[table].length ? 0 : KEY_LENGTHS[table]),
      "sum",
    ]) {
      const unflip = flipOne(path, table, column)
      if (!unflip) continue
      const { conversations, others } = await store.inspect()
      expect([table, column, conversations.length + others.length > 0]).toEqual([table, column, true])
      const wrong = [...stringsIn(await shownBy(store))].filter((text) => text !== "" && !clean.has(text))
      expect([table, column, wrong]).toEqual([table, column, []])
      unflip()
      expect([table, column, await store.inspect()]).toEqual([table, column, INTACT])
    }
  }
})

/** Everything that commands show of it. */
async function shownBy(store: HistoryWriter) {
  return [
    await store.list({ limit: 10, offset: 0 }),
    ...[await store.conversation(A), await store.messages(A), await store.filesOf(A), await store.madeIn(A)],
    ...[await store.commandsOf(A), await store.work([A]), await store.stats(), await store.projects()],
    ...[await store.collections(), await store.sourceReport()],
  ]
}

function stringsIn(value: unknown, into = new Set<string>()): Set<string> {
  if (typeof value === "string") into.add(value)
  else if (typeof value === "object" && value !== null)
    for (const one of value instanceof Map ? value.values() : Object.values(value)) stringsIn(one, into)
  return into
}

test("writing to a damaged row does not make it count as undamaged", async () => {
  const { path, store } = await fullHistory()
  const db = openSqlite(path)
  db.exec("update conversation set title = 'something that nobody ever said' where native_id = 'a'")
  db.close()
  await store.writeUnit(
    unit("other", [conversation("fork", [textMessage("k1", "one"), textMessage("f2", "two")])], { bornAt: 1 } as never),
  )
  expect((await store.inspect()).conversations.map(({ ref }) => ref.id)).toContain("a")
  expect(await store.conversation(A)).toBeUndefined()
  expect(await store.takeDamaged()).toContain("claude_code:a")
})

test("a process that opened a history before another one completed its checksums detects a missing one", async () => {
  const { path, store } = await fullHistory()
  store.close()
  downgradeHistory(path)
  const [reader, writer] = [openStore(path), openStore(path)]
  onTestFinished(() => {
    reader.close()
    writer.close()
  })
  expect(await reader.conversation(A)).toMatchObject({ ref: A })
  await writer.seal(Date.now() + 60_000)
  expect(await reader.conversation(A)).toMatchObject({ ref: A })
  const db = openSqlite(path)
  db.exec("update conversation set title = 'something that nobody ever said', sum = null where native_id = 'a'")
  db.close()
  expect(await reader.conversation(A)).toBeUndefined()
  expect((await reader.inspect()).conversations.map(({ ref }) => ref.id)).toContain("a")
})

test("a history from an older dex opens as it is, and gets its checksums gradually", async () => {
  const { path, store } = await fullHistory()
  // Version 0.1.0 knew no other folders of a project.
  await store.splitProject("/elsewhere/api")
  const before = await everything(store)
  store.close()
  downgradeHistory(path)
  const now = openStore(path)
  onTestFinished(() => now.close())
  expect(await everything(now)).toEqual(before)
  const { unsealed, ...damage } = await now.inspect()
  expect({ unsealed: unsealed > 1, ...damage }).toEqual({ unsealed: true, conversations: [], others: [] })
  await now.seal(Date.now() - 1)
  expect((await now.inspect()).unsealed).toBe(unsealed)
  await now.seal(Date.now() + 60_000)
  expect(await now.inspect()).toEqual({ unsealed: 0, conversations: [], others: [] })
  expect(await everything(now)).toEqual(before)
  const db = openSqlite(path)
  onTestFinished(() => db.close() && undefined)
  for (const table of SUMMED_TABLES)
    expect([table, db.prepare(`select count(*) from ${table} where sum is null`).pluck().get()]).toEqual([table, 0])
})

/** Flips the lowest bit of the first non-null value of a column, bypassing the store. Returns a function that flips it back. */
function flipOne(path: string, table: SummedTable, column: string): (() => void) | undefined {
  const key = SUMMED_COLUMNS[table].slice(0, KEY_LENGTHS[table])
  const where = key.map((name) => `${name} = ?`).join(" and ")
  const row = change(path, (db) => db.prepare(`select * from ${table} where ${column} is not null limit 1`).get()) as
    | Record<string, string | number | Buffer>
    | undefined
  if (!row) return undefined
  const value = row[column]!
  const flipped =
    typeof value === "number"
      ? Number(BigInt(value) ^ 1n)
      : typeof value === "string"
        ? Buffer.from(value)
            .map((byte, i) => (i === 0 ? byte ^ 1 : byte))
            .toString()
        : Buffer.from(value).fill(value[0]! ^ 1, 0, 1)
  if (flipped === "") return undefined
  const set = (now: unknown, by: Record<string, unknown>) =>
    change(path, (db) =>
      db.prepare(`update ${table} set ${column} = ? where ${where}`).run(now, ...key.map((name) => by[name])),
    )
  set(flipped, row)
  return () => void set(value, { ...row, [column]: flipped })
}

describe("data derived from messages", () => {
  test.each(["touch", "command", "made"])("a lost row of %s is reported, and made again", async (table) => {
    const { path, store } = await fullHistory()
    const before = await everything(store)
    change(path, (db) => db.exec(`delete from ${table}`))
    expect((await store.inspect()).conversations).toEqual([
      { ref: A, what: ["its files, commands or commits"], restores: "source" },
    ])
    expect((await store.heal([A])).restored).toEqual([A])
    expect(await store.inspect()).toEqual(INTACT)
    expect(await everything(store)).toEqual(before)
  })

  test("is complete after a damaged message was read again", async () => {
    const { path, store } = await fullHistory()
    const before = await everything(store)
    change(path, (db) => db.exec("delete from command; update message set role = 'system' where number = 3"))
    expect((await store.heal([A])).again).toEqual([A])
    await writeA(store)
    expect(await store.inspect()).toEqual(INTACT)
    expect((await everything(store)).read).toEqual(before.read)
  })
})

test("a wrong count of rows is corrected when a conversation is read again, even if none of its messages changed", async () => {
  const { path, store } = await fullHistory()
  change(path, (db) => {
    db.exec("update conversation set held = '3 2 1 1 1' where native_id = 'a'")
    const row = db.prepare("select * from conversation where native_id = 'a'").get() as never
    db.prepare("update conversation set sum = ? where native_id = 'a'").run(checksumOf("conversation", row))
  })
  expect((await store.inspect()).conversations).toMatchObject([{ ref: A, what: ["missing rows"] }])
  await writeA(store)
  expect(await store.inspect()).toEqual(INTACT)
})

test("a table whose rows are out of order is not written to", async () => {
  const { path, store } = await fullHistory()
  // The block of the second conversation claims to belong to number -126, and its neighbours to none.
  flipIn(path, "body", (rows) => rows.find(({ owner }) => owner === 2), { column: 0, bit: 7 })
  await expect(writeB(store)).rejects.toThrow(/not in PRIMARY KEY order.*dex doctor --repair/)
})

test("a message that claims to belong to another conversation is reported for its own", async () => {
  const { path, store } = await fullHistory()
  await store.writeUnit(
    unit("c", [conversation("c", [textMessage("c1", "x"), textMessage("c2", "y"), textMessage("c3", "z")])]),
  )
  const { native_id, id } = change(path, (db) =>
    db.prepare("select * from conversation order by id desc").get(),
  ) as never
  const own = (rows: StoredRow[]) => rows.filter(({ owner }) => owner === id)[1]
  flipIn(path, "message", own, { column: 0, bit: 1 })
  const named = (await store.inspect()).conversations.map(({ ref }) => ref.id)
  expect(named).toContain(native_id)
})

test.each([true, false])(
  "a row that claims to belong to no conversation is deleted, if its own can be restored (%s)",
  async (canBeRestored) => {
    const { path, store } = await fullHistory()
    const c = unit("c", [conversation("c", [textMessage("c1", "x")])])
    await store.writeUnit({ ...c, withholdsRaw: true })
    if (!canBeRestored) await store.archiveUnits("claude_code", ["c"])
    flipIn(path, "body", (rows) => rows.at(-1), { column: 0, bit: 2 })
    expect((await store.inspect()).others).toEqual(["1 row without a conversation"])
    await store.heal([], { everywhere: true })
    const { conversations, others } = await store.inspect()
    expect(conversations).toMatchObject([{ ref: { id: "c" } }])
    expect(others).toEqual(canBeRestored ? [] : ["1 row without a conversation"])
    if (!canBeRestored) return
    await store.writeUnit({ ...c, withholdsRaw: true })
    expect(await store.inspect()).toEqual(INTACT)
  },
)

test("a setting of the history with a damaged name is restored from its copy", async () => {
  const { path, store } = await fullHistory()
  const before = await everything(store)
  flipIn(path, "meta", (rows) => rows.at(-1), { column: 0, bit: 7 })
  expect((await store.inspect()).others).toEqual(["1 history setting damaged"])
  await store.heal([])
  expect(await store.inspect()).toEqual(INTACT)
  expect(await everything(store)).toEqual(before)
  expect(await store.unreadable("codex")).toEqual([{ path: "/x", reason: "no" }])
})

test.each(["name", "root", "sum"])("a collection of documents with a damaged %s is restored", async (column) => {
  const { path, store } = await fullHistory()
  const before = await store.collections()
  flipOne(path, "collection", column)
  expect(await store.collections()).toEqual([])
  await store.heal([])
  expect(await store.collections()).toEqual(before)
  expect(await store.inspect()).toEqual(INTACT)
  await store.removeCollection("react")
  await store.heal([])
  expect(await store.collections()).toEqual([])
})

test.each(["native_id", "unit_id", "authority", "sum"])(
  "a note of where a conversation is, with a damaged %s, is not lost: the next sync reads the file again",
  async (name) => {
    const { path, store } = await fullHistory()
    const claims = () =>
      change(path, (db) => db.prepare("select * from claim order by unit_id").all() as Record<string, unknown>[])
    const before = claims()
    const column = [...SUMMED_COLUMNS.claim, "sum"].indexOf(name)
    flipIn(path, "claim", (rows) => rows.find(({ owner }) => owner === "b"), { column, bit: 0 })
    await store.heal([], { everywhere: true })
    expect(await store.check()).toEqual([])
    expect(claims()).toMatchObject(before.map(({ native_id, unit_id }) => ({ native_id, unit_id })))
    expect((await store.knownUnits("claude_code")).get("b")).toMatchObject({ connector_version: 0 })
    await writeB(store)
    expect(claims()).toEqual(before)
  },
)

test("a row that lost its checksum counts as damaged, in every table", async () => {
  const { path, store } = await fullHistory()
  for (const table of SUMMED_TABLES) {
    const key = SUMMED_COLUMNS[table].slice(0, KEY_LENGTHS[table])
    const where = key.map((name) => `${name} = ?`).join(" and ")
    const row = change(path, (db) => db.prepare(`select * from ${table} limit 1`).get()) as Record<string, unknown>
    const set = (sum: unknown) =>
      change(path, (db) => db.prepare(`update ${table} set sum = ? where ${where}`).run(sum, ...key.map((k) => row[k])))
    set(null)
    const { conversations, others } = await store.inspect()
    expect([table, conversations.length + others.length > 0]).toEqual([table, true])
    set(row.sum)
  }
  change(path, (db) => db.exec("update message set sum = null where number = 2 and conversation_id = 1"))
  expect((await store.messages(A)).map(({ number }) => number)).toEqual([1, 3])
  await store.seal(Date.now() + 60_000)
  expect((await store.inspect()).conversations).toMatchObject([{ ref: A }])
})

test("a damaged schema loses nothing: a repair copies every row", async () => {
  const { path, store } = await fullHistory()
  await store.checkpoint()
  const count = SUMMED_TABLES.reduce((sum, table) => sum + change(path, (db) => countIn(db, table)), 0)
  const names = change(path, (db) => db.prepare("select name from sqlite_schema").pluck().all())
  const kinds = ["sql = replace(sql, 'text', 'te,t')", "sql = 'CREAT' || substr(sql, 6)", "name = name || '_'"]
  for (const [i, name] of names.entries()) {
    const damage = kinds[i % kinds.length]
    const from = join(tempDir(), "history.db")
    change(path, (db) => db.prepare("vacuum into ?").run(from))
    change(from, (db) => db.prepare(`update sqlite_schema set ${damage} where name = ?`).run(name))
    const to = join(tempDir(), "history.db")
    expect([name, damage, copyReadable(from, to)]).toEqual([name, damage, count])
    expect(readdirSync(dirname(from))).toEqual(["history.db"])
  }
})

/** Changes what is stored without the store, as a failing disk does. */
function change<T>(path: string, work: (db: Db) => T): T {
  const db = openSqlite(path)
  try {
    db.unsafeMode(true)
    db.pragma("writable_schema = on")
    return work(db)
  } finally {
    db.close()
  }
}

/** Flips a bit in the last byte of a value, in the file itself: the row stays where it is, even if its key changes. */
function flipIn(
  path: string,
  table: SummedTable,
  choose: (rows: StoredRow[]) => StoredRow | undefined,
  { column, bit }: { column: number; bit: number },
): void {
  change(path, (db) => db.pragma("wal_checkpoint(truncate)"))
  const row = choose(bytesOf(path, [table]).rows)!
  const { at, length } = row.values.find((value) => value.column === column)!.places.at(-1)!
  flipBitAt(path, at + length - 1, bit)
}

function countIn(db: Db, table: SummedTable): number {
  return db.prepare(`select count(*) from ${table}`).pluck().get() as number
}
