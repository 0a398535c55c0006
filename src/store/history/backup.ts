import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { DexError, isDexError } from "../../core/error.ts"
import { type Db, explained } from "../sqlite/database.ts"
import { openSqlite } from "../sqlite/engine.ts"
import { unpackBlock } from "./codec.ts"

/** What a backup holds, read back out of the file itself. */
export type BackupContent = { historyId: string; conversations: number; messages: number; blocks: number }

/**
 * Writes one file that holds the whole history as it was at one instant, whoever reads or writes meanwhile, and the small
 * state beside it. It takes its name only once it has been read back: a backup that is there is whole.
 */
export function writeBackup(db: Db, file: string, beside: Record<string, string>): BackupContent {
  const partial = `${file}.partial`
  rmSync(partial, { force: true })
  try {
    closeSync(openSync(partial, "wx", 0o600))
    db.prepare("vacuum into ?").run(partial)
    chmodSync(partial, 0o600)
    addFiles(partial, beside)
    const content = verifyBackup(partial)
    syncToDisk(partial)
    renameSync(partial, file)
    return content
  } catch (error) {
    rmSync(partial, { force: true })
    throw explained(error, file)
  }
}

/** Other databases of dex, whole, as rows: one file is easier to keep than three. */
function addFiles(path: string, beside: Record<string, string>): void {
  const copy = openSqlite(path)
  try {
    copy.exec("create table if not exists kept_file (name text primary key, data blob not null)")
    for (const [name, source] of Object.entries(beside)) {
      if (!existsSync(source)) continue
      const whole = `${path}.${name}`
      const other = openSqlite(source, { timeout: 5_000 })
      try {
        rmSync(whole, { force: true })
        closeSync(openSync(whole, "wx", 0o600))
        other.prepare("vacuum into ?").run(whole)
        copy.prepare("insert or replace into kept_file (name, data) values (?, ?)").run(name, readFileSync(whole))
      } finally {
        other.close()
        rmSync(whole, { force: true })
      }
    }
  } finally {
    copy.close()
  }
}

/** Reads every page and every block. Throws a DexError that says what is wrong. */
export function verifyBackup(path: string): BackupContent {
  const file = statSync(path, { throwIfNoEntry: false })
  if (!file) throw new DexError("no_file", `There is no file ${path}.`)
  if (!file.isFile()) throw new DexError("not_a_file", `${path} is not a regular file.`)
  const db = openReadOnly(path)
  try {
    const problems = (db.prepare("pragma integrity_check(5)").pluck().all() as string[]).filter((line) => line !== "ok")
    if (problems.length > 0) throw new DexError("corrupt", `${path} is damaged: ${problems[0]}`)
    let blocks = 0
    for (const table of ["select data from body", "select data from raw"]) {
      for (const data of db.prepare(table).pluck().iterate() as Iterable<Buffer>) {
        unpackBlock(data)
        blocks++
      }
    }
    const one = (sql: string) => db.prepare(sql).pluck().get()
    return {
      historyId: one("select value from meta where key = 'history_id'") as string,
      conversations: one("select count(*) from conversation where kind <> 'document'") as number,
      messages: one(
        "select ifnull(sum(message_count - copied_count), 0) from conversation where kind <> 'document'",
      ) as number,
      blocks,
    }
  } catch (error) {
    if (isDexError(error)) throw error
    throw new DexError(
      "not_a_history",
      `${path} is not a history of dex, or it is damaged (${(error as Error).message}).`,
      {
        cause: error,
      },
    )
  } finally {
    db.close()
  }
}

function openReadOnly(path: string): Db {
  try {
    return openSqlite(path, { readonly: true, fileMustExist: true })
  } catch (error) {
    throw explained(error, path)
  }
}

/** Takes the files that lie beside the history out of a backup, and leaves a plain history. */
export function takeFiles(path: string, places: Record<string, string>): string[] {
  const db = openSqlite(path)
  try {
    const taken: string[] = []
    const has = db.prepare("select 1 from sqlite_master where name = 'kept_file'").get() !== undefined
    for (const [name, place] of has ? Object.entries(places) : []) {
      const data = db.prepare("select data from kept_file where name = ?").pluck().get(name) as Buffer | undefined
      if (!data || existsSync(place)) continue
      writeFileSync(place, data, { mode: 0o600 })
      taken.push(name)
    }
    db.exec("drop table if exists kept_file")
    return taken
  } finally {
    db.close()
  }
}

/** True where no other program has this database open. */
export function isUnused(path: string): boolean {
  const db = openSqlite(path, { timeout: 0 })
  try {
    db.pragma("locking_mode = exclusive")
    db.exec("begin exclusive; rollback")
    return true
  } catch {
    return false // busy, or damaged: then nobody can say
  } finally {
    db.close()
  }
}

function syncToDisk(path: string): void {
  const file = openSync(path, "r+")
  fsyncSync(file)
  closeSync(file)
}
