import { topicWords } from "../../core/words.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { removeCommitDecisions } from "./decisions.ts"
import { knownProject, projectId } from "./rows.ts"

// Stores a project's git history: which commits touched which file, under any of its names.

export const GIT_SCHEMA = `
  create table git_read (
    project_id integer primary key,
    head text not null,
    -- Where the history was cut off then.
    shallow text not null,
    read_at integer not null,
    left_out text not null,
    -- The head whose decisions are known.
    decided text
  );

  -- A merge brings older ones later: they are ordered by committed_at, as git does it, and then by id.
  create table git_commit (
    id integer primary key,
    project_id integer not null,
    hash text not null,
    at integer not null,
    committed_at integer not null,
    subject text not null,
    body text not null,
    file_count integer not null,
    breaking text,
    reverts text,
    reverts_hash text,
    unique (project_id, hash)
  );
  create index git_commit_at on git_commit (project_id, at);
  create index git_commit_order on git_commit (project_id, committed_at);
  create index git_commit_marked on git_commit (project_id, at) where breaking is not null or reverts is not null;

  -- A file keeps its id when it is renamed; its path is the newest name.
  create table git_file (
    id integer primary key,
    project_id integer not null,
    path text not null,
    gone integer not null default 0,
    unique (project_id, path)
  );

  -- Every name that a file ever had, and whose it was last.
  create table git_name (
    project_id integer not null,
    name text not null,
    file_id integer not null,
    primary key (project_id, name)
  ) without rowid;
  create index git_name_file on git_name (file_id);

  create table git_touch (
    file_id integer not null,
    commit_id integer not null,
    status text not null,
    primary key (file_id, commit_id)
  ) without rowid;
  create index git_touch_commit on git_touch (commit_id);

  -- The words of the messages, as in turn_words.
  create virtual table git_words using fts5(words, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
  create virtual table git_vocabulary using fts5vocab(git_words, 'row');
`

export type TouchWrite = { status: "added" | "modified" | "deleted" | "renamed"; path: string; from?: string }

export type CommitWrite = {
  hash: string
  at: number
  committed_at: number
  subject: string
  body: string
  files: TouchWrite[]
  file_count: number
  breaking?: string
  reverts?: { subject: string; hash?: string }
}

export type GitWrite = {
  project: string
  head: string
  shallow: string
  read_at: number
  /** The commits, newest first. */
  commits: CommitWrite[]
  /** True to delete the stored commits first. */
  replaces: boolean
  /** Descriptions of what was left out, for the user. With `replaces`, these descriptions replace the earlier ones. */
  left_out: string[]
  /** The maximum number of commits. If there are more, the oldest are deleted and `when_more` is reported. */
  max_commits: number
  when_more: string
}

export type GitProject = {
  head: string
  shallow: string
  read_at: number
  left_out: string[]
  decided?: string
  commits: number
}

export type GitCommit = {
  hash: string
  at: number
  subject: string
  body: string
  file_count: number
  breaking?: string
  reverts?: { subject: string; hash?: string }
}

/** A file, and how many commits changed both it and the given file (`together`), the given file (`own`), and it (`other`). */
export type ChangedTogether = RowOf<typeof CHANGED_TOGETHER_ROW>
const CHANGED_TOGETHER_ROW = {
  path: "text",
  together: "integer",
  own: "integer",
  other: "integer",
  newest: "integer",
} as const

/** A commit with more files than this does not show that its files belong together. */
export const MAX_RELATED_FILES = 50

export function gitProject(db: Db, project: string): GitProject | undefined {
  const row = rowQuery(
    db,
    "select head, shallow, read_at, left_out, decided, (select count(*) from git_commit c where c.project_id = r.project_id) commits from git_read r where project_id = ?",
    { commits: "integer", head: "text", shallow: "text", read_at: "integer", left_out: "text", decided: "text?" },
  ).get(knownProject(db, project) ?? null)
  if (!row) return undefined
  const { decided, left_out, ...read } = row
  return { ...read, left_out: JSON.parse(left_out), decided: decided ?? undefined }
}

