import { renameSync } from "node:fs"
import { zstdCompressSync, zstdDecompressSync } from "node:zlib"
import { HISTORY_MIGRATIONS } from "../../src/store/history/migrations.ts"
import { openDatabase, removeDatabase } from "../../src/store/sqlite/database.ts"

/** Turns a history into one that version 0.1.0 would have written: with its schema, and without checksums. */
export function downgradeHistory(path: string): void {
  const old = openDatabase(`${path}.old`, HISTORY_MIGRATIONS.slice(0, 2))
  old.function("unchecked", (data) => zstdCompressSync(zstdDecompressSync(data as Buffer)))
  old.prepare("attach database ? as now").run(path)
  const tables = old.prepare("select name from main.sqlite_master where type = 'table'").pluck().all() as string[]
  for (const table of tables) {
    const columns = (old.pragma(`main.table_info(${table})`) as { name: string }[]).map(({ name }) => name)
    const values = columns.map((name) => (name === "data" ? "unchecked(data)" : name))
    old.exec(`insert into main.${table} (${columns.join(", ")}) select ${values.join(", ")} from now.${table}`)
  }
  old.exec("delete from main.meta where key = 'sealed' or key like 'collection:%'")
  old.exec("detach database now")
  old.pragma("journal_mode = delete")
  old.close()
  removeDatabase(path)
  renameSync(`${path}.old`, path)
}
