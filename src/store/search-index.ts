import { renameSync, rmSync } from "node:fs"
import type { Kind, SourceId } from "../core/conversation.ts"
import { isDexError } from "../core/error.ts"
import type { Ref } from "../core/ref.ts"
import { type Db, explained, inTransaction, openDatabase } from "./database.ts"
import { type Fields, fieldsOf, kindTag, projectTag, sourceTag, tagsOf } from "./index-fields.ts"
import type { Change, ConversationRow, Store, StoredMessage } from "./store.ts"

/**
 * The full-text index: derived from the history, safe to delete, comes back by itself. It holds no text (contentless),
 * only which words stand in which message.
 */
export type SearchIndex = {
  /** Reads what changed in the history since last time, until it is done or the time is up. */
  follow(store: Store, options?: FollowOptions): Promise<{ indexed: number; complete: boolean }>
  /** True when the history has changed since the index last followed it. */
  isBehind(store: Store): Promise<boolean>
  find(query: IndexQuery): { hits: IndexHit[]; total: number; total_is_at_least: boolean }
  /** Rewrites the index without what was deleted, so that not even single words of it stay on disk. */
  purge(): void
  check(): string[]
  checkpoint(): void
  close(): void
}

export type FollowOptions = {
  deadline?: number
  onProgress?: (indexed: number) => void
  /** Messages that were written just now and need not be read again, by ref and number. */
  recent?: (ref: Ref) => Map<number, StoredMessage> | undefined
}

export type IndexQuery = {
  /** An FTS5 expression over words and phrases, every one of them quoted. */
  match: string
  sources?: SourceId[]
  projects?: string[]
  excludedProjects?: string[]
  kinds?: Kind[]
  from?: number
  to?: number
  conversations?: Ref[]
  limit: number
}

/** A number of 0 is the conversation's title. Smaller scores are better. */
export type IndexHit = { ref: Ref; number: number; at?: number; score: number }

/** A total is counted to here; beyond it is said to be a lower bound. */
const COUNT_LIMIT = 10_000
const BATCH = 64
/** Said, called, returned, tags: a tool's output is two thirds of the text and seldom what is looked for. */
const WEIGHTS = "2.0, 1.0, 0.6, 0.0"

const MIGRATIONS: readonly [string, string][] = [
  [
    "001-index",
    `
    create table meta (key text primary key, value text not null) without rowid;
    create table conversation (id integer primary key, name text not null unique, source text not null, native_id text not null, tags text not null, title text);
    create unique index conversation_ref on conversation (source, native_id);
    create table project (id integer primary key, path text not null unique);
    create table doc (id integer primary key, conversation_id integer not null, number integer not null, at integer, version integer not null);
    create index doc_conversation on doc (conversation_id, number);
    create virtual table words using fts5(said, called, returned, tags, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');
    insert into words (words, rank) values ('automerge', 8);
    insert into words (words, rank) values ('hashsize', 8388608);
    `,
  ],
]

export function openIndex(path: string): SearchIndex {
  let db = openOrRebuild(path)
  const guard = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw explained(error, path)
    }
  }
  return {
    follow: async (store, options) => {
      try {
        const followed = await followFeed(db, store, options)
        if (followed !== "rebuild") return followed
        db.close()
        db = await rebuildBeside(path, store, options)
        return { indexed: 0, complete: true }
      } catch (error) {
        throw explained(error, path)
      }
    },
    isBehind: async (store) => {
      const { changes, rebuild } = await store.changes(tokenOf(db), 1)
      return rebuild || changes.length > 0
    },
    find: (query) => guard(() => find(db, query)),
    purge: () =>
      guard(() => {
        db.exec("insert into words (words) values ('optimize')")
        db.pragma("wal_checkpoint(truncate)")
        db.exec("vacuum")
        db.pragma("wal_checkpoint(truncate)")
      }),
    check: () => guard(() => check(db)),
    checkpoint: () => guard(() => void db.pragma("wal_checkpoint(truncate)")),
    close: () => db.close(),
  }
}

