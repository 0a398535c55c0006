import { expect, onTestFinished, test } from "vitest"
import { packBlock, readBlock } from "../../src/store/history/codec.ts"
import { type Cell, cellValue, corrected } from "../../src/store/history/rot/correct.ts"
import { isSound, KEYS, rowSum, SUMMED, SUMMED_COLUMNS, type Summed } from "../../src/store/history/rot/sums.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { checkRows } from "../support/check-rows.ts"
import { conversation, said, unit } from "../support/conversations.ts"
import { makeOld } from "../support/old-history.ts"
import { A, everything, fullHistory } from "./full-history.ts"

// A flipped bit may make a number of a text: here only the columns of queries are checked.
checkRows({ values: false })

test("no flipped bit of a block gives other text: it is the same, or it is known to be damaged", () => {
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

test("a checksum tells which bit of a row flipped, whichever it is", () => {
  const row: Cell[] = [
    { type: "integer", bytes: Buffer.from("70000") },
    { type: "text", bytes: Buffer.from("claude_code é ✅") },
    { type: "null" },
    { type: "integer", bytes: Buffer.from("-3") },
    { type: "blob", bytes: Buffer.from([0, 255, 7, 128]) },
    { type: "integer", bytes: Buffer.from("1760000000000") },
    { type: "text", bytes: Buffer.alloc(0) },
  ]
  const values = row.map(cellValue)
  const sum = rowSum("touch", values)
  for (const [i, cell] of row.entries()) {
    if (cell.type === "null") continue
    for (let bit = 0; bit < (cell.type === "integer" ? 48 : cell.bytes.length * 8); bit++) {
      const bytes = Buffer.from(cell.bytes)
      if (cell.type !== "integer") bytes[bit >> 3]! ^= 1 << (bit & 7)
      const number = BigInt.asIntN(
        48,
        BigInt(bytes.toString("latin1").match(/^-?\d+$/)?.[0] ?? 0) ^ (1n << BigInt(bit)),
      )
      const flipped = cell.type === "integer" ? Buffer.from(`${number}`) : bytes
      expect([i, bit, corrected("touch", row.with(i, { type: cell.type, bytes: flipped }), sum)]).toEqual([
        i,
        bit,
        values,
      ])
    }
  }
  for (let bit = 0; bit < 32; bit++) expect(corrected("touch", row, sum ^ (1 << bit))).toEqual(values)
  expect(corrected("touch", row, sum ^ 0x5a5a)).toBeUndefined()
})

test("every row of every table carries a checksum, whoever wrote it", async () => {
  const { path, store } = await fullHistory()
  store.close()
  const db = openSqlite(path)
  onTestFinished(() => db.close() && undefined)
  for (const table of SUMMED) {
    const rows = db.prepare(`select * from ${table}`).all() as never[]
    expect([table, rows.length > 0]).toEqual([table, true])
    for (const row of rows)
      expect([table, (row as { sum: number }).sum !== null && isSound(table, row)]).toEqual([table, true])
  }
})

test("a change in any stored value is noticed, and put right where it is one bit", async () => {
  const { path, store } = await fullHistory()
  const clean = JSON.stringify(await everything(store))
  expect(await store.inspect()).toEqual({ conversations: [], others: [], unsealed: 0 })
  for (const table of SUMMED) {
    for (const column of [
      ...SUMMED_COLUMNS[table].slice(KEYS[table] === SUMMED_COLUMNS[table].length ? 0 : KEYS[table]),
      "sum",
    ]) {
      const changed = flipOne(path, table, column)
      if (!changed) continue
      const { conversations, others } = await store.inspect()
      expect([table, column, conversations.length + others.length > 0]).toEqual([table, column, true])
      await store.heal([], { everywhere: true })
      expect([table, column, await store.inspect()]).toEqual([
        table,
        column,
        { conversations: [], others: [], unsealed: 0 },
      ])
      expect(await store.check()).toEqual([])
      expect(JSON.stringify(await everything(store))).toBe(clean)
    }
  }
})

test("a message whose number is damaged keeps its number", async () => {
  const { path, store } = await fullHistory()
  const versions = await store.versions(A)
  for (const bit of [2, 7, 11]) {
    const db = openSqlite(path)
    db.prepare("update message set number = ? where key in (select key from message where number = 3)").run(
      3 ^ (1 << bit),
    )
    db.close()
    expect(await store.versions(A)).toEqual(versions)
    expect((await store.messages(A)).map(({ number }) => number)).toEqual([1, 2, 3])
    await store.heal([], { everywhere: true })
  }
})

test("a damaged row is not made right by writing to it", async () => {
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

test("what an older dex wrote opens as it is, and gets its checksums bit by bit", async () => {
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

/** Flips the lowest bit of the first value of a column that has one, behind the store's back. */
function flipOne(path: string, table: Summed, column: string): boolean {
  const db = openSqlite(path)
  try {
    db.unsafeMode(true)
    db.pragma("writable_schema = on")
    const key = SUMMED_COLUMNS[table].slice(0, KEYS[table])
    const row = db
      .prepare(`select *, typeof(${column}) as type from ${table} where ${column} is not null limit 1`)
      .get() as Record<string, never> | undefined
    if (!row) return false
    const value: string | number | Buffer = row[column]!
    const flipped =
      typeof value === "number"
        ? Number(BigInt(value) ^ 1n)
        : typeof value === "string"
          ? Buffer.from(value)
              .map((byte, i) => (i === 0 ? byte ^ 1 : byte))
              .toString()
          : Buffer.from(value).fill(value[0]! ^ 1, 0, 1)
    if (flipped === "") return false
    const where = key.map((name) => `${name} = ?`).join(" and ")
    db.prepare(`update ${table} set ${column} = ? where ${where}`).run(flipped, ...key.map((name) => row[name]!))
    return true
  } finally {
    db.close()
  }
}
