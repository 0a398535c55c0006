import { isSameConversation, type Ref, refFrom, siblingRef, sourceWithOwner } from "../../core/ref.ts"
import type { ConversationRow } from "../history/store.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { removeDecisions, type StoredDecision, saveDecisions } from "./decisions.ts"
import { saveWorkedFiles, type WorkedFile } from "./files.ts"
import { type StoredFix, saveFixes } from "./fixes.ts"
import { type LinesWrite, removeLines, saveLines } from "./lines.ts"
import { notePurge } from "./purge.ts"
import { projectId } from "./rows.ts"
import { removeTestRuns, saveTestRuns, type TestRunWrite } from "./test-runs.ts"
import { removeTurns, saveTurns, type Topic, type TurnWords } from "./turns.ts"

// Stores the facts learned from conversations, as of the last time that each conversation was read.

/** Returns the position up to which the history's feed was processed. */
export function learnedToken(db: Db): string | undefined {
  return valueQuery(db, "select value from meta where key = 'token'", "text").get()
}

export function learnedCount(db: Db): number {
  return valueQuery(db, "select count(*) from conversation", "integer").get()!
}

function saveLearnedToken(db: Db, token: string): void {
  db.prepare("insert or replace into meta (key, value) values ('token', ?)").run(token)
}

export function isLearnerVersion(db: Db, version: number): boolean {
  return db.prepare("select value from meta where key = 'learner'").pluck().get() === String(version)
}

/** If another version of the learner stored the facts from conversations, deletes them. Then records this version. */
export function setLearnerVersion(db: Db, version: number): void {
  if (isLearnerVersion(db, version)) return // most callers only read, and need no lock
  inTransaction(db, () => {
    if (isLearnerVersion(db, version)) return
    if (db.prepare("select 1 from meta where key = 'learner'").get() !== undefined) forgetAll(db)
    db.prepare("insert or replace into meta (key, value) values ('learner', ?)").run(String(version))
  })
}

/** Deletes everything that came from conversations. Knowledge from projects stays. */
export function forgetConversations(db: Db): void {
  inTransaction(db, () => forgetAll(db))
}

function forgetAll(db: Db): void {
  for (const id of valueQuery(db, "select id from conversation", "integer").all()) removeFacts(db, id)
  db.exec("delete from conversation; delete from meta where key = 'token'")
  notePurge(db) // some of these conversations may have been forgotten, which cannot be determined later
}

export type KnownConversation = {
  /** The conversation's name in the feed. */
  name: string
  ref: Ref
  root: string
  project?: string
  kind: string
  branch?: string
  /** The folder in which it took place. */
  folder?: string
  title?: string
  started_at?: number
  ended_at?: number
  web_at?: number
  imported_from?: string
  says_change?: boolean
}

/** Replaces the conversation's row and everything stored about it, and returns its id. */
export function renewConversation(db: Db, known: KnownConversation): number {
  const source = sourceWithOwner(known.ref)
  removeConversation(db, known.name)
  db.prepare("delete from conversation where source = ? and native_id = ?").run(source, known.ref.id)
  // Conversations that belong to this one and were learned before it get its root.
  db.prepare("update conversation set root = @root where source = @source and root = @id").run({
    root: known.root,
    source,
    id: known.ref.id,
  })
  return valueQuery(
    db,
    `insert into conversation (name, source, native_id, root, project_id, kind, branch, folder, title, started_at, ended_at, web_at,
         imported_from, says_change)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning id`,
    "integer",
  ).get(
    known.name,
    source,
    known.ref.id,
    known.root,
    known.project === undefined ? null : projectId(db, known.project),
    known.kind,
    known.branch ?? null,
    known.folder ?? null,
    known.title ?? null,
    known.started_at ?? null,
    known.ended_at ?? null,
    known.web_at ?? null,
    known.imported_from ?? null,
    known.says_change ? 1 : 0,
  )!
}

function removeConversation(db: Db, name: string): void {
  const id = valueQuery(db, "select id from conversation where name = ?", "integer").get(name)
  if (id === undefined) return
  removeFacts(db, id)
  db.prepare("delete from conversation where id = ?").run(id)
}

function removeFacts(db: Db, id: number): void {
  db.prepare("delete from fix_words where rowid in (select id from fix where conversation_id = ?)").run(id)
  db.prepare("delete from fix where conversation_id = ?").run(id)
  db.prepare("delete from worked where conversation_id = ?").run(id)
  removeTestRuns(db, id)
  removeDecisions(db, id)
  removeLines(db, id)
  removeTurns(db, id)
}