/** A damaged or newer index is no loss: it is made again. */
function openOrRebuild(path: string): Db {
  try {
    return openDatabase(path, MIGRATIONS)
  } catch (error) {
    if (!isDexError(error) || !["corrupt", "newer_schema"].includes(error.code)) throw error
    removeDatabase(path)
    return openDatabase(path, MIGRATIONS)
  }
}

async function rebuildBeside(path: string, store: Store, options: FollowOptions | undefined): Promise<Db> {
  const building = `${path}.building`
  removeDatabase(building)
  const db = openDatabase(building, MIGRATIONS)
  await followFeed(db, store, options?.onProgress ? { onProgress: options.onProgress } : {})
  db.pragma("journal_mode = delete")
  db.close()
  removeDatabase(path)
  renameSync(building, path)
  return openDatabase(path, MIGRATIONS)
}

export function removeDatabase(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true })
}

async function followFeed(
  db: Db,
  store: Store,
  options: FollowOptions = {},
): Promise<{ indexed: number; complete: boolean } | "rebuild"> {
  let indexed = 0
  for (;;) {
    const feed = await store.changes(tokenOf(db), BATCH)
    if (feed.rebuild) return "rebuild"
    if (feed.changes.length > 0) {
      const loaded: Loaded[] = []
      for (const change of feed.changes) loaded.push(await load(db, store, change, options))
      inTransaction(db, () => {
        // FTS5 writes out what it holds in memory whenever another statement could fail, so its rows go in together.
        const docs = loaded.flatMap((conversation) => indexConversation(db, conversation))
        saveToken(db, feed.token)
        saveWords(db, docs)
      })
      indexed += feed.changes.length
      options.onProgress?.(indexed)
    } else saveTokenIfNew(db, feed.token)
    if (!feed.more) return { indexed, complete: true }
    if (options.deadline !== undefined && Date.now() > options.deadline) return { indexed, complete: false }
  }
}

function tokenOf(db: Db): string | undefined {
  return db.prepare("select value from meta where key = 'token'").pluck().get() as string | undefined
}

function saveToken(db: Db, token: string): void {
  db.prepare("insert or replace into meta (key, value) values ('token', ?)").run(token)
}

function saveTokenIfNew(db: Db, token: string): void {
  if (tokenOf(db) !== token) inTransaction(db, () => saveToken(db, token))
}

type Known = { id: number; tags: string; title: string | null; docs: Map<number, { id: number; version: number }> }
type Loaded = {
  change: Change
  known: Known | undefined
  row?: ConversationRow
  gone: number[]
  fresh: StoredMessage[]
  versions: Map<number, number>
}

/** What of a changed conversation the index has not seen: only those messages are read. */
async function load(db: Db, store: Store, change: Change, { recent }: FollowOptions): Promise<Loaded> {
  const known = knownConversation(db, change.conversation)
  const row = change.ref && (await store.conversation(change.ref))
  if (!row) return { change, known, gone: [...(known?.docs.keys() ?? [])], fresh: [], versions: new Map() }
  const versions = new Map(
    (await store.versions(row.ref))
      .filter((message) => !message.copied)
      .map(({ number, version }) => [number, version]),
  )
  const isNew = known === undefined || known.tags !== tagsOf(row, knownProject(db, row.project))
  const fresh = isNew
    ? [...versions.keys()]
    : [...versions].filter(([number, version]) => known.docs.get(number)?.version !== version).map(([number]) => number)
  const gone = [...(known?.docs.keys() ?? [])].filter((number) =>
    number === 0 ? titleOf(row) === null : !versions.has(number),
  )
  const written = recent?.(row.ref)
  const given = fresh.map((number) => written?.get(number))
  const messages = given.includes(undefined) ? await store.messages(row.ref, fresh) : (given as StoredMessage[])
  return { change, known, row, gone, fresh: messages, versions }
}

