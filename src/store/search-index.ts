import { existsSync, renameSync, rmSync } from "node:fs"
import type { Kind, Role, SourceId } from "../core/conversation.ts"
import { isDexError } from "../core/error.ts"
import type { Ref } from "../core/ref.ts"
import { type Db, explained, inTransaction, openDatabase } from "./database.ts"
import {
  COLUMNS,
  type Column,
  cardOf,
  type Fields,
  fieldsOf,
  kindTag,
  messageTags,
  projectTag,
  roleTag,
  sourceTag,
  tagsOf,
  toolTag,
} from "./index-fields.ts"
import type { Change, ConversationRow, Store, StoredMessage } from "./store.ts"
import type { PreparedFilter, VectorFilter, VectorIndex } from "./vector-index.ts"
import { checkVectors, VECTOR_SCHEMA } from "./vectors.ts"

/**
 * The full-text index: derived from the history, safe to delete, comes back by itself. It holds no text (contentless),
 * only which words stand in which message.
 */
export type SearchIndex = {
  /** Reads what changed in the history since last time, until it is done or the time is up. */
  follow(store: Store, options?: FollowOptions): Promise<{ indexed: number; complete: boolean }>
  /** True when the history has changed since the index last followed it. */
  isBehind(store: Store): Promise<boolean>
  find(query: IndexQuery): IndexHit[]
  /** Which of these documents hold the expression. */
  holding(expression: string, docs: number[]): Set<number>
  /** How many messages match, counted to a limit. */
  count(query: IndexFilter): { total: number; total_is_at_least: boolean }
  /** How many messages there are, and which share of a sample of the newest holds each expression. */
  sizes(expressions: string[]): { messages: number; sample: number; shares: number[] }
  /** What search by meaning needs; loaded when it is asked for. */
  vectors(): Promise<VectorIndex>
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

/** What is looked for: FTS5 expressions over words and phrases, every one of them quoted. */
export type IndexQuery = {
  match: string
  /** How much a word counts by who wrote it. */
  weights: Record<Column, number>
  /** Every one of these must be there too, without counting for the score. */
  required?: string[]
  excluded?: string[]
  sources?: SourceId[]
  projects?: string[]
  excludedProjects?: string[]
  kinds?: Kind[]
  roles?: Role[]
  tools?: string[]
  from?: number
  to?: number
  conversations?: Ref[]
  excludedConversations?: Ref[]
  /** Only about so many of the newest messages. */
  newest?: number
  limit: number
}

/** Which messages, without their order. */
export type IndexFilter = Omit<IndexQuery, "limit" | "weights">

/** A number of 0 is the conversation's card: its title, branch and the files it changed. Greater scores are better. */
export type IndexHit = { doc: number; ref: Ref; number: number; at?: number; score: number }

/** A total is counted to here; beyond it is said to be a lower bound. */
const COUNT_LIMIT = 10_000
const BATCH = 64
const CARD = 0
/** More files than this tell nothing more of what a conversation was about. */
const CARD_FILES = 40
const COLUMN_NAMES = COLUMNS.join(", ")
const COLUMN_VALUES = COLUMNS.map((name) => `@${name}`).join(", ")
const RELEVANCE = `bm25(words, ${COLUMN_VALUES}, 0.0)`

/** The first document's number. What is found later and is newer goes below it: a smaller number is about newer. */
const FIRST_ID = 100_000_000

const MIGRATIONS: readonly [string, string][] = [
  [
    "001-index",
    `
    create table meta (key text primary key, value text not null) without rowid;
    create table conversation (id integer primary key, name text not null unique, source text not null, native_id text not null, tags text not null, card text);
    create unique index conversation_ref on conversation (source, native_id);
    create table project (id integer primary key, path text not null unique);
    create table doc (id integer primary key, conversation_id integer not null, number integer not null, at integer, version integer not null);
    create index doc_conversation on doc (conversation_id, number);
    create virtual table words using fts5(${COLUMN_NAMES}, tags, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');
    insert into words (words, rank) values ('automerge', 8);
    insert into words (words, rank) values ('hashsize', 8388608);
    `,
  ],
  ["002-vectors", VECTOR_SCHEMA],
]

export function openIndex(path: string): SearchIndex {
  let db = openOrRebuild(path)
  let vectors: VectorIndex | undefined
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
    holding: (expression, docs) => guard(() => holding(db, expression, docs)),
    count: (query) => guard(() => count(db, query)),
    sizes: (expressions) => guard(() => sizes(db, expressions)),
    vectors: async () => {
      const { openVectors } = await import("./vector-index.ts")
      vectors ??= openVectors(
        () => db,
        (filter) => prepareFilter(db, filter),
      )
      return vectors
    },
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

/** Builds the index anew beside the one that is there, which nobody may write to meanwhile, and puts it in its place. */
export async function rebuildIndex(
  path: string,
  store: Store,
  options: Pick<FollowOptions, "onProgress"> = {},
): Promise<void> {
  try {
    ;(await rebuildBeside(path, store, options)).close()
  } catch (error) {
    throw explained(error, path)
  }
}

async function rebuildBeside(path: string, store: Store, options: FollowOptions | undefined): Promise<Db> {
  const building = `${path}.building`
  removeDatabase(building)
  const db = openDatabase(building, MIGRATIONS)
  await followFeed(db, store, options?.onProgress ? { onProgress: options.onProgress } : {})
  if (existsSync(path)) (await import("./vectors.ts")).carryVectors(db, path)
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
      const { deleteVectors } = await import("./vectors.ts")
      const loaded: Loaded[] = []
      for (const change of feed.changes) loaded.push(await load(db, store, change, options))
      inTransaction(db, () => {
        // FTS5 writes out what it holds in memory whenever another statement could fail, so its rows go in together.
        const docs = loaded.flatMap((conversation) => indexConversation(db, conversation))
        saveToken(db, feed.token)
        // A document's number may be given again, so nothing of it may stay.
        deleteVectors(
          db,
          docs.filter((doc) => !doc.fields).map((doc) => doc.id),
        )
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

type Known = { id: number; tags: string; card: string | null; docs: Map<number, { id: number; version: number }> }
type Loaded = {
  change: Change
  known: Known | undefined
  row?: ConversationRow
  card?: Fields
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
  const card = cardOf(row, await store.editedFiles(row.ref, CARD_FILES))
  const gone = [...(known?.docs.keys() ?? [])].filter((number) =>
    number === CARD ? card === undefined : !versions.has(number),
  )
  const written = recent?.(row.ref)
  const given = fresh.map((number) => written?.get(number))
  const messages = given.includes(undefined) ? await store.messages(row.ref, fresh) : (given as StoredMessage[])
  return { change, known, row, gone, fresh: messages, versions, ...(card && { card }) }
}

function knownConversation(db: Db, name: string): Known | undefined {
  const row = db.prepare("select id, tags, card from conversation where name = ?").get(name) as
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

type Doc = { id: number; fields?: Fields; tags?: string }

/** Writes the rows of one conversation, and returns the documents whose words are to be added or (without fields) removed. */
function indexConversation(db: Db, { change, known, row, card, gone, fresh, versions }: Loaded): Doc[] {
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
  const cardText = card === undefined ? null : `${card.said}\n${card.called}`
  const id = saveConversation(db, change.conversation, row.ref, tags, cardText)
  const hasNewCard = card !== undefined && (known?.card !== cardText || known.tags !== tags)
  let next = firstId(db, row.ended_at, fresh.length + (hasNewCard ? 1 : 0))
  const put = (number: number, at: number | undefined, version: number, fields: Fields, ownTags: string) => {
    remove(number)
    const doc = next++
    const sql = "insert into doc (id, conversation_id, number, at, version) values (?, ?, ?, ?, ?)"
    db.prepare(sql).run(doc, id, number, at ?? row.ended_at ?? null, version)
    docs.push({ id: doc, fields, tags: `${tags} ${ownTags}` })
  }
  if (hasNewCard) put(CARD, row.ended_at, 0, card, "")
  for (const message of fresh)
    put(message.number, message.at, versions.get(message.number)!, fieldsOf(message), messageTags(message))
  return docs
}

/**
 * A block of numbers for a conversation's documents: above all others for what is older than all that was read so far,
 * below them for what is newer. A first sync reads the newest first, so it only ever appends.
 */
function firstId(db: Db, endedAt: number | undefined, wanted: number): number {
  const oldest = db.prepare("select id, at from doc order by id desc limit 1").get() as
    | { id: number; at: number | null }
    | undefined
  if (!oldest) return FIRST_ID
  if (endedAt !== undefined && oldest.at !== null && endedAt <= oldest.at) return oldest.id + 1
  return (db.prepare("select min(id) from doc").pluck().get() as number) - wanted
}

function saveWords(db: Db, docs: Doc[]): void {
  const remove = db.prepare("delete from words where rowid = ?")
  const add = db.prepare(INSERT_WORDS)
  for (const { id, fields } of docs) if (!fields) remove.run(id)
  // In the order of their numbers: FTS5 writes out what it holds whenever a number is smaller than the one before.
  const added = docs.filter((doc) => doc.fields !== undefined).sort((a, b) => a.id - b.id)
  for (const { id, fields, tags } of added) add.run({ ...fields, id, tags })
}

const INSERT_WORDS = `insert into words (rowid, ${COLUMN_NAMES}, tags) values (@id, ${COLUMN_VALUES}, @tags)`

function saveConversation(db: Db, name: string, ref: Ref, tags: string, card: string | null): number {
  db.prepare("delete from conversation where source = ? and native_id = ? and name <> ?").run(ref.source, ref.id, name)
  return db
    .prepare(
      `insert into conversation (name, source, native_id, tags, card) values (?, ?, ?, ?, ?)
       on conflict (name) do update set source = excluded.source, native_id = excluded.native_id, tags = excluded.tags, card = excluded.card returning id`,
    )
    .pluck()
    .get(name, ref.source, ref.id, tags, card) as number
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

function find(db: Db, query: IndexQuery): IndexHit[] {
  const prepared = prepare(db, query)
  if (!prepared) return []
  const { match, bounded, values } = prepared
  const rows = bounded
    ? db.prepare(FIND_BOUNDED).all({ match, limit: query.limit, ...query.weights, ...values })
    : db.prepare(FIND).all({ match, limit: query.limit, highest: values.highest, ...query.weights })
  return (rows as HitRow[]).map(toHit)
}

/** Below this distance, reading all between the first and the last is faster than asking for each. */
const NEAR = 100_000

function holding(db: Db, expression: string, docs: number[]): Set<number> {
  if (docs.length === 0) return new Set()
  const match = `{${COLUMNS.join(" ")}} : ${expression}`
  const [first, last] = [Math.min(...docs), Math.max(...docs)]
  const rows =
    last - first <= NEAR
      ? db.prepare(HOLDING_BETWEEN).pluck().all({ match, first, last })
      : db
          .prepare(HOLDING_EACH)
          .pluck()
          .all({ match, docs: JSON.stringify(docs) })
  return new Set(rows as number[])
}

const HOLDING_BETWEEN =
  "select rowid from words where words match @match and rowid between cast(@first as integer) and cast(@last as integer)"
const HOLDING_EACH =
  "select words.rowid from json_each(@docs) d cross join words on words.rowid = cast(d.value as integer) where words match @match"

function count(db: Db, query: IndexFilter): { total: number; total_is_at_least: boolean } {
  const prepared = prepare(db, query)
  if (!prepared) return { total: 0, total_is_at_least: false }
  const { match, bounded, values } = prepared
  const most = COUNT_LIMIT + 1
  const found = (
    bounded
      ? db
          .prepare(COUNT_BOUNDED)
          .pluck()
          .get({ match, most, ...values })
      : db.prepare(COUNT).pluck().get({ match, most, highest: values.highest })
  ) as number
  return { total: Math.min(found, COUNT_LIMIT), total_is_at_least: found > COUNT_LIMIT }
}

/** Undefined when a filter can match nothing. */
function prepare(db: Db, query: IndexFilter) {
  const match = matchExpression(db, query)
  const bounds = boundsOf(db, query)
  if (match === undefined || bounds.conversations === NONE) return undefined
  const highest = query.newest === undefined ? Number.MAX_SAFE_INTEGER : oldestOfNewest(db, query.newest)
  const bounded = query.newest !== undefined || Object.values(bounds).some((value) => value !== null)
  return { match, bounded, values: { ...bounds, highest } }
}

const NONE = "[]"

/** What is checked row by row; null where nothing was asked for. */
function boundsOf(db: Db, query: VectorFilter): PreparedFilter["values"] {
  const conversations = query.conversations && conversationIds(db, query.conversations)
  const excluded = conversationIds(db, query.excludedConversations ?? [])
  return {
    from: query.from ?? null,
    to: query.to ?? null,
    conversations: conversations ? JSON.stringify(conversations) : null,
    excluded: excluded.length > 0 ? JSON.stringify(excluded) : null,
  }
}

function oldestOfNewest(db: Db, newest: number): number {
  return ((db.prepare("select min(id) from doc").pluck().get() as number | null) ?? 0) + newest - 1
}

type HitRow = { doc: number; source: SourceId; native_id: string; number: number; at: number | null; score: number }

// A number is bound as a real, which FTS5 does not take as a bound of its scan: hence the casts.
// A filter by time or conversation is checked row by row; the others are words of the index itself, which is faster.
const FIND = `select d.id as doc, c.source, c.native_id, d.number, d.at, f.score from
    (select rowid, -${RELEVANCE} as score from words where words match @match and rowid <= cast(@highest as integer) order by score desc limit @limit) f
  join doc d on d.id = f.rowid join conversation c on c.id = d.conversation_id
  order by f.score desc, d.at desc, c.native_id, d.number`
const BOUNDS = `words.rowid <= cast(@highest as integer) and (@from is null or d.at >= @from) and (@to is null or d.at <= @to)
  and (@conversations is null or d.conversation_id in (select value from json_each(@conversations)))
  and (@excluded is null or d.conversation_id not in (select value from json_each(@excluded)))`
const FIND_BOUNDED = `select d.id as doc, c.source, c.native_id, d.number, d.at, -${RELEVANCE} as score
  from words join doc d on d.id = words.rowid join conversation c on c.id = d.conversation_id
  where words match @match and ${BOUNDS} order by score desc, d.at desc, c.native_id, d.number limit @limit`
const COUNT =
  "select count(*) from (select 1 from words where words match @match and rowid <= cast(@highest as integer) limit @most)"
const COUNT_BOUNDED = `select count(*) from (select 1 from words join doc d on d.id = words.rowid where words match @match and ${BOUNDS} limit @most)`

/** How many of the newest messages stand for all of them. */
const SAMPLE = 20_000

function sizes(db: Db, expressions: string[]): ReturnType<SearchIndex["sizes"]> {
  const messages =
    (db.prepare("select (select max(id) from doc) - (select min(id) from doc) + 1").pluck().get() as number | null) ?? 0
  const sample = Math.min(messages, SAMPLE)
  const highest = oldestOfNewest(db, sample)
  const held = db.prepare("select count(*) from words where words match ? and rowid <= cast(? as integer)").pluck()
  return {
    messages,
    sample,
    shares: expressions.map((match) => (held.get(match, highest) as number) / Math.max(1, sample)),
  }
}

function toHit(row: HitRow): IndexHit {
  return {
    doc: row.doc,
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
function matchExpression(db: Db, query: IndexFilter): string | undefined {
  const clauses = clausesOf(db, query)
  if (!clauses) return undefined
  return without([`${TEXT} : (${query.match})`, ...clauses.must], clauses.not)
}

function without(must: string[], not: string[]): string {
  const all = must.join(" AND ")
  return not.length > 0 ? `(${all}) NOT (${not.join(" OR ")})` : all
}

const TEXT = `{${COLUMNS.join(" ")}}`

/** A filter's conditions as FTS5 expressions. Undefined when it can match nothing. */
function clausesOf(db: Db, query: VectorFilter): { must: string[]; not: string[] } | undefined {
  const must = (query.required ?? []).map((phrase) => `${TEXT} : ${phrase}`)
  const tag = (names: string[]) => `tags : (${names.map((name) => `"${name}"`).join(" OR ")})`
  if (query.sources) must.push(tag(query.sources.map(sourceTag)))
  if (query.kinds) must.push(tag(query.kinds.map(kindTag)))
  if (query.roles) must.push(tag(query.roles.map(roleTag)))
  if (query.tools) must.push(tag(query.tools.map(toolTag)))
  if (query.projects) {
    const ids = projectIds(db, query.projects)
    if (ids.length === 0) return undefined
    must.push(tag(ids.map(projectTag)))
  }
  const not = (query.excluded ?? []).map((phrase) => `${TEXT} : ${phrase}`)
  const hidden = projectIds(db, query.excludedProjects ?? [])
  if (hidden.length > 0) not.push(tag(hidden.map(projectTag)))
  return { must, not }
}

/** Undefined when the filter can match nothing. */
function prepareFilter(db: Db, filter: VectorFilter): PreparedFilter | undefined {
  const clauses = clausesOf(db, filter)
  const values = boundsOf(db, filter)
  if (!clauses || values.conversations === NONE) return undefined
  const { must, not } = clauses
  return {
    ...(must.length > 0 && { match: without(must, not) }),
    ...(must.length === 0 && not.length > 0 && { not: not.join(" OR ") }),
    values,
  }
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
  return [...found, ...checkVectors(db)]
}
