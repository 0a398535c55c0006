import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { isDexError } from "../../src/core/error.ts"
import { packBlock, readBlock } from "../../src/store/history/codec.ts"
import { type Cell, cellValue, corrected } from "../../src/store/history/rot/correct.ts"
import { salvage } from "../../src/store/history/rot/salvage.ts"
import { COLUMNS, isSound, KEYS, rowSum, SUMMED, type Summed } from "../../src/store/history/rot/sums.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../src/store/history/store.ts"
import { removeDatabase } from "../../src/store/sqlite/database.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { conversation, said, unit } from "../support/conversations.ts"
import { makeOld } from "../support/old-history.ts"
import { byteIn, bytesIn, bytesOf } from "../support/sqlite-bytes.ts"
import { tempDir } from "../support/temp.ts"

const A = { source: "claude_code" as const, id: "a" }

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
  const { path, store } = await full()
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
  const { path, store } = await full()
  const clean = JSON.stringify(await everything(store))
  expect(await store.inspect()).toEqual({ conversations: [], others: [], unsealed: 0 })
  for (const table of SUMMED) {
    for (const column of [...COLUMNS[table].slice(KEYS[table] === COLUMNS[table].length ? 0 : KEYS[table]), "sum"]) {
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
  const { path, store } = await full()
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
  const { path, store } = await full()
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
  const { path, store } = await full()
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

/** All 800 bits of the head take a minute. */
const EVERY = process.env.DEX_FLIPS ? 1 : 3

test("a flipped bit in the head of the file changes nothing, or the file is refused as damaged and recovered whole", async () => {
  const { path, clean } = await closed()
  const bits = Array.from({ length: 800 / EVERY }, (_, i) => i * EVERY)
  const { refused, unharmed, wrong } = await flippedAndUsed(path, bits, clean)
  expect(wrong).toEqual([])
  expect([refused > bits.length / 3, unharmed > bits.length / 4]).toEqual([true, true])
}, 600_000)

test("a flipped bit in the schema changes nothing, or the file is refused as damaged and recovered whole", async () => {
  const { path, clean } = await closed()
  const places = bytesOf(path, SUMMED).structure.get("schema")!
  const count = bytesIn(places) * 8
  const step = Math.floor(count / (process.env.DEX_FLIPS ? 1000 : 150))
  const bits = Array.from({ length: Math.floor(count / step) }, (_, i) => byteIn(places, (i * step) >> 3) * 8 + (i % 8))
  const { refused, wrong } = await flippedAndUsed(path, bits, clean)
  expect(wrong).toEqual([])
  expect(refused).toBeGreaterThan(bits.length / 2)
}, 600_000)

/** A file in which nothing is left in a log, and all that it says. */
async function closed(): Promise<{ path: string; clean: string }> {
  const { path, store } = await full()
  const clean = await saidBy(store)
  await store.checkpoint()
  store.close()
  return { path, clean }
}

/** Each bit by itself: the file says what it said, or is refused and recovered whole. */
async function flippedAndUsed(path: string, bits: number[], clean: string) {
  const whole = readFileSync(path)
  const flipped = join(tempDir(), "history.db")
  const outcomes = { unharmed: 0, refused: 0, wrong: [] as string[] }
  for (const bit of bits) {
    const bytes = Buffer.from(whole)
    bytes[bit >> 3]! ^= 1 << (bit & 7)
    removeDatabase(flipped)
    writeFileSync(flipped, bytes)
    const outcome = await usedAfter(flipped, clean)
    if (outcome === "unharmed") outcomes.unharmed++
    else if (outcome === "refused") {
      removeDatabase(flipped)
      writeFileSync(flipped, bytes) // as it was found, and not as somebody left it who tried to read it
      const mended = `${flipped}.mended`
      removeDatabase(mended)
      salvage(flipped, mended)
      const again = openStore(mended)
      if ((await saidBy(again)) !== clean) outcomes.wrong.push(`byte ${bit >> 3}, bit ${bit & 7}: not recovered`)
      again.close()
      outcomes.refused++
    } else outcomes.wrong.push(`byte ${bit >> 3}, bit ${bit & 7}: ${outcome}`)
  }
  if (process.env.DEX_FLIPS) console.log(`${bits.length} flips: ${JSON.stringify(outcomes)}`)
  return outcomes
}

/** Everything but the id, which a recovered file has of its own. */
async function saidBy(store: HistoryWriter): Promise<string> {
  return JSON.stringify({ ...(await everything(store)), id: "" })
}

/** Reads all of a file, writes to it, and reads it again. */
async function usedAfter(path: string, clean: string): Promise<string> {
  try {
    for (const text of ["z".repeat(300_000), "short"]) {
      const store = openStore(path)
      try {
        const told = await saidBy(store)
        if ((await store.check()).length > 0) return "refused"
        if (told !== clean) return "says something else"
        await store.saveContainer("gemini_cli", "/home/dev/elsewhere", text)
        await store.checkpoint()
      } finally {
        store.close()
      }
    }
    return "unharmed"
  } catch (error) {
    return isDexError(error) && ["corrupt", "damaged"].includes(error.code)
      ? "refused"
      : `fails otherwise: ${(error as Error).stack}`
  }
}

/** A history with rows in every table. */
async function full(): Promise<{ path: string; store: HistoryWriter }> {
  const path = join(tempDir(), "history.db")
  const store = openStore(path)
  onTestFinished(() => store.close())
  const effects = [
    { type: "file" as const, path: "/code/api/src/a.ts", action: "edited" as const, added: 3, removed: 1 },
    { type: "file" as const, path: "/code/api/src/a.ts", action: "edited" as const, added: 3 },
    { type: "command" as const, command: "npm test", exit_status: 1, failed: true },
    { type: "commit" as const, hash: "1a2b3c4", subject: "auth: one refresh at a time", branch: "main" },
  ]
  const messages = [said("k1", "one"), said("k2", "two", { role: "assistant", effects }), said("k3", "three")]
  const raw = messages.map((message) => JSON.stringify(message))
  await store.writeUnit(
    unit("a", [conversation("a", messages, { title: { text: "A title", from: "person" } })], { raw }),
  )
  await store.writeUnit(
    unit("b", [conversation("b", [said("b1", "x".repeat(200_000)), said("b2", "y")])], { raw: raw.slice(1) }),
  )
  await store.writeUnit(unit("gone", [conversation("gone", [said("g1", "to be forgotten")])]))
  await store.forget([{ source: "claude_code", id: "gone" }])
  await store.saveContainer("cursor", "/home/dev/state.vscdb", "12-34")
  await store.saveProgress({ done: 2, total: 2, at: 1_760_000_000_000 })
  await store.saveUnreadable("codex", [{ path: "/x", reason: "no" }])
  await store.saveCollection({ name: "react", kind: "folder", origin: "/d", root: "/d", added_at: 5, problems: [] })
  await store.addProjectPath("/elsewhere/api", "/code/api")
  await store.seal(Date.now() + 60_000)
  return { path, store }
}

/** All that anybody can ask for. */
async function everything(store: HistoryWriter) {
  const refs = [A, { source: "claude_code" as const, id: "b" }]
  return {
    list: await store.list({ limit: 10, offset: 0 }),
    read: await Promise.all(
      refs.map(async (ref) => [
        await store.conversation(ref),
        await store.messages(ref),
        await store.filesOf(ref),
        await store.madeIn(ref),
        await store.commandsOf(ref),
        await store.rawLines("claude_code", ref.id, "live"),
      ]),
    ),
    work: await store.work(refs),
    stats: await store.stats(),
    projects: await store.projects(),
    collections: await store.collections(),
    sources: await store.sourceReport(),
    progress: await store.progress(),
    containers: [...(await store.knownContainers("cursor"))],
    forgotten: await store.forgotten(),
    id: await store.id(),
  }
}

/** Flips the lowest bit of the first value of a column that has one, behind the store's back. */
function flipOne(path: string, table: Summed, column: string): boolean {
  const db = openSqlite(path)
  try {
    db.unsafeMode(true)
    db.pragma("writable_schema = on")
    const key = COLUMNS[table].slice(0, KEYS[table])
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