function knownConversation(db: Db, name: string): Known | undefined {
  const row = db.prepare("select id, tags, title from conversation where name = ?").get(name) as
    | Omit<Known, "docs">
    | undefined
  if (!row) return undefined
  const docs = db.prepare("select id, number, version from doc where conversation_id = ?").all(row.id) as {
    id: number
    number: number
    version: number
  }[]
  return { ...row, docs: new Map(docs.map((doc) => [doc.number, doc])) }
}

type Doc = { id: number | bigint; fields?: Fields; tags?: string }

/** Writes the rows of one conversation, and returns the documents whose words are to be added or (without fields) removed. */
function indexConversation(db: Db, { change, known, row, gone, fresh, versions }: Loaded): Doc[] {
  const docs: Doc[] = []
  const remove = (number: number) => {
    const old = known?.docs.get(number)
    if (!old) return
    db.prepare("delete from doc where id = ?").run(old.id)
    docs.push({ id: old.id })
  }
  for (const number of gone) remove(number)
  if (!row) {
    if (known) db.prepare("delete from conversation where id = ?").run(known.id)
    return docs
  }
  const tags = tagsOf(row, row.project === undefined ? undefined : projectId(db, row.project))
  const title = titleOf(row)
  const id = saveConversation(db, change.conversation, row.ref, tags, title)
  const put = (number: number, at: number | undefined, version: number, fields: Fields) => {
    remove(number)
    const sql = "insert into doc (conversation_id, number, at, version) values (?, ?, ?, ?)"
    docs.push({
      id: db.prepare(sql).run(id, number, at ?? row.ended_at ?? null, version).lastInsertRowid,
      fields,
      tags,
    })
  }
  if (title !== null && (known?.title !== title || known.tags !== tags))
    put(0, row.ended_at, 0, { said: title, called: "", returned: "" })
  for (const message of fresh) put(message.number, message.at, versions.get(message.number)!, fieldsOf(message))
  return docs
}

function saveWords(db: Db, docs: Doc[]): void {
  const remove = db.prepare("delete from words where rowid = ?")
  const add = db.prepare("insert into words (rowid, said, called, returned, tags) values (?, ?, ?, ?, ?)")
  for (const { id, fields } of docs) if (!fields) remove.run(id)
  for (const { id, fields, tags } of docs) if (fields) add.run(id, fields.said, fields.called, fields.returned, tags)
}

/** A title that repeats the first prompt is found in the prompt itself. */
function titleOf(row: ConversationRow): string | null {
  return row.title && row.title.from !== "first_prompt" ? row.title.text : null
}

function saveConversation(db: Db, name: string, ref: Ref, tags: string, title: string | null): number {
  db.prepare("delete from conversation where source = ? and native_id = ? and name <> ?").run(ref.source, ref.id, name)
  return db
    .prepare(
      `insert into conversation (name, source, native_id, tags, title) values (?, ?, ?, ?, ?)
       on conflict (name) do update set source = excluded.source, native_id = excluded.native_id, tags = excluded.tags, title = excluded.title returning id`,
    )
    .pluck()
    .get(name, ref.source, ref.id, tags, title) as number
}

function knownProject(db: Db, path: string | undefined): number | undefined {
  return path === undefined
    ? undefined
    : (db.prepare("select id from project where path = ?").pluck().get(path) as number | undefined)
}

function projectId(db: Db, path: string): number {
  return (
    knownProject(db, path) ??
    (db.prepare("insert into project (path) values (?) returning id").pluck().get(path) as number)
  )
}

