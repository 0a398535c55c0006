import { existsSync } from "node:fs"
import type { Ref } from "../../core/ref.ts"
import {
  copyTo,
  emptyLog,
  explained,
  inTransaction,
  openDerived,
  openToRead,
  removeDatabase,
} from "../sqlite/database.ts"
import { CODE_SCHEMA } from "./code.ts"
import { DECISIONS_SCHEMA, removeDecisions } from "./decisions.ts"
import { FILES_SCHEMA } from "./files.ts"
import { FIXES_SCHEMA } from "./fixes.ts"
import { GIT_SCHEMA } from "./git.ts"
import { type Knowledge, projectId } from "./rows.ts"
import { removeTestRuns, TESTS_SCHEMA } from "./test-runs.ts"

export type { Knowledge } from "./rows.ts"

import { olderKnowledge } from "../sqlite/older-files.ts"

const SCHEMA = `
    create table meta (key text primary key, value text not null) without rowid;
    create table project (id integer primary key, path text not null unique);
    -- root: the conversation that it belongs to, itself where to none. web_at: from when on it may hold a stranger's words.
    create table conversation (
      id integer primary key,
      name text not null unique,
      source text not null,
      native_id text not null,
      root text not null,
      project_id integer,
      kind text not null,
      branch text,
      title text,
      started_at integer,
      ended_at integer,
      web_at integer
    );
    create unique index conversation_ref on conversation (source, native_id);
    create index conversation_root on conversation (source, root);
    create index conversation_project on conversation (project_id, ended_at);
    ${FILES_SCHEMA}
    ${FIXES_SCHEMA}
    ${TESTS_SCHEMA}
    ${GIT_SCHEMA}
    ${DECISIONS_SCHEMA}
    ${CODE_SCHEMA}
`
const MIGRATIONS: readonly [string, string][] = [["001-facts", SCHEMA]]
/** Of another schema, KNOWLEDGE_FORMAT is another number. */
export const SCHEMA_MARK = markOf(SCHEMA)
const MARK = "select value from meta where key = 'schema'"

/** Where the file was made by a dex that keeps its facts in another form, it is made anew: nothing in it is the only copy. */
export function openKnowledge(path: string): Knowledge {
  if (!existsSync(path)) adoptOlder(path)
  const db = openDerived(path, MIGRATIONS)
  const mark = db.prepare(MARK).pluck()
  if (mark.get() === undefined)
    inTransaction(db, () => db.prepare("insert or ignore into meta (key, value) values ('schema', ?)").run(SCHEMA_MARK))
  if (mark.get() === SCHEMA_MARK) return db
  db.close()
  removeDatabase(path)
  return openKnowledge(path)
}

/** What 0.1.0 learned is as good, where it is kept in the same form. */
function adoptOlder(path: string): void {
  try {
    const older = olderKnowledge(path)
    const old = older === path ? undefined : readKnowledge(older, OLDER_BUSY_MS)
    if (old) copyTo(old, path)
    old?.close()
  } catch {
    // Damaged: learned again, then.
  }
}

const OLDER_BUSY_MS = 2_000

/** Another text, another mark: FNV-1a, since hooks open this file too and have no time for node:crypto. */
function markOf(text: string): string {
  let [a, b] = [0x811c9dc5, 0x01000193]
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193)
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b)
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("")
}

/** See `openToRead`. Undefined too where the facts are kept in another form. */
export function readKnowledge(path: string, busyMs: number): Knowledge | undefined {
  const db = openToRead(path, MIGRATIONS, busyMs)
  if (db?.prepare(MARK).pluck().get() === SCHEMA_MARK) return db
  db?.close()
  return undefined
}

/** How far the history's feed was followed. */
export function learnedToken(db: Knowledge): string | undefined {
  return db.prepare("select value from meta where key = 'token'").pluck().get() as string | undefined
}

export function saveLearnedToken(db: Knowledge, token: string): void {
  db.prepare("insert or replace into meta (key, value) values ('token', ?)").run(token)
}

/** What another way of learning made of conversations is forgotten, in one step with remembering which way it is now. */
export function useLearner(db: Knowledge, version: number): void {
  const known = db.prepare("select value from meta where key = 'learner'").pluck()
  if (known.get() === String(version)) return // whoever only reads takes no lock
  inTransaction(db, () => {
    if (known.get() === String(version)) return
    if (known.get() !== undefined) forgetConversations(db)
    db.prepare("insert or replace into meta (key, value) values ('learner', ?)").run(String(version))
  })
}

/** Everything that came from conversations. What came from projects stays. */
export function forgetConversations(db: Knowledge): void {
  for (const id of db.prepare("select id from conversation").pluck().all() as number[]) removeFacts(db, id)
  db.exec("delete from conversation; delete from meta where key = 'token'")
  notePurge(db) // what was forgotten meanwhile is among it, and nobody will know
}

