import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { expect, onTestFinished, test } from "vitest"
import { INDEX_FILE, INDEX_FORMAT, KNOWLEDGE_FORMAT } from "../../src/core/formats.ts"
import type { Ref } from "../../src/core/ref.ts"
import { parseQuery } from "../../src/search/query.ts"
import { searchHistory } from "../../src/search/search.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../src/store/history/store.ts"
import { MIGRATIONS } from "../../src/store/index/index-file.ts"
import type { IndexQuery } from "../../src/store/index/query.ts"
import { openIndex, readIndex } from "../../src/store/index/search-index.ts"
import type { Term } from "../../src/store/index/terms.ts"
import { SCHEMA_MARK } from "../../src/store/knowledge/knowledge.ts"
import { markDamaged, openDatabase, removeDatabase } from "../../src/store/sqlite/database.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { checkRows } from "../support/check-rows.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"

// A flipped bit may turn a text into a number, so only the columns of queries are checked here.
checkRows({ values: false })

const WORDS = ["zebrafinch", "narwhal", "quokka", "axolotl", "pangolin", "okapi", "tapir", "dugong", "numbat", "bilby"]

test("every format of derived data has its own file name", () => {
  expect(MIGRATIONS.length).toBe(INDEX_FORMAT)
  // If the schema changes, KNOWLEDGE_FORMAT must change too, and the new mark belongs here.
  expect({ [KNOWLEDGE_FORMAT]: SCHEMA_MARK }).toEqual({ 4: "bab3fef480c27b6e" })
})

test("an index that is damaged, foreign, newer or empty counts as missing, and the history is read instead", async () => {
  const { dir, store } = await history()
  const path = join(dir, INDEX_FILE)
  expect(readIndex(path)).toBe("none")
  openIndex(path).close()
  expect(readIndex(path)).toBe("none")
  for (const [what, make] of [
    ["damaged", () => writeFileSync(path, Buffer.alloc(8192, 0x5a))],
    ["foreign", () => openDatabase(path, [["x", "create table meta (a); create table words (b)"]]).close()],
    ["newer", () => newer(path)],
    ["marked", () => [openIndex(path).close(), markDamaged(path)]],
  ] as const) {
    removeDatabase(path)
    make()
    const before = readFileSync(path)
    expect([what, readIndex(path)]).toEqual([what, "damaged"])
    if (what === "damaged") expect(readFileSync(path).equals(before)).toBe(true)
    const index = openIndex(path)
    await index.follow(store)
    index.checkpoint()
    expect([what, await idsOf(store, index, "narwhal")]).toEqual([what, ["c1"]])
    index.close()
    const again = readIndex(path)
    expect([what, typeof again]).toEqual([what, "object"])
    if (typeof again === "object") again.close()
  }
})

test("a search notices a damaged block of words and reads the history instead, and the next sync rebuilds the index", async () => {
  const { dir, store } = await history()
  const path = join(dir, INDEX_FILE)
  const index = openIndex(path)
  await index.follow(store)
  index.checkpoint()
  index.close()
  const db = openSqlite(path)
  db.unsafeMode(true)
  const blocks = db.prepare("select id, block from words_data where id > 10 and id < 1 << 52").all() as {
    id: number
    block: Buffer
  }[]
  for (const { id, block } of blocks) {
    block[block.length >> 1]! ^= 2
    db.prepare("update words_data set block = ? where id = ?").run(block, id)
  }
  db.close()
  const read = readIndex(path)
  if (typeof read === "string") throw new Error(read)
  const outcome = await searchHistory(store, read, { ...ASKED, query: parseQuery("narwhal") })
  expect(outcome).toMatchObject({ mode: "scan", index_is_damaged: true, total: 1 })
  expect((await read.check()).join()).toMatch(/blocks? of words/)
  read.close()
  markDamaged(path)
  const writer = openIndex(path)
  await writer.follow(store)
  writer.checkpoint()
  expect(await idsOf(store, writer, "narwhal")).toEqual(["c1"])
  expect(await writer.check()).toEqual([])
  writer.close()
  expect(existsSync(`${path}.damaged`)).toBe(false)
})