function find(db: Db, query: IndexQuery): { hits: IndexHit[]; total: number; total_is_at_least: boolean } {
  const conversations = query.conversations && conversationIds(db, query.conversations)
  const match = matchExpression(db, query)
  if (match === undefined || conversations?.length === 0) return { hits: [], total: 0, total_is_at_least: false }
  const bounded = query.from !== undefined || query.to !== undefined || conversations !== undefined
  const values = { match, limit: query.limit, most: COUNT_LIMIT + 1 }
  const limits = {
    from: query.from ?? null,
    to: query.to ?? null,
    conversations: conversations ? JSON.stringify(conversations) : null,
  }
  const rows = (
    bounded ? db.prepare(FIND_BOUNDED).all({ ...values, ...limits }) : db.prepare(FIND).all(values)
  ) as HitRow[]
  const total = (
    bounded
      ? db
          .prepare(COUNT_BOUNDED)
          .pluck()
          .get({ match, most: values.most, ...limits })
      : db.prepare(COUNT).pluck().get({ match, most: values.most })
  ) as number
  return { hits: rows.map(toHit), total: Math.min(total, COUNT_LIMIT), total_is_at_least: total > COUNT_LIMIT }
}

type HitRow = { source: SourceId; native_id: string; number: number; at: number | null; score: number }

// A filter by time or conversation is checked row by row; the others are words of the index itself, which is faster.
const FIND = `select c.source, c.native_id, d.number, d.at, f.score from
    (select rowid, bm25(words, ${WEIGHTS}) as score from words where words match @match order by score limit @limit) f
  join doc d on d.id = f.rowid join conversation c on c.id = d.conversation_id
  order by f.score, d.at desc, c.native_id, d.number`
const BOUNDS = `(@from is null or d.at >= @from) and (@to is null or d.at <= @to)
  and (@conversations is null or d.conversation_id in (select value from json_each(@conversations)))`
const FIND_BOUNDED = `select c.source, c.native_id, d.number, d.at, bm25(words, ${WEIGHTS}) as score
  from words join doc d on d.id = words.rowid join conversation c on c.id = d.conversation_id
  where words match @match and ${BOUNDS} order by score, d.at desc, c.native_id, d.number limit @limit`
const COUNT = "select count(*) from (select 1 from words where words match @match limit @most)"
const COUNT_BOUNDED = `select count(*) from (select 1 from words join doc d on d.id = words.rowid where words match @match and ${BOUNDS} limit @most)`

function toHit(row: HitRow): IndexHit {
  return {
    ref: { source: row.source, id: row.native_id },
    number: row.number,
    score: row.score,
    ...(row.at !== null && { at: row.at }),
  }
}

function conversationIds(db: Db, refs: Ref[]): number[] {
  const id = db.prepare("select id from conversation where source = ? and native_id = ?").pluck()
  return refs.flatMap((ref) => (id.get(ref.source, ref.id) as number | undefined) ?? [])
}

/** Undefined when a filter can match nothing. */
function matchExpression(db: Db, query: IndexQuery): string | undefined {
  const clauses = [`{said called returned} : (${query.match})`]
  const tag = (names: string[]) => `tags : (${names.map((name) => `"${name}"`).join(" OR ")})`
  if (query.sources) clauses.push(tag(query.sources.map((source) => sourceTag(source))))
  if (query.kinds) clauses.push(tag(query.kinds.map((kind) => kindTag(kind))))
  if (query.projects) {
    const ids = projectIds(db, query.projects)
    if (ids.length === 0) return undefined
    clauses.push(tag(ids.map(projectTag)))
  }
  const hidden = projectIds(db, query.excludedProjects ?? [])
  const all = clauses.join(" AND ")
  return hidden.length > 0 ? `(${all}) NOT ${tag(hidden.map(projectTag))}` : all
}

function projectIds(db: Db, paths: string[]): number[] {
  const id = db.prepare("select id from project where path = ?").pluck()
  return paths.flatMap((path) => (id.get(path) as number | undefined) ?? [])
}

function check(db: Db): string[] {
  const found = (db.prepare("pragma integrity_check(20)").pluck().all() as string[]).filter((line) => line !== "ok")
  try {
    db.exec("insert into words (words) values ('integrity-check')")
  } catch (error) {
    found.push(`full text: ${(error as Error).message}`)
  }
  const docs = db.prepare("select count(*) from doc").pluck().get() as number
  const rows = db.prepare("select count(*) from words_docsize").pluck().get() as number
  if (docs !== rows) found.push(`${docs} messages are listed but ${rows} are indexed`)
  return found
}
