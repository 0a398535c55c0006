import type { SourceId } from "../../core/conversation.ts"
import { foldsPaths, isSamePath } from "../../core/path-key.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { knownProject, projectId } from "./rows.ts"

// Stores which conversation edited, read or named which file of its project.

export const FILES_SCHEMA = `
  create table file (id integer primary key, project_id integer not null, path text not null, unique (project_id, path));
  create table worked (
    conversation_id integer not null,
    file_id integer not null,
    edits integer not null,
    reads integer not null,
    mentions integer not null,
    added integer not null,
    removed integer not null,
    first_number integer not null,
    last_number integer not null,
    at integer,
    primary key (conversation_id, file_id)
  ) without rowid;
  create index worked_file on worked (file_id);
`

export type WorkedFile = {
  /** Relative to the project, with forward slashes. */
  path: string
  edits: number
  reads: number
  mentions: number
  added: number
  removed: number
  first_number: number
  last_number: number
  at?: number
}

export function saveWorkedFiles(db: Db, conversation: number, project: string, files: WorkedFile[]): void {
  const id = projectId(db, project)
  const insert = db.prepare(
    `insert into worked (conversation_id, file_id, edits, reads, mentions, added, removed, first_number, last_number, at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const file of files)
    insert.run(
      conversation,
      fileId(db, id, file.path),
      file.edits,
      file.reads,
      file.mentions,
      file.added,
      file.removed,
      file.first_number,
      file.last_number,
      file.at ?? null,
    )
}

export function fileId(db: Db, project: number, path: string): number {
  return (
    valueQuery(db, "select id from file where project_id = ? and path = ?", "integer").get(project, path) ??
    valueQuery(db, "insert into file (project_id, path) values (?, ?) returning id", "integer").get(project, path)!
  )
}

/** Selects every known name of a project's files: from conversations, from git, from the code. */
const SELECT_NAMES = `select path as name from file where project_id = @id union all
  select name from git_name where project_id = @id union all select path from code_file where project_id = @id`

/** Returns the stored spelling of a file name, if there is one; otherwise the given spelling. */
export function knownSpelling(db: Db, project: string, file: string, platform = process.platform): string {
  const id = foldsPaths(platform) ? knownProject(db, project, platform) : undefined
  if (id === undefined) return file
  if (db.prepare(`select 1 from (${SELECT_NAMES}) where name = @file`).get({ id, file }) !== undefined) return file
  // Let SQLite compare names if possible: it ignores case only in ASCII, but it is by far the fastest, and hooks have little
  // time.
  const isAscii = /^[\x20-\x7e]*$/.test(file)
  const selectSimilar = valueQuery(
    db,
    `select name from (${SELECT_NAMES}) where not @plain or lower(name) = lower(@file)`,
    "text",
  )
  for (const name of selectSimilar.iterate({ id, file, plain: isAscii ? 1 : 0 }))
    if (isSamePath(name, file, platform)) return name
  return file
}

/** Finds the file of the project with this path, or the only one whose path ends in it. */
export function findFile(db: Db, project: string, pathOrEnding: string): string | undefined {
  const id = knownProject(db, project)
  if (id === undefined) return undefined
  const name = knownSpelling(db, project, pathOrEnding)
  const matches = valueQuery(
    db,
    `select path from file where project_id = @id and (path = @name or substr(path, -length(@name) - 1) = '/' || @name)
       order by path <> @name limit 2`,
    "text",
  ).all({ id, name })
  return matches[0] === name || matches.length === 1 ? matches[0] : undefined
}

/** One conversation's work on one file. Subagents' work counts for their root. */
export type FileVisit = {
  source: SourceId
  id: string
  root: string
  /** Missing if the title may contain a stranger's words. */
  title?: string
  kind: string
  path: string
  edits: number
  reads: number
  added: number
  removed: number
  last_number: number
  at: number
}

/** Selects the title only if neither the conversation nor a related one read a web page, because the title may quote it. */
const SAFE_TITLE =
  "case when not exists (select 1 from conversation o where o.source = c.source and o.root = c.root and o.web_at is not null) then c.title end"

/** Returns the conversations that worked on this file, newest first, at most `limit`. */
export function visitsTo(db: Db, project: string, path: string, limit: number): FileVisit[] {
  const id = knownProject(db, project)
  if (id === undefined) return []
  return rowQuery(
    db,
    `select c.source, c.native_id as id, c.root, ${SAFE_TITLE} as title, c.kind, f.path, fact.edits, fact.reads, fact.added, fact.removed,
           fact.last_number, ifnull(fact.at, ifnull(c.ended_at, 0)) as at
         from file f join worked fact on fact.file_id = f.id join conversation c on c.id = fact.conversation_id
         where f.project_id = ? and f.path = ? and (fact.edits > 0 or fact.reads > 0)
         order by at desc limit ?`,
    {
      id: "text",
      source: "text",
      at: "integer",
      kind: "text",
      root: "text",
      path: "text",
      edits: "integer",
      reads: "integer",
      added: "integer",
      removed: "integer",
      last_number: "integer",
      title: "text?",
    },
  )
    .all(id, path, limit)
    .map(({ title, ...visit }) => ({ ...visit, title: title ?? undefined }))
}

/** Returns the newest root conversations that worked on a branch of the project. Subagents' work counts for their root. */
export function rootsOnBranch(db: Db, project: string, branch: string, limit: number): RootConversation[] {
  const id = knownProject(db, project)
  if (id === undefined) return []
  return rowQuery(
    db,
    `select source, root from conversation
       where project_id = ? and branch = ? group by source, root order by max(ended_at) desc limit ?`,
    ROOT_ROW,
  ).all(id, branch, limit)
}

export type NewestWork = RootConversation & {
  id: string
  branch?: string
  /** Missing if the title may contain a stranger's words. */
  title?: string
  at: number
}

/** Returns the conversation that last changed anything in the project before a time, except the current one. */
export function newestWork(db: Db, project: string, before: number, currentRoot?: string): NewestWork | undefined {
  const id = knownProject(db, project)
  if (id === undefined) return undefined
  const newest = rowQuery(
    db,
    `select c.source, c.native_id as id, c.root, c.branch, ${SAFE_TITLE} as title, c.ended_at as at from conversation c
       where c.project_id = @id and c.kind <> 'subagent' and c.ended_at <= @before and c.root <> @asking
         and exists (select 1 from conversation m join worked w on w.conversation_id = m.id
           where m.source = c.source and m.root = c.root and w.edits > 0)
       order by c.ended_at desc limit 1`,
    { source: "text", root: "text", id: "text", branch: "text?", title: "text?", at: "integer" },
  ).get({ id, before, asking: currentRoot ?? "" })
  if (!newest) return undefined
  const { branch, title, ...rest } = newest
  return { ...rest, branch: branch ?? undefined, title: title ?? undefined }
}

export type RootConversation = RowOf<typeof ROOT_ROW>
const ROOT_ROW = { source: "text", root: "text" } as const

export type WorkedFilePath = RowOf<typeof WORKED_ROW>
const WORKED_ROW = {
  source: "text",
  root: "text",
  path: "text",
  edits: "integer",
  reads: "integer",
  at: "integer",
} as const

/** Returns the files on which the conversations of these roots worked. */
export function filesWorkedOn(db: Db, project: string, roots: RootConversation[]): WorkedFilePath[] {
  const id = knownProject(db, project)
  if (id === undefined) return []
  const selectWorkedOn = rowQuery(
    db,
    `select c.source, c.root, f.path, sum(fact.edits) as edits, sum(fact.reads) as reads, max(ifnull(fact.at, ifnull(c.ended_at, 0))) as at
     from conversation c join worked fact on fact.conversation_id = c.id join file f on f.id = fact.file_id
     where c.source = ? and c.root = ? and f.project_id = ? and (fact.edits > 0 or fact.reads > 0)
     group by f.path`,
    WORKED_ROW,
  )
  return roots.flatMap(({ source, root }) => selectWorkedOn.all(source, root, id))
}