export function saveCommits(db: Db, write: GitWrite): { added: number } {
  return inTransaction(db, () => {
    const project = projectId(db, write.project)
    if (write.replaces) forgetGit(db, project)
    const before = gitProject(db, write.project)?.left_out ?? []
    const added = write.commits.toReversed().filter((commit) => addCommit(db, project, commit)).length
    const dropped = dropOldest(db, project, write.max_commits) ? [write.when_more] : []
    const left_out = [...new Set([...before, ...write.left_out, ...dropped])]
    db.prepare(
      "insert or replace into git_read (project_id, head, shallow, read_at, left_out) values (?, ?, ?, ?, ?)",
    ).run(project, write.head, write.shallow, write.read_at, JSON.stringify(left_out))
    return { added }
  })
}

/** Returns the commits that touched the file under any of its names, newest first. The path may be an old name. */
export function commitsTouching(
  db: Db,
  project: string,
  file: string,
  { since = 0, limit }: { since?: number; limit: number },
): (GitCommit & { status: string })[] {
  return rowQuery(
    db,
    `select c.*, t.status from git_name n
         join git_touch t on t.file_id = n.file_id
         join git_commit c on c.id = t.commit_id
         where n.project_id = @id and n.name = @file and c.at >= @since order by c.committed_at desc, c.id desc limit @limit`,
    {
      hash: "text",
      at: "integer",
      subject: "text",
      body: "text",
      file_count: "integer",
      breaking: "text?",
      reverts: "text?",
      reverts_hash: "text?",
      status: "text",
    },
  )
    .all({ id: knownProject(db, project) ?? null, file, since, limit })
    .map((row) => ({ ...commitOf(row), status: row.status }))
}

/** A commit, and those of the given files that it touched. */
export type RelatedCommit = Pick<GitCommit, "hash" | "at" | "subject" | "file_count"> & { paths: string[] }

/**
 * Returns the commits since a time that touched any of these files, but not the file `except`, newest first. Commits of many files
 * are left out.
 */
export function commitsTouchingAny(
  db: Db,
  project: string,
  files: readonly string[],
  { except, since, limit }: { except: string; since: number; limit: number },
): RelatedCommit[] {
  return rowQuery(
    db,
    `select c.hash, c.at, c.subject, c.file_count, json_group_array(f.path) as paths
       from git_commit c join git_touch t on t.commit_id = c.id join git_file f on f.id = t.file_id
       where c.project_id = @id and c.at >= @since and c.file_count <= ${MAX_RELATED_FILES}
         and f.path in (select value from json_each(@files))
         and not exists (select 1 from git_touch o join git_name n on n.file_id = o.file_id
           where o.commit_id = c.id and n.project_id = @id and n.name = @except)
       group by c.id order by c.committed_at desc, c.id desc limit @limit`,
    { hash: "text", at: "integer", subject: "text", file_count: "integer", paths: "text" },
  )
    .all({ id: knownProject(db, project) ?? null, files: JSON.stringify(files), except, since, limit })
    .map(({ paths, ...commit }) => ({ ...commit, paths: JSON.parse(paths) as string[] }))
}

/** Returns the commits after a time, newest first. */
export function commitsSince(db: Db, project: string, since: number, limit: number): GitCommit[] {
  return rowQuery(
    db,
    "select * from git_commit where project_id = ? and at > ? order by committed_at desc, id desc limit ?",
    COMMIT_ROW,
  )
    .all(knownProject(db, project) ?? null, since, limit)
    .map(commitOf)
}