test("a check notices that the list of pages does not match the pages, or that a page is missing", async () => {
  const { dir, store } = await history(WORDS.map((word, i) => `${word} ${manyWords(i * 2_000)}`))
  const path = join(dir, INDEX_FILE)
  const index = openIndex(path)
  await index.follow(store)
  index.checkpoint()
  expect(await index.check()).toEqual([])
  index.close()
  const whole = readFileSync(path)
  const middle = "(select pgno from words_idx order by pgno limit 1 offset 3)"
  for (const damage of [
    `update words_idx set term = cast('0zzz' as blob) where pgno = ${middle}`,
    `update words_idx set pgno = pgno + 2 where pgno = ${middle}`,
    `delete from words_idx where pgno = ${middle}`,
    "delete from words_data where id = (select max(id) - 2 from words_data where id < (2 << 37))",
  ]) {
    removeDatabase(path)
    writeFileSync(path, whole)
    damaged(path, damage)
    const read = readIndex(path)
    if (typeof read === "string") throw new Error(read)
    expect(await read.check(), damage).not.toEqual([])
    read.close()
  }
})

/** Words that are all different, so that the list of words takes several pages. */
function manyWords(from: number): string {
  return Array.from({ length: 2_000 }, (_, i) => `w${((from + i) * 7_919) % 1_000_003}x`).join(" ")
}