/** Returns a conversation's name in the history's feed, if something was learned from it. */
export function feedNameOf(db: Db, ref: Ref): string | undefined {
  const sql = "select name from conversation where source = ? and native_id = ?"
  return valueQuery(db, sql, "text").get(sourceWithOwner(ref), ref.id)
}

/** Returns the ref of the conversation with this name in the history's feed. */
function refOf(db: Db, name: string): Ref | undefined {
  const sql = "select source, native_id as id from conversation where name = ?"
  const row = rowQuery(db, sql, { source: "text", id: "text" }).get(name)
  return row && refFrom(row.source, row.id)
}

/**
 * Returns the other conversations of the same tree, except subagents. Their facts may include the work of this one, so they are learned
 * again when it is removed.
 */
export function possibleReporters(db: Db, ref: Ref): { name: string; ref: Ref }[] {
  const rows = rowQuery(
    db,
    `select o.name, o.source, o.native_id as id from conversation c
       join conversation o on o.source = c.source and (o.root = c.root or o.native_id = c.root)
       where c.source = ? and c.native_id = ? and o.id <> c.id and o.kind <> 'subagent'`,
    { name: "text", source: "text", id: "text" },
  ).all(sourceWithOwner(ref), ref.id)
  return rows.map(({ name, source, id }) => ({ name, ref: refFrom(source, id) }))
}

/** Returns the root of a conversation, or the conversation's own id if its root is unknown. */
function rootOf(db: Db, ref: Ref): string {
  const sql = "select root from conversation where source = ? and native_id = ?"
  return valueQuery(db, sql, "text").get(sourceWithOwner(ref), ref.id) ?? ref.id
}

export type LearnedFacts =
  | {
      name: string
      gone: true
      /** Set if the conversation exists, but there is nothing to learn from it. */
      ref?: Ref
    }
  | {
      name: string
      gone: false
      ref: Ref
      row: ConversationRow
      /** The folder of the project in which it took place. */
      folder?: string
      web_at?: number
      worked: WorkedFile[]
      fixes: (StoredFix & { words: string })[]
      test_runs: TestRunWrite[]
      decisions: StoredDecision[]
      lines?: LinesWrite
      turns?: { turns: TurnWords[]; topic: Topic }
      /** Whether it says that something is no longer as it was decided. */
      says_change?: boolean
    }

/**
 * Saves what was learned between two positions of the history's feed, all or nothing. Returns false if another process has
 * learned meanwhile, because the data may be outdated.
 */
export function saveLearned(db: Db, facts: LearnedFacts[], from: string | undefined, to: string): boolean {
  return inTransaction(db, () => {
    if (learnedToken(db) !== from) return false
    if (facts.some((fact) => removedConversation(db, fact.name, fact.ref) !== undefined)) notePurge(db)
    for (const fact of facts) replaceFacts(db, fact)
    saveLearnedToken(db, to)
    return true
  })
}

/** Saves the facts of one conversation, regardless of the feed. */
export function saveFacts(db: Db, learned: LearnedFacts): void {
  inTransaction(db, () => replaceFacts(db, learned))
}

/**
 * Returns the conversation that had this name before and no longer exists: the history reuses the name of a forgotten
 * conversation. `current` is the conversation that has the name now.
 */
export function removedConversation(db: Db, name: string, current: Ref | undefined): Ref | undefined {
  const known = refOf(db, name)
  return known && !(current && isSameConversation(known, current)) ? known : undefined
}

function replaceFacts(db: Db, learned: LearnedFacts): void {
  if (learned.gone) {
    removeConversation(db, learned.name)
    return
  }
  const { name, ref, row, web_at, worked, fixes, test_runs, decisions, lines, turns, folder, says_change } = learned
  const { kind, project, title, started_at, ended_at } = row
  const startedBy = row.parent?.id ?? row.fork_of
  const id = renewConversation(db, {
    name,
    ref,
    root: startedBy === undefined ? ref.id : rootOf(db, siblingRef(ref, startedBy)),
    kind,
    project,
    branch: row.git_branch,
    folder,
    title: title?.text,
    started_at,
    ended_at,
    web_at,
    imported_from: row.imported_from,
    says_change,
  })
  if (project !== undefined) saveWorkedFiles(db, id, project, worked)
  if (project !== undefined) saveTestRuns(db, id, project, test_runs, ended_at)
  if (project !== undefined && lines) saveLines(db, id, project, lines)
  saveFixes(db, id, project, fixes)
  saveDecisions(db, id, project, decisions)
  if (project !== undefined && turns) saveTurns(db, id, project, turns)
}
