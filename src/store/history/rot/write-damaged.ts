import { DexError } from "../../../core/error.ts"
import type { Db } from "../../sqlite/database.ts"
import { valueQuery } from "../../sqlite/typed-query.ts"
import { loadLines } from "../bodies.ts"
import { saveEffects } from "../effects.ts"
import { projectPathsOf } from "../project-paths.ts"
import { ROW_COUNTS } from "../row-counts.ts"
import { damagedRows, despiteIndexes, parsed, primaryKeyOf } from "./checked-rows.ts"
import { hasMissingRows, isOfIndex, PARTS } from "./inspect.ts"
import { tableSql } from "./table-sql.ts"

// Before and after a damaged conversation is written.

/**
 * Call before writing to a damaged conversation. Throws if rows cannot be found because the table is out of order, since writing
 * would lose more of them.
 */
export function refuseOutOfOrder(db: Db, id: number): void {
  if (!hasMissingRows(db, id)) return
  for (const table of PARTS) {
    // Only the full check looks at the order of rows.
    const found = valueQuery(db, `pragma integrity_check(${table})`, "text").all()
    const problem = found.find((line) => line !== "ok" && !isOfIndex(line))
    if (problem !== undefined)
      throw new DexError(
        "corrupt",
        `Rows of this conversation in history.db are damaged (${problem}). Run \`dex doctor --repair\`.`,
      )
  }
}

/**
 * Call after a damaged conversation was written. Deletes rows with a wrong key that nothing replaced, if all its messages were
 * written (`isComplete`), and makes the files, commands and commits again, since those of unchanged messages may be missing.
 */
export function finishDamaged(db: Db, id: number, isComplete: boolean, platform: NodeJS.Platform): void {
  if (isComplete)
    despiteIndexes(db, () => {
      for (const table of ["message", "body"] as const)
        for (const row of damagedRows(db, table, id))
          db.prepare(tableSql(table).deleteOne).run(...primaryKeyOf(table, row))
    })
  renewEffects(db, id, platform)
}

/** Files, commands and commits are in the messages too. */
export function renewEffects(db: Db, id: number, platform = process.platform): void {
  const projectId = valueQuery(db, "select project_id from conversation where id = ?", "integer?").get(id) ?? null
  const folders = projectId === null ? [] : projectPathsOf(db, projectId)
  despiteIndexes(db, () => {
    for (const table of ["touch", "command", "made"] as const)
      for (const row of damagedRows(db, table, id))
        db.prepare(tableSql(table).deleteOne).run(...primaryKeyOf(table, row))
    for (const [number, line] of loadLines(db, id)) {
      const message = parsed(line) as { effects?: never[] } | undefined
      if (message) saveEffects(db, id, { number, message, old: message }, projectId, folders, platform)
    }
  })
  db.prepare(`update conversation set held = ${ROW_COUNTS} where id = @id`).run({ id })
}
