import { spawn } from "node:child_process"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { openDatabase } from "../../src/store/sqlite/database.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { copyInto, replaceDatabase } from "../../src/store/sqlite/replace-database.ts"
import { tempDir } from "../support/temp.ts"

const SCHEMA: readonly [string, string][] = [["001", "create table word (text text)"]]

function made(path: string, words: string[]) {
  const db = openDatabase(path, SCHEMA)
  for (const word of words) db.prepare("insert into word values (?)").run(word)
  onTestFinished(() => void db.close())
  return db
}
const wordsIn = (db: ReturnType<typeof made>) => db.prepare("select text from word").pluck().all()

function twoFiles() {
  const folder = tempDir()
  const paths = { old: join(folder, "index.db"), fresh: join(folder, "index.db.building") }
  const fresh = made(paths.fresh, ["new", "newer"])
  fresh.pragma("journal_mode = delete")
  fresh.close()
  return paths
}

test("a process that has a database open continues with the one that is copied into it", async () => {
  const { old, fresh } = twoFiles()
  const open = made(old, ["old"])
  expect(wordsIn(open)).toEqual(["old"])
  await copyInto(old, fresh)
  expect(wordsIn(open)).toEqual(["new", "newer"])
  open.prepare("insert into word values ('written after')").run()
  expect(open.pragma("integrity_check", { simple: true })).toBe("ok")
  expect(open.pragma("journal_mode", { simple: true })).toBe("wal")
})

test("a copy waits if its target is locked", async () => {
  const { old, fresh } = twoFiles()
  made(old, ["old"])
  const holds = `const db = new (require("better-sqlite3"))(${JSON.stringify(old)})
    db.exec("begin immediate"); console.log("held"); setTimeout(() => db.exec("commit"), 1500)`
  const holder = spawn(process.execPath, ["-e", holds], { cwd: join(import.meta.dirname, "../..") })
  onTestFinished(() => void holder.kill())
  await new Promise((resolve) => holder.stdout.once("data", resolve))
  await copyInto(old, fresh)
  const db = openSqlite(old)
  expect(db.prepare("select text from word").pluck().all()).toEqual(["new", "newer"])
  db.close()
})

test("a database that nobody has open is simply replaced", async () => {
  const { old, fresh } = twoFiles()
  made(old, ["old"]).close()
  await replaceDatabase(old, fresh)
  expect(wordsIn(made(old, []))).toEqual(["new", "newer"])
})