test("a changed row of the index is noticed by every reader that needs it", async () => {
  const { dir, store } = await history()
  const path = join(dir, INDEX_FILE)
  const index = openIndex(path)
  await index.follow(store)
  index.checkpoint()
  index.close()
  const whole = readFileSync(path)
  const ref: Ref = { source: "claude_code", id: "c1" }
  const filter = {
    match: [{ words: "one" }],
    weights: { returned: 1, said: 1, called: 1, aside: 1, hidden: 1 },
    limit: 1,
  }
  for (const [damage, query] of [
    // Without the check this row would rank last, and nobody would notice.
    ["update words_docsize set sz = x'008f5000000003' where id = (select max(id) from doc)", filter],
    ["update doc set number = 9 where id = (select max(id) from doc)", { ...filter, limit: 20 }],
    ["update doc set at = 9 where id = (select max(id) from doc)", { ...filter, to: 5 }],
    ["delete from doc where id = (select max(id) from doc)", { ...filter, limit: 20 }],
    ["delete from doc where id = (select max(id) from doc)", { ...filter, to: 5 }],
    ["update conversation set native_id = 'c9x' where native_id = 'c1'", { ...filter, limit: 20 }],
    ["update conversation set native_id = 'c9x' where native_id = 'c1'", { ...filter, conversations: [ref] }],
    ["update project set path = path || 'x'", { ...filter, excludedProjects: ["/code/api"] }],
  ] satisfies [string, IndexQuery][]) {
    removeDatabase(path)
    writeFileSync(path, whole)
    damaged(path, damage)
    const read = readIndex(path)
    if (typeof read === "string") throw new Error(read)
    await expect(read.find(query), damage).rejects.toThrow(/The search index is damaged \(a row/)
    expect(await read.check(), damage).not.toEqual([])
    read.close()
  }
})

test("the index is rebuilt if its position in the history was changed", async () => {
  const { dir, store } = await history()
  const path = join(dir, INDEX_FILE)
  const index = openIndex(path)
  await index.follow(store)
  index.close()
  await store.writeUnit(unit("n", [conversation("n", [textMessage("n", "a numbat of its own")])]))
  const db = openSqlite(path)
  db.exec("update meta set value = replace(value, '1', '9') || '9' where key = 'token'")
  db.close()
  const again = openIndex(path)
  onTestFinished(() => again.close())
  await again.follow(store)
  expect(await idsOf(store, again, "numbat")).toContain("n")
})

test("no word of an undamaged index counts as damaged while it grows, shrinks and is rewritten", async () => {
  const { dir, store } = await history()
  const index = openIndex(join(dir, INDEX_FILE))
  onTestFinished(() => index.close())
  for (let round = 0; round < 12; round++) {
    await index.follow(store)
    if (round % 3 === 2) await index.purge(store)
    else index.checkpoint()
    expect(await index.check()).toEqual([])
    for (const word of WORDS) expect([round, word, await modeOf(store, index, word)]).toEqual([round, word, "lexical"])
    await store.forget([{ source: "claude_code", id: `c${round % WORDS.length}` }])
    const text = `${WORDS[round % WORDS.length]} ${Array.from({ length: 3000 }, (_, i) => `w${(i * 7919 * (round + 1)) % 9973}`).join(" ")}`
    await store.writeUnit(unit(`n${round}`, [conversation(`n${round}`, [textMessage(`n${round}`, text)])]))
  }
})

test("no word counts as damaged while parts of the index are being merged", async () => {
  const { dir, store } = await history()
  const index = openIndex(join(dir, INDEX_FILE))
  onTestFinished(() => index.close())
  const word = (n: number) => `${String.fromCharCode(97 + (n % 26))}${(n * 7919) % 99_991}`
  for (let round = 0; round < 40; round++) {
    const text = Array.from({ length: 4000 }, (_, i) => word(round * 4000 + i)).join(" ")
    await store.writeUnit(unit(`n${round}`, [conversation(`n${round}`, [textMessage(`n${round}`, text)])]))
    await index.follow(store)
    index.checkpoint()
    const asked = Array.from(
      { length: 300 },
      (_, i): Term => ({
        words: word(i * 997 + round),
        ...(i % 5 === 0 && { prefix: true }),
      }),
    )
    await expect(index.sizes(asked), `round ${round}`).resolves.toMatchObject({ sample: expect.any(Number) })
  }
})

test("two processes that write in turn never leave a wrong checksum", async () => {
  const { dir, store } = await history()
  const path = join(dir, INDEX_FILE)
  const [one, other] = [openIndex(path), openIndex(path)]
  onTestFinished(() => [one, other].forEach((index) => void index.close()))
  for (let round = 0; round < 6; round++) {
    const index = round % 2 === 0 ? one : other
    await store.writeUnit(
      unit(`n${round}`, [conversation(`n${round}`, [textMessage(`n${round}`, `${WORDS[round]} again`)])]),
    )
    await index.follow(store)
    if (round > 2) index.checkpoint()
    expect([round, await index.check()]).toEqual([round, []])
    for (const word of WORDS) expect([round, word, await modeOf(store, index, word)]).toEqual([round, word, "lexical"])
  }
})

test("an index never counts as damaged because another process writes to it at the same time", async () => {
  const { dir, store } = await history()
  const path = join(dir, INDEX_FILE)
  const first = openIndex(path)
  await first.follow(store)
  first.checkpoint()
  first.close()
  const read = readIndex(path)
  if (typeof read === "string") throw new Error(read)
  onTestFinished(() => read.close())
  const workerData = { history: join(dir, "history.db"), index: path, rounds: 40 }
  const writer = new Worker(new URL("../support/index-writer.ts", import.meta.url), { workerData })
  let isWriting = true
  writer.on("exit", () => {
    isWriting = false
  })
  for (let asked = 0; isWriting; asked++) {
    // Different words each time, because a block that was just checked is not checked again.
    await read.sizes(Array.from({ length: 40 }, (_, i) => ({ words: `w${(asked * 40 + i) % 9973}` })))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await read.check()).toEqual([])
  expect((await idsOf(store, read, "narwhal")).length).toBe(ASKED.limit)
})

test("an index from 0.1.0 answers searches until its content is taken over, and its file is not changed", async () => {
  const { dir, store } = await history()
  const older = join(dir, "index.db")
  const index = openIndex(older)
  await index.follow(store)
  index.close()
  asOlder(older)
  const before = readFileSync(older)
  const read = readIndex(join(dir, INDEX_FILE))
  if (typeof read === "string") throw new Error(read)
  expect(await idsOf(store, read, "narwhal")).toEqual(["c1"])
  expect((await read.countConversations({ match: [{ words: "narwhal" }] })).total).toBe(1)
  read.close()
  const writer = openIndex(join(dir, INDEX_FILE))
  expect(await writer.isBehind(store)).toBe(false)
  expect(await idsOf(store, writer, "narwhal")).toEqual(["c1"])
  expect(await writer.words("narw")).toEqual([])
  await writer.follow(store)
  // The old index had no words as they were written, so they are read from the history.
  expect(await writer.words("narw")).toEqual([{ word: "narwhal", spread: 1 }])
  writer.checkpoint()
  expect(await writer.check()).toEqual([])
  writer.close()
  expect(readFileSync(older).equals(before)).toBe(true)
})

const ASKED = { by: "conversation" as const, limit: 10, offset: 0, among: "history" as const }

async function history(
  texts = WORDS.map((word) => `one ${word} and no other`),
): Promise<{ dir: string; store: HistoryWriter }> {
  const dir = tempDir()
  const store = openStore(join(dir, "history.db"))
  onTestFinished(() => store.close())
  for (const [i, text] of texts.entries())
    await store.writeUnit(unit(`u${i}`, [conversation(`c${i}`, [textMessage(`k${i}`, text)])]))
  return { dir, store }
}

async function idsOf(store: HistoryWriter, index: ReturnType<typeof openIndex>, text: string): Promise<string[]> {
  const { hits, mode } = await searchHistory(store, index, { ...ASKED, query: parseQuery(text) })
  expect(mode).toBe("lexical")
  return hits.map(({ row }) => row.ref.id)
}

async function modeOf(store: HistoryWriter, index: ReturnType<typeof openIndex>, text: string): Promise<string> {
  return (await searchHistory(store, index, { ...ASKED, query: parseQuery(text) })).mode
}

function newer(path: string): void {
  openIndex(path).close()
  const db = openSqlite(path)
  db.pragma(`user_version = ${INDEX_FORMAT + 1}`)
  db.pragma("journal_mode = delete")
  db.close()
}

/** Changes one row, but not the stored copy of its values. */
function damaged(path: string, sql: string): void {
  const plain = openSqlite(path)
  plain.unsafeMode(true)
  plain.pragma("writable_schema = 1")
  for (const table of ["doc", "conversation", "project", "words_docsize"]) {
    const made = plain.prepare("select sql from sqlite_master where name = ?").pluck().get(table) as string
    const sql = made.replace(/ generated always as .* stored/, "")
    plain.prepare("update sqlite_master set sql = ? where name = ?").run(sql, table)
  }
  plain.close()
  const db = openSqlite(path)
  db.unsafeMode(true)
  expect(db.prepare(sql).run().changes).toBe(1)
  db.close()
}

/** Turns an index into one from version 0.1.0. */
function asOlder(path: string): void {
  const db = openSqlite(path)
  for (const table of ["word", "block_sum", "access", "access_total", "project_total"]) db.exec(`drop table ${table}`)
  for (const table of ["vector_group", "vector", "vector_bits", "vector_space"]) db.exec(`drop table ${table}`)
  db.exec(MIGRATIONS.find(([name]) => name === "002-vectors")![1])
  db.exec("delete from meta where key in ('summed', 'token_twin')")
  db.unsafeMode(true)
  for (const [table, column] of [
    ["words_docsize", "twin"],
    ["doc", "sum"],
    ["conversation", "twin"],
    ["project", "twin"],
  ])
    db.exec(`alter table ${table} drop column ${column}`)
  db.pragma("user_version = 2")
  db.pragma("journal_mode = delete")
  db.close()
}