/** Returns existing files that changed in the same commits as this one, the most frequent first. */
export function changedTogether(db: Db, project: string, file: string, limit: number): ChangedTogether[] {
  return rowQuery(
    db,
    `with own as (
         select t.file_id, t.commit_id, c.at from git_name n
         join git_touch t on t.file_id = n.file_id
         join git_commit c on c.id = t.commit_id and c.file_count <= ${MAX_RELATED_FILES}
         where n.project_id = @id and n.name = @file
       )
       select f.path, count(*) together, (select count(*) from own) own,
         (select count(*) from git_touch x join git_commit c on c.id = x.commit_id
          where x.file_id = f.id and c.file_count <= ${MAX_RELATED_FILES}) other,
         max(own.at) newest
       from own
       join git_touch t on t.commit_id = own.commit_id and t.file_id <> own.file_id
       join git_file f on f.id = t.file_id and not f.gone
       group by f.id order by together desc, newest desc, f.path limit @limit`,
    CHANGED_TOGETHER_ROW,
  ).all({ id: knownProject(db, project) ?? null, file, limit })
}

/** Returns the file's current name, or undefined if no known commit touched it. */
export function currentFileName(db: Db, project: string, file: string): { path: string; gone: boolean } | undefined {
  const row = rowQuery(
    db,
    "select f.path, f.gone from git_name n join git_file f on f.id = n.file_id where n.project_id = ? and n.name = ?",
    { path: "text", gone: "integer" },
  ).get(knownProject(db, project) ?? null, file)
  return row && { path: row.path, gone: row.gone === 1 }
}

/** Of the files that a conversation edited, how many a commit has changed or deleted since it ended. `of` is 0 if git was not read. */
export function changedSince(db: Db, conversation: number): { changed: number; of: number } {
  return rowQuery(
    db,
    `select count(*) as "of", ifnull(sum(exists (
         select 1 from git_name n join git_touch t on t.file_id = n.file_id join git_commit k on k.id = t.commit_id
           where n.project_id = f.project_id and n.name = f.path and k.committed_at > c.ended_at + @margin)), 0) as changed
       from worked w join file f on f.id = w.file_id join conversation c on c.id = w.conversation_id
       where w.conversation_id = @conversation and w.edits > 0
         and exists (select 1 from git_read r where r.project_id = f.project_id)
         and exists (select 1 from git_name n where n.project_id = f.project_id and n.name = f.path)`,
    { of: "integer", changed: "integer" },
  ).get({ conversation, margin: OWN_COMMIT_MS })!
}

/** A commit this soon after a conversation contains its own edits. */
const OWN_COMMIT_MS = 60 * 60 * 1000

/** Returns the current names of the files that a commit touched. */
export function filesOfCommit(db: Db, project: string, hash: string): string[] {
  return valueQuery(
    db,
    `select f.path from git_commit c
       join git_touch t on t.commit_id = c.id
       join git_file f on f.id = t.file_id
       where c.project_id = ? and c.hash = ? order by f.path`,
    "text",
  ).all(knownProject(db, project) ?? null, hash)
}

/** Returns commits that announce a breaking change or revert another commit, newest first. */
export function markedCommits(
  db: Db,
  project: string,
  { since = 0, limit }: { since?: number; limit: number },
): GitCommit[] {
  return rowQuery(
    db,
    `select * from git_commit
         where project_id = @id and at >= @since and (breaking is not null or reverts is not null)
         order by committed_at desc, id desc limit @limit`,
    COMMIT_ROW,
  )
    .all({ id: knownProject(db, project) ?? null, since, limit })
    .map(commitOf)
}

export type MatchedCommit = { hash: string; at: number; score: number; files: string[] }

const ABOUT_COMMITS = `
  with matched as materialized (
    select rowid as id, -bm25(git_words) as score from git_words where git_words match @words
  )
  select c.hash, c.at, matched.score,
      (select json_group_array(f.path) from git_touch t join git_file f on f.id = t.file_id where t.commit_id = c.id) as files
    from matched join git_commit c on c.id = matched.id
    where c.project_id = @project and c.at <= @before and c.file_count between 1 and ${MAX_RELATED_FILES}
    order by matched.score desc, c.id desc limit @limit`

