import { isAbsolute, relative } from "node:path"
import type { Effect } from "../../core/conversation.ts"
import { withFolderSpelling } from "../../core/path-key.ts"
import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { rowSum } from "./rot/sums.ts"

export function saveEffects(
  db: Db,
  id: number,
  { number, message, old }: { number: number; message: { effects?: Effect[] }; old?: unknown },
  projectId: number | null,
  folders: string[],
  platform: NodeJS.Platform,
): void {
  if (old) deleteEffects(db, id, number)
  for (const [seq, effect] of (message.effects ?? []).entries())
    saveEffect(db, id, number, seq, effect, projectId, folders, platform)
}

export function deleteEffects(db: Db, id: number, number: number): void {
  db.prepare("delete from touch where conversation_id = ? and number = ?").run(id, number)
  db.prepare("delete from command where conversation_id = ? and number = ?").run(id, number)
  db.prepare("delete from made where conversation_id = ? and number = ?").run(id, number)
}

function saveEffect(
  db: Db,
  id: number,
  number: number,
  seq: number,
  effect: Effect,
  projectId: number | null,
  folders: string[],
  platform: NodeJS.Platform,
): void {
  switch (effect.type) {
    case "file": {
      const pathInProject = folders
        .map((folder) => pathInside(folder, effect.path, platform))
        .find((path) => path !== undefined)
      const fileId = fileIdOf(db, pathInProject === undefined ? null : projectId, pathInProject ?? effect.path)
      const writtenPath = isAbsolute(effect.path) || pathInProject === undefined ? null : effect.path
      const values = [id, number, fileId, effect.action, writtenPath, effect.added ?? null, effect.removed ?? null]
      db.prepare(
        `insert into touch (conversation_id, number, file_id, action, written, added, removed, sum) values (?, ?, ?, ?, ?, ?, ?, ?)
         on conflict do update set added = ifnull(added, 0) + ifnull(excluded.added, 0), removed = ifnull(removed, 0) + ifnull(excluded.removed, 0)`,
      ).run(...values, rowSum("touch", values))
      return
    }
    case "command": {
      const failed = effect.failed === undefined ? null : Number(effect.failed)
      const values = [id, number, seq, effect.exit_status ?? null, failed]
      const sql =
        "insert into command (conversation_id, number, seq, exit_status, failed, sum) values (?, ?, ?, ?, ?, ?)"
      db.prepare(sql).run(...values, rowSum("command", values))
      return
    }
    case "commit":
    case "pull_request": {
      const name = effect.type === "commit" ? effect.hash : effect.url
      const subject = effect.type === "commit" ? effect.subject : null
      const branch = effect.type === "commit" ? (effect.branch ?? null) : null
      db.prepare(
        "insert or ignore into made (conversation_id, number, kind, name, subject, branch) values (?, ?, ?, ?, ?, ?)",
      ).run(id, number, effect.type, name, subject, branch)
    }
  }
}

/** Returns the path relative to the project, with forward slashes, or undefined if it is outside the project. */
function pathInside(project: string, path: string, platform: NodeJS.Platform): string | undefined {
  if (!isAbsolute(path) && !/^[A-Za-z]:[\\/]/.test(path))
    return path.startsWith("..") ? undefined : path.replaceAll("\\", "/").replace(/^\.\//, "")
  const relativePath = relative(project, withFolderSpelling(project, path, platform))
  return relativePath === "" || relativePath.startsWith("..") || isAbsolute(relativePath)
    ? undefined
    : relativePath.replaceAll("\\", "/")
}

export function fileIdOf(db: Db, projectId: number | null, path: string): number {
  const find = "select id from file where path = ? and ifnull(project_id, 0) = ifnull(?, 0)"
  return (
    valueQuery(db, find, "integer").get(path, projectId) ??
    valueQuery(db, "insert into file (project_id, path) values (?, ?) returning id", "integer").get(projectId, path)!
  )
}
