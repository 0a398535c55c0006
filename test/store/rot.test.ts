import { expect, onTestFinished, test } from "vitest"
import { packBlock, readBlock } from "../../src/store/history/codec.ts"
import { isIntact, KEYS, SUMMED, SUMMED_COLUMNS, type Summed } from "../../src/store/history/rot/sums.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../src/store/history/store.ts"
import { type Db, openSqlite } from "../../src/store/sqlite/engine.ts"
import { checkRows } from "../support/check-rows.ts"
import { conversation, said, unit } from "../support/conversations.ts"
import { makeOld } from "../support/old-history.ts"
import { A, everything, fullHistory } from "./full-history.ts"

// A flipped bit may make a number of a text: here only the columns of queries are checked.
checkRows({ values: false })

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
  for (const table of SUMMED) {
    const rows = db.prepare(`select * from ${table}`).all() as never[]
    expect([table, rows.length > 0]).toEqual([table, true])
    for (const row of rows)
      expect([table, (row as { sum: number }).sum !== null && isIntact(table, row)]).toEqual([table, true])
  }
})

test("a change in any stored value is detected, and the value is not shown", async () => {
  const { path, store } = await fullHistory()
  const clean = stringsIn(await shownBy(store))
  const whole = { conversations: [], others: [], unsealed: 0 }
  expect(await store.inspect()).toEqual(whole)
  for (const table of SUMMED) {
    for (const column of [
      ...SUMMED_COLUMNS[table].slice(KEYS[table] === SUMMED_COLUMNS[table].length ? 0 : KEYS[table]),
      "sum",
    ]) {
      const unflip = flipOne(path, table, column)
      if (!unflip) continue
      const { conversations, others } = await store.inspect()
      expect([table, column, conversations.length + others.length > 0]).toEqual([table, column, true])
      const wrong = [...stringsIn(await shownBy(store))].filter((text) => text !== "" && !clean.has(text))
      expect([table, column, wrong]).toEqual([table, column, []])
      unflip()
      expect([table, column, await store.inspect()]).toEqual([table, column, whole])
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
    unit("other", [conversation("fork", [said("k1", "one"), said("f2", "two")])], { bornAt: 1 } as never),
  )
  expect((await store.inspect()).conversations.map(({ ref }) => ref.id)).toContain("a")
  expect(await store.conversation(A)).toBeUndefined()
  expect(await store.takeDamaged()).toContain("claude_code:a")
})

test("a history from an older dex opens as it is, and gets its checksums gradually", async () => {
  const { path, store } = await fullHistory()
  const before = await everything(store)
  store.close()
  makeOld(path)
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
  for (const table of SUMMED)
    expect([table, db.prepare(`select count(*) from ${table} where sum is null`).pluck().get()]).toEqual([table, 0])
})

/** Flips the lowest bit of the first non-null value of a column, bypassing the store. Returns a function that flips it back. */
function flipOne(path: string, table: Summed, column: string): (() => void) | undefined {
  const key = SUMMED_COLUMNS[table].slice(0, KEYS[table])
  const where = key.map((name) => `${name} = ?`).join(" and ")
  const write = <T>(work: (db: Db) => T): T => {
    const db = openSqlite(path)
    try {
      db.unsafeMode(true)
      db.pragma("writable_schema = on")
      return work(db)
    } finally {
      db.close()
    }
  }
  const row = write((db) => db.prepare(`select * from ${table} where ${column} is not null limit 1`).get()) as
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
    write((db) =>
      db.prepare(`update ${table} set ${column} = ? where ${where}`).run(now, ...key.map((name) => by[name])),
    )
  set(flipped, row)
  return () => void set(value, { ...row, [column]: flipped })
}
