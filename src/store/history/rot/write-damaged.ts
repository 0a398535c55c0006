import { DexError } from "../../../core/error.ts"
import type { Db } from "../../sqlite/database.ts"
import { valueQuery } from "../../sqlite/typed-query.ts"
import { loadLines } from "../bodies.ts"
import { saveEffects } from "../effects.ts"
import { projectPathsOf } from "../project-paths.ts"
import { ROW_COUNTS } from "../row-counts.ts"
import { allowIndexMismatch, damagedRows, primaryKeyOf, tryParseJson } from "./checked-rows.ts"
import { CONVERSATION_TABLES, hasMissingRows, isIndexMismatch } from "./inspect.ts"
import { tableSql } from "./table-sql.ts"

// The steps before and after writing to a damaged conversation.

/**
 * Call before writing to a damaged conversation. Throws if rows cannot be found because the table is out of order, since writing
 * would lose more of them.
 */
export function refuseOutOfOrder(db: Db, id: number): void {
  if (!hasMissingRows(db, id)) return
  for (const table of CONVERSATION_TABLES) {
    // Of SQLite's checks, only the full one looks at the order of rows.
    const lines = valueQuery(db, `pragma integrity_check(${table})`, "text").all()
    const problem = lines.find((line) => line !== "ok" && !isIndexMismatch(line))
    if (problem !== undefined)
      throw new DexError(
        "corrupt",
        `Rows of this conversation in history.db are damaged (${problem}). Run \`dex doctor --repair\`.`,
      )
  }
}

/**
 * Call after a damaged conversation was written. If all its messages were written (`isComplete`), deletes message and body rows
 * that are still damaged. Recreates the rows of files, commands and commits, since those of unchanged messages may be missing.
 */
export function finishDamagedWrite(db: Db, id: number, isComplete: boolean, platform: NodeJS.Platform): void {
  if (isComplete)
    allowIndexMismatch(db, () => {
      for (const table of ["message", "body"] as const)
        for (const row of damagedRows(db, table, id))
          db.prepare(tableSql(table).deleteOne).run(...primaryKeyOf(table, row))
    })
  renewEffects(db, id, platform)
}

/** Recreates the rows of files, commands and commits from the messages, which contain them too. */
export function renewEffects(db: Db, id: number, platform = process.platform): void {
  const projectId = valueQuery(db, "select project_id from conversation where id = ?", "integer?").get(id) ?? null
  const folders = projectId === null ? [] : projectPathsOf(db, projectId)
  allowIndexMismatch(db, () => {
    for (const table of ["touch", "command", "made"] as const)
      for (const row of damagedRows(db, table, id))
        db.prepare(tableSql(table).deleteOne).run(...primaryKeyOf(table, row))
    for (const [number, line] of loadLines(db, id)) {
      const message = tryParseJson(line) as { effects?: never[] } | undefined
      if (message) saveEffects(db, id, { number, message, old: message }, projectId, folders, platform)
    }
  })
  db.prepare(`update conversation set held = ${ROW_COUNTS} where id = @id`).run({ id })
}
