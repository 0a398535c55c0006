import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { fileId } from "./files.ts"
import { dropOwnersFrom } from "./owners.ts"
import { knownProject, projectId } from "./rows.ts"

// Stores the lines that each edit of a conversation added and removed: only their keys, not the text.

export const LINES_SCHEMA = `
  -- added, removed: the keys of the lines in their order, four bytes each.
  create table line_edit (
    id integer primary key,
    conversation_id integer not null,
    file_id integer not null,
    number integer not null,
    at integer not null,
    added blob not null,
    removed blob not null
  );
  create index line_edit_conversation on line_edit (conversation_id);
  create index line_edit_file on line_edit (file_id);

  -- belongs_to: the conversation that started it, itself where none did. said: seconds since 1970, the last of each minute in which something was said.
  create table line_work (
    conversation_id integer primary key,
    belongs_to text not null,
    said blob not null
  );

  create table line_commit (
    conversation_id integer not null,
    seq integer not null,
    number integer not null,
    hash text not null,
    subject text not null,
    at integer not null,
    primary key (conversation_id, seq)
  ) without rowid;
`

export type EditWrite = {
  /** Relative to the project, with forward slashes. */
  path: string
  number: number
  at: number
  added: number[]
  removed: number[]
}
/** A commit that a conversation made, as git reported it there. */
export type RanCommitWrite = { number: number; hash: string; subject: string; at: number }
export type LinesWrite = { belongs_to: string; edits: EditWrite[]; commits: RanCommitWrite[]; said: number[] }

export function saveLines(db: Db, conversation: number, project: string, write: LinesWrite): void {
  const id = projectId(db, project)
  const insertEdit = db.prepare(
    "insert into line_edit (conversation_id, file_id, number, at, added, removed) values (?, ?, ?, ?, ?, ?)",
  )
  const files = new Map<string, number>()
  for (const { path, number, at, added, removed } of write.edits) {
    const file = files.get(path) ?? fileId(db, id, path)
    files.set(path, file)
    insertEdit.run(conversation, file, number, at, encodeKeys(added), encodeKeys(removed))
  }
  const insertCommit = db.prepare(
    "insert into line_commit (conversation_id, seq, number, hash, subject, at) values (?, ?, ?, ?, ?, ?)",
  )
  for (const [seq, { number, hash, subject, at }] of write.commits.entries())
    insertCommit.run(conversation, seq, number, hash, subject, at)
  db.prepare("insert into line_work (conversation_id, belongs_to, said) values (?, ?, ?)").run(
    conversation,
    write.belongs_to,
    encodeKeys(write.said),
  )
  dropOwnersFrom(db, id, earliestTime(db, conversation))
}

export function removeLines(db: Db, conversation: number): void {
  const project = db.prepare("select project_id from conversation where id = ?").pluck().get(conversation)
  if (typeof project === "number") dropOwnersFrom(db, project, earliestTime(db, conversation))
  db.prepare("delete from line_edit where conversation_id = ?").run(conversation)
  db.prepare("delete from line_commit where conversation_id = ?").run(conversation)
  db.prepare("delete from line_work where conversation_id = ?").run(conversation)
}

/** Returns the time of the conversation's first edit or message. The conversation cannot affect the owners of older lines. */
function earliestTime(db: Db, conversation: number): number {
  const firstEditAt = valueQuery(db, "select min(at) from line_edit where conversation_id = ?", "integer?").get(
    conversation,
  )
  const seconds = valueQuery(db, "select said from line_work where conversation_id = ?", "blob").get(conversation)
  const firstMessageSeconds = seconds && decodeKeys(seconds)[0]
  return Math.min(firstEditAt ?? Infinity, firstMessageSeconds === undefined ? Infinity : firstMessageSeconds * 1000)
}

/** A conversation that worked in a project, with its times. `source` includes the owner. */
export type LineWorker = {
  conversation: number
  /** The conversation's name in the history's feed. */
  name: string
  source: string
  id: string
  belongs_to: string
  title?: string
  started_at?: number
  /** Seconds since 1970, ascending: the last second with a message in each minute that has one. */
  said: Uint32Array
}

export function lineWorkers(db: Db, project: string): LineWorker[] {
  const rows = rowQuery(
    db,
    `select c.id as conversation, c.name, c.source, c.native_id as id, w.belongs_to, c.title, c.started_at, w.said
       from conversation c join line_work w on w.conversation_id = c.id where c.project_id = ? order by c.id`,
    {
      id: "text",
      source: "text",
      conversation: "integer",
      name: "text",
      belongs_to: "text",
      title: "text?",
      started_at: "integer?",
      said: "blob",
    },
  ).all(knownProject(db, project) ?? null)
  return rows.map(({ title, started_at, said, ...row }) => ({
    ...row,
    title: title ?? undefined,
    started_at: started_at ?? undefined,
    said: decodeKeys(said),
  }))
}

export function lineFiles(db: Db, project: string): { file: number; path: string }[] {
  return rowQuery(
    db,
    "select id as file, path from file f where project_id = ? and exists (select 1 from line_edit where file_id = f.id)",
    { file: "integer", path: "text" },
  ).all(knownProject(db, project) ?? null)
}

export type LineEdit = {
  conversation: number
  file: number
  number: number
  at: number
  added: Uint32Array
  removed: Uint32Array
}

/** Returns the edits of these files, oldest first. */
export function editsOfFiles(db: Db, files: readonly number[]): LineEdit[] {
  const rows = rowQuery(
    db,
    `select conversation_id as conversation, file_id as file, number, at, added, removed from line_edit
       where file_id in (select value from json_each(?)) order by at, id`,
    { number: "integer", at: "integer", conversation: "integer", file: "integer", added: "blob", removed: "blob" },
  ).all(JSON.stringify(files))
  return rows.map(({ added, removed, ...row }) => ({ ...row, added: decodeKeys(added), removed: decodeKeys(removed) }))
}

export type RanCommit = RowOf<typeof RAN_COMMIT_ROW>
const RAN_COMMIT_ROW = {
  number: "integer",
  hash: "text",
  subject: "text",
  at: "integer",
  conversation: "integer",
} as const

export function ranCommits(db: Db, project: string): RanCommit[] {
  return rowQuery(
    db,
    `select k.conversation_id as conversation, k.number, k.hash, k.subject, k.at from conversation c
       join line_commit k on k.conversation_id = c.id where c.project_id = ? order by k.at`,
    RAN_COMMIT_ROW,
  ).all(knownProject(db, project) ?? null)
}

function encodeKeys(keys: number[]): Buffer {
  return Buffer.from(Uint32Array.from(keys).buffer)
}

function decodeKeys(bytes: Buffer): Uint32Array {
  // Copy the blob, because four-byte numbers must be aligned and a blob may be at any address.
  return new Uint32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer)
}