export type KnownConversation = {
  /** As the feed calls it. */
  name: string
  ref: Ref
  root: string
  project?: string
  kind: string
  branch?: string
  title?: string
  started_at?: number
  ended_at?: number
  web_at?: number
}

/** Writes the conversation's own row, without any fact that was known of it before, and returns its number. */
export function renewConversation(db: Knowledge, known: KnownConversation): number {
  removeConversation(db, known.name)
  db.prepare("delete from conversation where source = ? and native_id = ?").run(known.ref.source, known.ref.id)
  // Those that were learned before it, and belong to it, belong to what it belongs to.
  db.prepare("update conversation set root = @root where source = @source and root = @id").run({
    root: known.root,
    source: known.ref.source,
    id: known.ref.id,
  })
  return db
    .prepare(
      `insert into conversation (name, source, native_id, root, project_id, kind, branch, title, started_at, ended_at, web_at)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning id`,
    )
    .pluck()
    .get(
      known.name,
      known.ref.source,
      known.ref.id,
      known.root,
      known.project === undefined ? null : projectId(db, known.project),
      known.kind,
      known.branch ?? null,
      known.title ?? null,
      known.started_at ?? null,
      known.ended_at ?? null,
      known.web_at ?? null,
    ) as number
}

export function removeConversation(db: Knowledge, name: string): void {
  const id = db.prepare("select id from conversation where name = ?").pluck().get(name) as number | undefined
  if (id === undefined) return
  removeFacts(db, id)
  db.prepare("delete from conversation where id = ?").run(id)
}

function removeFacts(db: Knowledge, id: number): void {
  db.prepare("delete from fix_words where rowid in (select id from fix where conversation_id = ?)").run(id)
  db.prepare("delete from fix where conversation_id = ?").run(id)
  db.prepare("delete from worked where conversation_id = ?").run(id)
  removeTestRuns(db, id)
  removeDecisions(db, id)
}

/** What the feed calls a conversation that is known. */
export function nameOf(db: Knowledge, source: string, id: string): string | undefined {
  return db.prepare("select name from conversation where source = ? and native_id = ?").pluck().get(source, id) as
    | string
    | undefined
}

/** The conversation that the feed calls so. */
export function refOf(db: Knowledge, name: string): Ref | undefined {
  return db.prepare("select source, native_id as id from conversation where name = ?").get(name) as Ref | undefined
}

/** Those that may tell what this one did, it being their subagent. */
export function toldOfBy(db: Knowledge, { source, id }: Ref): { name: string; ref: Ref }[] {
  const rows = db
    .prepare(
      `select o.name, o.source, o.native_id as id from conversation c
       join conversation o on o.source = c.source and (o.root = c.root or o.native_id = c.root)
       where c.source = ? and c.native_id = ? and o.id <> c.id and o.kind <> 'subagent'`,
    )
    .all(source, id) as (Ref & { name: string })[]
  return rows.map(({ name, ...ref }) => ({ name, ref }))
}

/** The root of the conversation that this one belongs to, as far as it is known. */
export function rootOf(db: Knowledge, source: string, id: string): string {
  const known = db.prepare("select root from conversation where source = ? and native_id = ?").pluck().get(source, id)
  return (known as string | undefined) ?? id
}

/** Words that were deleted stay in bytes of the file until it is rewritten. In the transaction that deletes them. */
export function notePurge(db: Knowledge): void {
  db.prepare("insert or replace into meta (key, value) values ('purge', ?)").run(globalThis.crypto.randomUUID())
}

export function isPurgeDue(db: Knowledge): boolean {
  return purgeDue(db) !== undefined
}

function purgeDue(db: Knowledge): string | undefined {
  return db.prepare("select value from meta where key = 'purge'").pluck().get() as string | undefined
}

export const UNNAMED_PROJECTS = `delete from project where id not in (
  select project_id from conversation where project_id is not null
  union select project_id from file
  union select project_id from fix where project_id is not null
  union select project_id from test_run
  union select project_id from test_report
  union select project_id from git_read
  union select project_id from git_commit
  union select project_id from git_file
  union select project_id from git_name
  union select project_id from decision where project_id is not null
  union select project_id from decision_stale
  union select project_id from code_file
  union select project_id from code_linked)`

/** Rewrites the file without what was deleted, so that not even single words of it stay on disk. */
export function purgeKnowledge(db: Knowledge, path: string): void {
  try {
    const due = purgeDue(db)
    inTransaction(db, () => {
      db.exec("delete from file where id not in (select file_id from worked)")
      db.exec(UNNAMED_PROJECTS)
    })
    db.exec("insert into fix_words (fix_words) values ('optimize')")
    db.exec("insert into decision_words (decision_words) values ('optimize')")
    emptyLog(db)
    db.exec("vacuum")
    const isDone = emptyLog(db)
    // Where somebody still reads the old pages, or more was forgotten meanwhile, it is due again.
    if (isDone) db.prepare("delete from meta where key = 'purge' and value = ?").run(due ?? null)
  } catch (error) {
    throw explained(error, path)
  }
}