/** Returns commits with any of these words in their messages, best first. */
export function commitsAbout(
  db: Db,
  project: string,
  words: readonly string[],
  { before, limit }: { before: number; limit: number },
): MatchedCommit[] {
  if (words.length === 0) return []
  return rowQuery(db, ABOUT_COMMITS, { hash: "text", at: "integer", score: "real", files: "text" })
    .all({
      words: words.map((word) => `"${word}"`).join(" OR "),
      project: knownProject(db, project) ?? null,
      before,
      limit,
    })
    .map(({ files, ...commit }) => ({ ...commit, files: JSON.parse(files) as string[] }))
}

/** The number of commits that contain each of these words in their messages. */
export function commitsWith(db: Db, words: readonly string[]): number[] {
  const query = valueQuery(db, "select doc from git_vocabulary where term = ?", "integer")
  return words.map((word) => query.get(word) ?? 0)
}

export function forgetProjectGit(db: Db, project: string): void {
  const id = knownProject(db, project)
  if (id !== undefined) inTransaction(db, () => forgetGit(db, id))
}

type CommitRow = RowOf<typeof COMMIT_ROW>
const COMMIT_ROW = {
  hash: "text",
  at: "integer",
  subject: "text",
  body: "text",
  file_count: "integer",
  breaking: "text?",
  reverts: "text?",
  reverts_hash: "text?",
} as const

function commitOf({ hash, at, subject, body, file_count, breaking, reverts, reverts_hash }: CommitRow): GitCommit {
  return {
    ...{ hash, at, subject, body, file_count },
    breaking: breaking ?? undefined,
    reverts: reverts === null ? undefined : { subject: reverts, hash: reverts_hash ?? undefined },
  }
}

function addCommit(db: Db, project: number, commit: CommitWrite): boolean {
  const id = valueQuery(
    db,
    `insert into git_commit (project_id, hash, at, committed_at, subject, body, file_count, breaking, reverts, reverts_hash)
       values (@project, @hash, @at, @committed_at, @subject, @body, @file_count, @breaking, @reverts, @reverts_hash)
       on conflict do nothing returning id`,
    "integer",
  ).get({
    project,
    hash: commit.hash,
    at: commit.at,
    committed_at: commit.committed_at,
    subject: commit.subject,
    body: commit.body,
    file_count: commit.file_count,
    breaking: commit.breaking ?? null,
    reverts: commit.reverts?.subject ?? null,
    reverts_hash: commit.reverts?.hash ?? null,
  })
  if (id === undefined) return false
  db.prepare("insert into git_words (rowid, words) values (?, ?)").run(
    id,
    topicWords(`${commit.subject}\n${commit.body}`).join(" "),
  )
  const touch = db.prepare("insert or ignore into git_touch (file_id, commit_id, status) values (?, ?, ?)")
  for (const file of commit.files) touch.run(fileOf(db, project, file, commit.committed_at), id, file.status)
  return true
}

type NamedFile = RowOf<typeof NAMED_FILE_ROW>
const NAMED_FILE_ROW = { id: "integer", path: "text" } as const

/**
 * Finds or adds the file that a commit touched. Commits come oldest first, but those of two branches alternate: one branch may
 * change a file under its old name after the other has renamed it, and the same rename may come twice.
 */
function fileOf(db: Db, project: number, { status, path, from }: TouchWrite, committedAt: number): number {
  const knownFile = fileNamed(db, project, path)
  if (status === "renamed" && from !== undefined) return renameFile(db, project, from, path, knownFile)
  const isNew = knownFile === undefined || (status === "added" && knownFile.path !== path)
  const id = isNew ? addFileRow(db, project, path) : knownFile.id
  if (isNew || knownFile.path === path) setGone(db, id, status === "deleted", committedAt)
  return id
}

