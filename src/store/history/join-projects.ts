import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { fileIdOf } from "./effects.ts"
import { refreshCounts } from "./feed.ts"
import { createKnownFolderFinder, foldersIn, markPrivate } from "./private-folders.ts"
import { projectIdOf } from "./project-paths.ts"
import { tryParseJson } from "./rot/checked-rows.ts"
import { spellingsOf } from "./spellings.ts"
import type { GitFacts } from "./store.ts"

// A project is a repository, and a folder is one of its places. Joining makes a folder a place of another project; splitting makes
// it a project again.

const MAX_REMOTES = 20

/** Saves what git says of a project's folder. Remotes are added to those that are known; the root commit is kept once known. */
export function saveGitFacts(db: Db, path: string, { git_remote, root_commit, remotes = [], stamp }: GitFacts): void {
  const storedRemotes = valueQuery(db, "select remotes from project where path = ?", "text?").get(path)
  const known = tryParseJson(storedRemotes ?? "[]")
  const allRemotes = [...new Set([...remotes, ...(Array.isArray(known) ? known : [])])].slice(0, MAX_REMOTES)
  db.prepare(
    `update project set git_remote = ifnull(git_remote, ?), root_commit = ifnull(root_commit, ?), remotes = ?, stamp = ifnull(?, stamp)
     where path = ?`,
  ).run(git_remote ?? null, root_commit ?? null, JSON.stringify(allRemotes), stamp ?? null, path)
}

export function joinProject(
  db: Db,
  { folder, project, why }: { folder: string; project: string; why: string },
  platform: NodeJS.Platform,
): void {
  const target = projectIdOf(db, spellingsOf(db, project, platform)[0], undefined)
  for (const path of spellingsOf(db, folder, platform)) {
    const source = valueQuery(db, "select id from project where path = ?", "integer").get(path)
    if (source === target) continue
    if (source !== undefined) absorb(db, source, target)
    db.prepare("insert or replace into project_path (path, project_id, why) values (?, ?, ?)").run(path, target, why)
  }
  // The next sync compares the project again, because it may be the same repository as others.
  db.prepare("update project set stamp = null where id = ?").run(target)
  const { path, isPrivate } = rowQuery(db, "select path, private as isPrivate from project where id = ?", {
    path: "text",
    isPrivate: "integer",
  }).get(target)!
  // Conversations elsewhere that worked in the new folder belong to the private project, too.
  if (isPrivate === 1) markPrivate(db, [path], true, { platform })
}

/** Moves everything of one project to another and deletes it. The other becomes private if this one is. */
function absorb(db: Db, source: number, target: number): void {
  const facts = rowQuery(db, "select path, git_remote, root_commit, remotes from project where id = ?", {
    path: "text",
    git_remote: "text?",
    root_commit: "text?",
    remotes: "text?",
  }).get(source)!
  const targetPath = valueQuery(db, "select path from project where id = ?", "text").get(target)!
  const remotes = tryParseJson(facts.remotes ?? "[]")
  saveGitFacts(db, targetPath, {
    git_remote: facts.git_remote ?? undefined,
    root_commit: facts.root_commit ?? undefined,
    remotes: Array.isArray(remotes) ? remotes : [],
  })
  const ids = { source, target }
  db.prepare(
    "update project set private = max(private, (select private from project where id = @source)) where id = @target",
  ).run(ids)
  moveFiles(db, ids, facts.path)
  const conversations = valueQuery(db, "select id from conversation where project_id = ?", "integer").all(source)
  db.prepare("update conversation set project_id = @target where project_id = @source").run(ids)
  for (const id of conversations) refreshCounts(db, id)
  db.prepare("update meta set value = @target where key like 'began_in:%' and value = @source").run({
    source: String(source),
    target: String(target),
  })
  db.prepare("update project_path set project_id = @target where project_id = @source").run(ids)
  db.prepare("update collection set project = ? where project = ?").run(targetPath, facts.path)
  db.prepare("delete from project where id = ?").run(source)
}

