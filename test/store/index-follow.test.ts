import { readFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { expect, test } from "vitest"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { RANK_WEIGHTS } from "../../src/search/rank.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { MIGRATIONS } from "../../src/store/index/index-file.ts"
import { openIndex, readIndex } from "../../src/store/index/search-index.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { claudeSession } from "../support/home.ts"
import { newHistory } from "../support/indexed.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

test("if forgetting was interrupted, the next sync removes its words from every file, once", async () => {
  const home = tempDir()
  const [one, other] = ["11111111-1111-4111-8111-111111111111", "22222222-1111-4111-8111-111111111111"]
  const start = "2026-11-03T10:00:00Z"
  claudeSession(home, { id: one, start, turns: [{ user: "The zebrafishword leaks" }] })
  claudeSession(home, { id: other, start, turns: [{ user: "The quokkaword leaks" }] })
  await dex(home, ["sync"])
  const folder = join(home, ".dex")
  const bytes = () => readFileSync(join(folder, INDEX_FILE), "latin1")
  expect(bytes()).toContain("zebrafishword")
  const store = openStore(join(folder, "history.db"))
  await store.forget([{ source: "claude_code", id: one }])
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
  expect(bytes()).not.toContain("zebrafish")
  const index = openIndex(join(folder, INDEX_FILE))
  expect(await index.isPurgeDue(store)).toBe(false)
  store.close()
  index.close()
  await dex(home, ["reindex"])
  const fresh = openIndex(join(folder, INDEX_FILE))
  const again = openStore(join(folder, "history.db"))
  expect(await fresh.isPurgeDue(again)).toBe(false)
  again.close()
  fresh.close()
})

test("an index of the format before windows is read without its vectors, and continued without them", async () => {
  const dir = tempDir()
  const store = openStore(join(dir, "history.db"))
  await store.writeUnit(unit("a.jsonl", [conversation("a", [textMessage("a1", "the refresh token race")])]))
  const older = openIndex(join(dir, "index-6.db"))
  await older.follow(store)
  older.close()
  const db = new Database(join(dir, "index-6.db"))
  for (const table of ["vector_group", "vector_bits", "vector", "vector_space"]) db.exec(`drop table ${table}`)
  const [, [, vectors]] = MIGRATIONS as [unknown, [string, string]]
  db.exec(vectors)
  db.exec("insert into vector_space (embedder, dims) values ('local:old', 2)")
  db.exec("insert into vector_none (doc, space) select id, 1 from doc")
  db.exec("insert into meta (key, value) values ('distrusted', 'local:old')")
  db.pragma("user_version = 6")
  db.close()

  const read = readIndex(join(dir, INDEX_FILE))
  if (typeof read === "string") throw new Error(read)
  expect((await read.vectors()).stats()).toEqual([])
  const query = { match: [{ words: "token" }], weights: RANK_WEIGHTS.columns, limit: 5 }
  expect(await read.find(query)).toHaveLength(1)
  read.close()

  const index = openIndex(join(dir, INDEX_FILE))
  expect(await index.find(query)).toHaveLength(1)
  const continued = await index.vectors()
  expect([continued.stats(), continued.isTrusted("local:old")]).toEqual([[], true])
  const [message] = continued.missing("local:old", 9)
  continued.save("local:old", [
    { messages: [message!], windows: [{ message: message!, vector: new Float32Array([1, 0]) }] },
  ])
  expect(continued.stats()).toMatchObject([{ vectors: 1, done: 1 }])
  expect(await index.check()).toEqual([])
  index.close()
  store.close()
})

test("a conversation that reuses a forgotten one's number is indexed, and the forgotten one is not", async () => {
  const { store, index } = newHistory()
  const write = (id: string, word: string) =>
    store.writeUnit(unit(id, [conversation(id, [textMessage("1", `${word} one`), textMessage("2", `${word} two`)])]))
  const found = async (word: string) => (await index.count({ match: [{ words: word }] })).total
  await write("a", "zebra")
  await index.follow(store)
  await store.forget([{ source: "claude_code", id: "a" }])
  await write("b", "quokka")
  await index.follow(store)
  expect(await found("quokka")).toBe(2)
  expect(await found("zebra")).toBe(0)
})

test("with a small memory limit the index is the same, with fewer conversations at a time", async () => {
  const { store, index } = newHistory()
  const ids = Array.from({ length: 40 }, (_, i) => `c${i}`)
  for (const id of ids)
    await store.writeUnit(unit(id, [conversation(id, [textMessage(`${id}1`, `quokka ${"x ".repeat(500)}`)])]))
  const steps: number[] = []
  await index.follow(store, { maxBatchBytes: 5_000, onProgress: (indexed) => steps.push(indexed) })
  expect((await index.count({ match: [{ words: "quokka" }] })).total).toBe(ids.length)
  const taken = steps.map((indexed, i) => indexed - (steps[i - 1] ?? 0))
  expect(taken[0]).toBeLessThan(ids.length)
  expect(Math.max(...taken.slice(1))).toBeLessThanOrEqual(5)
})