/**
 * Marks a file as deleted or not, unless a later commit touched it: merging an old commit does not restore a file that was
 * deleted after that commit.
 */
function setGone(db: Db, file: number, isGone: boolean, committedAt: number): void {
  db.prepare(
    `update git_file set gone = ? where id = ? and not exists (
       select 1 from git_touch t join git_commit c on c.id = t.commit_id where t.file_id = git_file.id and c.committed_at > ?)`,
  ).run(isGone ? 1 : 0, file, committedAt)
}

function renameFile(db: Db, project: number, from: string, path: string, known: NamedFile | undefined): number {
  const source = fileNamed(db, project, from)
  if (source?.path === path) return source.id
  if (source?.path !== from) {
    const id = known?.path === path ? known.id : addFileRow(db, project, path)
    if (source === undefined) saveName(db, project, from, id)
    return id
  }
  // A deleted file that had this name before becomes part of the renamed file's history.
  if (known?.path === path) mergeFiles(db, known.id, source.id)
  db.prepare("update git_file set path = ?, gone = 0 where id = ?").run(path, source.id)
  saveName(db, project, path, source.id)
  return source.id
}

function fileNamed(db: Db, project: number, file: string): NamedFile | undefined {
  return rowQuery(
    db,
    "select f.id, f.path from git_name n join git_file f on f.id = n.file_id where n.project_id = ? and n.name = ?",
    NAMED_FILE_ROW,
  ).get(project, file)
}

function addFileRow(db: Db, project: number, path: string): number {
  const id = valueQuery(db, "insert into git_file (project_id, path) values (?, ?) returning id", "integer").get(
    project,
    path,
  )!
  saveName(db, project, path, id)
  return id
}

function saveName(db: Db, project: number, path: string, file: number): void {
  db.prepare("insert or replace into git_name (project_id, name, file_id) values (?, ?, ?)").run(project, path, file)
}

function mergeFiles(db: Db, file: number, target: number): void {
  db.prepare("update or ignore git_touch set file_id = ? where file_id = ?").run(target, file)
  db.prepare("delete from git_touch where file_id = ?").run(file)
  db.prepare("update git_name set file_id = ? where file_id = ?").run(target, file)
  db.prepare("delete from git_file where id = ?").run(file)
}

const SELECT_OLDEST_COMMITS =
  "select id from git_commit where project_id = ? order by committed_at desc, id desc limit -1 offset ?"

/** Deletes the oldest commits if there are more than `maxCommits`. Returns true if it deleted any. */
function dropOldest(db: Db, project: number, maxCommits: number): boolean {
  if (db.prepare(SELECT_OLDEST_COMMITS).get(project, maxCommits) === undefined) return false
  db.prepare(`delete from git_touch where commit_id in (${SELECT_OLDEST_COMMITS})`).run(project, maxCommits)
  db.prepare(`delete from git_words where rowid in (${SELECT_OLDEST_COMMITS})`).run(project, maxCommits)
  db.prepare(`delete from git_commit where id in (${SELECT_OLDEST_COMMITS})`).run(project, maxCommits)
  db.prepare(
    "delete from git_name where project_id = ? and not exists (select 1 from git_touch t where t.file_id = git_name.file_id)",
  ).run(project)
  db.prepare(
    "delete from git_file where project_id = ? and not exists (select 1 from git_touch t where t.file_id = git_file.id)",
  ).run(project)
  return true
}

function forgetGit(db: Db, project: number): void {
  db.prepare("delete from git_touch where commit_id in (select id from git_commit where project_id = ?)").run(project)
  db.prepare("delete from git_words where rowid in (select id from git_commit where project_id = ?)").run(project)
  db.prepare("delete from git_commit where project_id = ?").run(project)
  db.prepare("delete from git_name where project_id = ?").run(project)
  db.prepare("delete from git_file where project_id = ?").run(project)
  db.prepare("delete from git_read where project_id = ?").run(project)
  removeCommitDecisions(db, project)
}