/** Gives the files of one project to another. A file with the same path is the same file. */
function moveFiles(db: Db, ids: { source: number; target: number }, sourcePath: string): void {
  db.prepare(
    `update or ignore touch set file_id = (
       select same.id from file f join file same on same.path = f.path and same.project_id = @target where f.id = touch.file_id)
     where file_id in (select f.id from file f join file same on same.path = f.path and same.project_id = @target where f.project_id = @source)`,
  ).run(ids)
  db.prepare("delete from file where project_id = @source and id not in (select file_id from touch)").run({
    source: ids.source,
  })
  db.prepare("update or ignore file set project_id = @target where project_id = @source").run(ids)
  // One message touched this file in both folders.
  db.prepare("update file set project_id = null, path = ? || '/' || path where project_id = ?").run(
    sourcePath,
    ids.source,
  )
}

export function renameProject(db: Db, project: string, folder: string): void {
  const id = valueQuery(db, "select id from project where path = ?", "integer").get(project)
  if (id === undefined) return
  const known = valueQuery(db, "select why from project_path where path = ?", "text?").get(folder)
  const why = known ?? "the project was in this folder before"
  db.prepare("delete from project_path where path = ?").run(folder)
  db.prepare("update project set path = ?, stamp = null where id = ?").run(folder, id)
  db.prepare("insert into project_path (path, project_id, why) values (?, ?, ?)").run(project, id, why)
  db.prepare("update collection set project = ? where project = ?").run(folder, project)
  for (const conversation of conversationIds(db, id)) refreshCounts(db, conversation)
}

export function splitProject(db: Db, folder: string, platform: NodeJS.Platform): boolean {
  const [path] = spellingsOf(db, folder, platform)
  const isMainFolder = valueQuery(db, "select 1 from project where path = ?", "integer").get(path) !== undefined
  const id = isMainFolder
    ? valueQuery(db, "select id from project where path = ?", "integer").get(path)
    : valueQuery(db, "select project_id from project_path where path = ?", "integer").get(path)
  const heir = id && valueQuery(db, "select min(path) from project_path where project_id = ?", "text?").get(id)
  if (id === undefined || !heir) return false
  const leaving = conversationsFrom(db, id, path, platform)
  db.prepare("delete from project_path where path = ?").run(isMainFolder ? heir : path)
  if (isMainFolder) {
    db.prepare("update project set path = ? where id = ?").run(heir, id)
    for (const conversation of conversationIds(db, id)) refreshCounts(db, conversation)
  }
  const newId = valueQuery(
    db,
    "insert into project (path, private, apart) select ?, private, 1 from project where id = ? returning id",
    "integer",
  ).get(path, id)!
  for (const conversation of leaving) moveConversation(db, conversation, newId)
  return true
}

export function keepApart(db: Db, folder: string, platform: NodeJS.Platform): void {
  if (splitProject(db, folder, platform)) return
  const [path] = spellingsOf(db, folder, platform)
  db.prepare("insert into project (path, apart) values (?, 1) on conflict (path) do update set apart = 1").run(path)
}

function conversationIds(db: Db, project: number): number[] {
  return valueQuery(db, "select id from conversation where project_id = ?", "integer").all(project)
}

/** Returns the project's conversations that began in this folder. */
function conversationsFrom(db: Db, project: number, folder: string, platform: NodeJS.Platform): number[] {
  const placeOf = createKnownFolderFinder(db, platform)
  return rowQuery(db, "select id, cwds from conversation where project_id = ?", { id: "integer", cwds: "text" })
    .all(project)
    .filter(({ cwds }) => {
      const [start] = foldersIn(cwds)
      return start !== undefined && placeOf(start) === folder
    })
    .map(({ id }) => id)
}

function moveConversation(db: Db, id: number, project: number): void {
  const touched = rowQuery(
    db,
    "select distinct f.id, f.path from touch t join file f on f.id = t.file_id where t.conversation_id = ? and f.project_id is not null",
    { id: "integer", path: "text" },
  ).all(id)
  for (const file of touched)
    db.prepare("update or ignore touch set file_id = ? where conversation_id = ? and file_id = ?").run(
      fileIdOf(db, project, file.path),
      id,
      file.id,
    )
  db.prepare("update conversation set project_id = ? where id = ?").run(project, id)
  refreshCounts(db, id)
}
