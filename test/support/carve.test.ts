import { join } from "node:path"
import { zstdCompressSync } from "node:zlib"
import { expect, onTestFinished, test } from "vitest"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { carve } from "./carve.ts"
import { randomWords } from "./random-words.ts"
import { tempDir } from "./temp.ts"

/** A database that contained two texts, one in a page and one across many, which were deleted. */
function databaseWithDeletedTexts(secureDelete: "on" | "off", checkpoint: boolean) {
  const folder = tempDir()
  const db = openSqlite(join(folder, "a.db"))
  onTestFinished(() => void db.close())
  db.pragma("journal_mode = wal")
  db.pragma(`secure_delete = ${secureDelete}`)
  db.exec("create table body (id integer, chunk integer, data blob, primary key (id, chunk)) without rowid")
  const put = (id: number, text: string) =>
    db.prepare("insert into body values (?, 0, ?)").run(id, zstdCompressSync(text))
  const words = randomWords(1)
  for (let i = 0; i < 40; i++) put(i, words(50))
  put(100, `${words(100)} smallcanary`)
  // SQLite keeps a list of freed pages in the first of them: the text that began there is lost, the next one is not.
  put(101, words(60_000))
  put(102, `${words(60_000)} largecanary ${words(60_000)}`)
  db.pragma("wal_checkpoint(truncate)")
  expect(carve(folder, ["smallcanary"])).toEqual(["a.db: frame"])
  expect(carve(folder, ["largecanary"])).toEqual(["a.db: frame"])
  db.exec("delete from body where id >= 100")
  if (checkpoint) db.pragma("wal_checkpoint(truncate)")
  return folder
}

test("finds deleted text in free pages, in one page or across many, unless it was overwritten", () => {
  const careless = databaseWithDeletedTexts("off", true)
  expect(carve(careless, ["largecanary"])).toEqual(["a.db: frame"])
  expect(carve(careless, ["smallcanary"])).toEqual(["a.db: frame"])
  expect(carve(databaseWithDeletedTexts("on", true), ["smallcanary", "largecanary"])).toEqual([])
})

test("finds text in the file that the log has not yet overwritten, and text that is only in the log", () => {
  expect(carve(databaseWithDeletedTexts("on", false), ["largecanary"])).toEqual(["a.db: frame"])
  const folder = tempDir()
  const db = openSqlite(join(folder, "b.db"))
  onTestFinished(() => void db.close())
  db.pragma("journal_mode = wal")
  db.exec("create table body (id integer primary key, data blob)")
  db.pragma("wal_checkpoint(truncate)")
  const words = randomWords(2)
  db.prepare("insert into body values (1, ?)").run(zstdCompressSync(`${words(30_000)} logcanary ${words(30_000)}`))
  expect(carve(folder, ["logcanary"])).toEqual(["b.db-wal: frame"])
})
