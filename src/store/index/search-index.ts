import { existsSync } from "node:fs"
import { DexError, isDexError, messageOf } from "../../core/error.ts"
import { type Ref, sourceWithOwner } from "../../core/ref.ts"
import type { Change, ConversationRow, HistoryReader, StoredMessage } from "../history/store.ts"
import {
  copyTo,
  type Db,
  emptyLog,
  explained,
  inOneState,
  inTransaction,
  isBusy,
  isMarkedDamaged,
  openDatabase,
  openToRead,
  removeDatabase,
} from "../sqlite/database.ts"
import { codeOf } from "../sqlite/engine.ts"
import { olderIndex } from "../sqlite/older-files.ts"
import { replaceDatabase } from "../sqlite/replace-database.ts"
import { BLOCK_SCHEMA, badBlocks, distrustSums, indexDamage, sumBlocks, watchBlocks } from "./blocks.ts"
import type { DocId } from "./doc-id.ts"
import {
  CARD,
  CARD_TAG,
  COLUMN_NAMES,
  COLUMN_VALUES,
  cardOf,
  fieldsOf,
  type IndexedText,
  messageTags,
  tagsOf,
} from "./fields.ts"
import { type NewestHit, type NewestQuery, newest } from "./newest.ts"
import {
  type Count,
  countMatches,
  find,
  holding,
  type IndexFilter,
  type IndexHit,
  type IndexQuery,
  prepareFilter,
  type Sizes,
  sizes,
} from "./query.ts"
import type { Term } from "./terms.ts"
import { badRows, keepSizesTwice, TWIN_SCHEMA } from "./twins.ts"
import type { VectorIndex } from "./vector-index.ts"
import { checkVectors, VECTOR_SCHEMA } from "./vectors.ts"
import {
  forgetSaved,
  markStale,
  type ReadText,
  readStale,
  readUnread,
  saveVocabulary,
  VOCABULARY_SCHEMA,
  type WrittenWord,
  wordsBeginning,
  wordsOfLength,
} from "./vocabulary.ts"

/**
 * The full-text index: derived from the history, safe to delete, comes back by itself. It holds no text (contentless),
 * only which words stand in which message.
 */
export type SearchIndex = {
  /** Reads what changed in the history since last time, until it is done or the time is up. */
  follow(store: HistoryReader, options?: FollowOptions): Promise<{ indexed: number; complete: boolean }>
  /** True when the history has changed since the index last followed it. */
  isBehind(store: HistoryReader): Promise<boolean>
  find(query: IndexQuery): Promise<IndexHit[]>
  /** Conversations in which all of it stands, the newest first, unranked. */
  newest(query: NewestQuery): Promise<NewestHit[]>
  /** Which of these documents hold the term. */
  holding(term: Term, docs: DocId[]): Promise<Set<DocId>>
  /** How many messages match, counted to a limit. */
  count(query: IndexFilter): Promise<Count>
  /** How many messages there are, and which share of a sample of the newest holds each term. */
  sizes(terms: Term[]): Promise<Sizes>
  /** The words as they are written that begin so, the commonest first. */
  words(beginning: string, limit?: number): Promise<WrittenWord[]>
  wordsOfLength(least: number, most: number): Promise<WrittenWord[]>
  /** What search by meaning needs; loaded when it is asked for. */
  vectors(): Promise<VectorIndex>
  /**
   * Rewrites the index without what was deleted, so that not even single words of it stay on disk. `messagesChanged`: nor of
   * messages that are there with another text.
   */
  purge(store: HistoryReader, options?: { messagesChanged: boolean }): Promise<void>
  /** True where something was forgotten since: whoever forgot it was stopped. */
  isPurgeDue(store: HistoryReader): Promise<boolean>
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

const BATCH = 64
/** More files than this tell nothing more of what a conversation was about. */
const CARD_FILES = 40

/** The first document's number. What is found later and is newer goes below it: a smaller number is about newer. */
const FIRST_ID = 100_000_000

/** As many as INDEX_FORMAT says. */
export const MIGRATIONS: readonly [string, string][] = [
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
  ["003-block-sums", BLOCK_SCHEMA],
  ["004-twins", TWIN_SCHEMA],
  ["005-words-as-written", VOCABULARY_SCHEMA],
]
/** What version 0.1.0 has. */
const OLDEST_FORMAT = 2

/** To write: made where there is none, and made again, when it next follows, where it is damaged. */
export function openIndex(path: string): SearchIndex {
  if (!existsSync(path)) adoptOlder(path)
  let db = isMarkedDamaged(path) ? undefined : openIfWhole(path)
  const rebuilt = async (store: HistoryReader, options?: FollowOptions) => {
    db?.close()
    db = undefined
    db = await rebuildBeside(path, store, options)
    return { indexed: 1, complete: true }
  }
  const index = indexOver(path, () => db ?? unusable(path))
  return {
    ...index,
    follow: async (store, options) => {
      try {
        if (!db) return await rebuilt(store, options)
        const followed = await followFeed(db, store, options).catch((error: unknown) => {
          if (db) forgetSaved(db)
          if (isDamage(error)) return "rebuild" as const
          throw error
        })
        return followed === "rebuild" ? await rebuilt(store, options) : followed
      } catch (error) {
        throw explained(error, path)
      }
    },
    isBehind: async (store) => db === undefined || index.isBehind(store),
    check: () => (db ? index.check() : ["it cannot be opened"]),
    close: () => db?.close(),
  }
}

/** To ask. `none` too while it has followed nothing yet: an empty index knows of no message, and the history of all. */
export function readIndex(path: string): SearchIndex | "none" | "damaged" {
  if (!existsSync(path)) return readOlder(path) ?? "none"
  const db = isMarkedDamaged(path) ? undefined : openIfWhole(path)
  if (!db) return "damaged"
  try {
    if (tokenOf(db) !== undefined) return indexOver(path, () => db)
    db.close()
    return readOlder(path) ?? "none"
  } catch {
    db.close()
    return "damaged"
  }
}

/** Undefined where the file is damaged, or no index of ours. */
function openIfWhole(path: string): Db | undefined {
  try {
    return openDatabase(path, MIGRATIONS)
  } catch (error) {
    if (isDamage(error) || (isDexError(error) && ["corrupt", "newer_schema"].includes(error.code))) return undefined
    throw error
  }
}

/** What SQLite itself cannot do with an index, or a check found. The history's own damage has another code. */
function isDamage(error: unknown): boolean {
  return (
    (isDexError(error) && error.code === "index_damaged") ||
    /^SQLITE_(CORRUPT|NOTADB|ERROR|CONSTRAINT|MISMATCH)/.test(codeOf(error))
  )
}

function unusable(path: string): never {
  throw indexDamage(`${path} cannot be read`)
}

/** What an older version built is as good, without some checksums and words: taken over, so that nobody waits for another. The old file stays. */
function adoptOlder(path: string): void {
  const old = openOlder(path)
  if (old) copyTo(old, path)
  old?.close()
}

function readOlder(path: string): SearchIndex | undefined {
  const old = openOlder(path)
  return old && indexOver(path, () => old)
}

const OLDER_BUSY_MS = 2_000

/** The newest of them. */
function openOlder(path: string): Db | undefined {
  for (let format = MIGRATIONS.length - 1; format >= OLDEST_FORMAT; format--) {
    const older = olderIndex(path, format)
    const db = older === path ? undefined : openIfReadable(older, format)
    if (db) return db
  }
  return undefined
}

function openIfReadable(path: string, format: number): Db | undefined {
  try {
    return openToRead(path, MIGRATIONS.slice(0, format), OLDER_BUSY_MS)
  } catch {
    return undefined // damaged
  }
}

/** What can be asked of an index. */
function indexOver(path: string, current: () => Db): SearchIndex {
  let vectors: VectorIndex | undefined
  const guard = <T>(work: (db: Db) => T): T => {
    try {
      return work(current())
    } catch (error) {
      throw isDamage(error) && !isDexError(error) ? indexDamage(messageOf(error)) : explained(error, path)
    }
  }
  /** Blocks of one state and checksums of another would look like damage. */
  const readInOneState = <T>(work: (db: Db) => T) => guard((db) => inOneState(db, () => work(db)))
  const isBehind = async (store: HistoryReader) => {
    const { changes, rebuild } = await store.changes(guard(tokenOf), 1)
    return rebuild || changes.length > 0
  }
  return {
    follow: () => {
      throw new Error("This index was opened to be asked only")
    },
    isBehind,
    find: async (query) => readInOneState((db) => find(db, query)),
    newest: async (query) => readInOneState((db) => newest(db, query)),
    holding: async (term, docs) => readInOneState((db) => holding(db, term, docs)),
    count: async (query) => readInOneState((db) => countMatches(db, query)),
    sizes: async (terms) => readInOneState((db) => sizes(db, terms)),
    words: async (beginning, limit) => readInOneState((db) => wordsBeginning(db, beginning, limit)),
    wordsOfLength: async (least, most) => readInOneState((db) => wordsOfLength(db, least, most)),
    vectors: async () => {
      const { openVectors } = await import("./vector-index.ts")
      vectors ??= openVectors(current, (filter) => prepareFilter(current(), filter))
      return vectors
    },
    purge: async (store, options) => {
      const forgotten = await store.forgotten()
      const behind = await isBehind(store)
      await readStale(current(), store, options?.messagesChanged)
      guard((db) => {
        watchBlocks(db)
        distrustSums(db)
        db.exec("insert into words (words) values ('optimize')")
        emptyLog(db)
        db.exec("vacuum")
        sumBlocks(db)
        // Where somebody still reads the old pages, it is due again.
        const isDone = emptyLog(db)
        if (isDone && !behind) inTransaction(db, () => savePurged(db, forgotten))
      })
    },
    isPurgeDue: async (store) => (await store.forgotten()) !== purgedOf(current()),
    check: () => readInOneState(check),
    checkpoint: () =>
      guard((db) => {
        sumBlocks(db)
        emptyLog(db)
      }),
    close: () => current().close(),
  }
}

/** Builds the index anew beside the one that is there, which nobody may write to meanwhile, and puts it in its place. */
export async function rebuildIndex(
  path: string,
  store: HistoryReader,
  options: Pick<FollowOptions, "onProgress"> = {},
): Promise<void> {
  try {
    ;(await rebuildBeside(path, store, options)).close()
  } catch (error) {
    throw explained(error, path)
  }
}

async function rebuildBeside(path: string, store: HistoryReader, options: FollowOptions | undefined): Promise<Db> {
  const building = `${path}.building`
  removeDatabase(building)
  const db = openDatabase(building, MIGRATIONS)
  await followFeed(db, store, options?.onProgress ? { onProgress: options.onProgress } : {})
  if (existsSync(path)) (await import("./vectors.ts")).carryVectors(db, path)
  sumBlocks(db)
  db.pragma("journal_mode = delete")
  db.close()
  await replaceDatabase(path, building)
  return openDatabase(path, MIGRATIONS)
}

async function followFeed(
  db: Db,
  store: HistoryReader,
  options: FollowOptions = {},
): Promise<{ indexed: number; complete: boolean } | "rebuild"> {
  let indexed = 0
  watchBlocks(db)
  keepSizesTwice(db)
  // What was forgotten before an index began is not in it.
  if (purgedOf(db) === undefined) {
    const forgotten = tokenOf(db) === undefined ? await store.forgotten() : 0
    inTransaction(db, () => savePurged(db, forgotten))
  }
  for (;;) {
    const feed = await store.changes(tokenOf(db), BATCH)
    if (feed.rebuild) return "rebuild"
    if (feed.changes.length > 0) {
      const { deleteVectors } = await import("./vectors.ts")
      const loaded: Loaded[] = []
      for (const change of feed.changes) loaded.push(...(await loadIfReadable(db, store, change, options)))
      inTransaction(db, () => {
        // FTS5 writes out what it holds in memory whenever another statement could fail, so its rows go in together.
        const docs = loaded.flatMap((conversation) => indexConversation(db, conversation))
        saveToken(db, feed.token)
        // A document's number may be given again, so nothing of it may stay.
        deleteVectors(
          db,
          docs.filter((doc) => !doc.fields).map((doc) => doc.id),
        )
        saveVocabulary(db, docs.filter(isRead))
        markStale(db, loaded.flatMap(staleIn))
        saveWords(db, docs)
      })
      indexed += feed.changes.length
      options.onProgress?.(indexed)
    } else saveTokenIfNew(db, feed.token)
    if (!feed.more) {
      await readUnread(db, store, options.deadline)
      return { indexed, complete: true }
    }
    if (options.deadline !== undefined && Date.now() > options.deadline) return { indexed, complete: false }
  }
}

/** Where in the history's changes it stands: kept twice, because with a damaged one changes would be missed for good. */
function tokenOf(db: Db): string | undefined {
  const kept = db.prepare("select value from meta where key in ('token', 'token_twin') order by key").pluck().all()
  if (kept.length > 1 && kept[0] !== kept[1]) throw indexDamage("where it stands is not what was written")
  return kept[0] as string | undefined
}

function saveToken(db: Db, token: string): void {
  db.prepare("insert or replace into meta (key, value) values ('token', @token), ('token_twin', @token)").run({ token })
}

/** How many had been forgotten when it was last purged. */
function purgedOf(db: Db): number | undefined {
  const value = db.prepare("select value from meta where key = 'purged'").pluck().get()
  return value === undefined ? undefined : Number(value)
}

function savePurged(db: Db, forgotten: number): void {
  db.prepare("insert or replace into meta (key, value) values ('purged', ?)").run(String(forgotten))
}

function saveTokenIfNew(db: Db, token: string): void {
  if (tokenOf(db) !== token) inTransaction(db, () => saveToken(db, token))
}

type Known = { id: number; tags: string; card: string | null; docs: Map<number, { id: number; version: number }> }
type Loaded = {
  change: Change
  known: Known | undefined
  row?: ConversationRow
  card?: IndexedText
  gone: number[]
  fresh: StoredMessage[]
  versions: Map<number, number>
}

/** What the history itself cannot read stays in the index as it is: one damaged conversation never keeps out the others. */
async function loadIfReadable(db: Db, store: HistoryReader, change: Change, options: FollowOptions): Promise<Loaded[]> {
  try {
    return [await load(db, store, change, options)]
  } catch (error) {
    // A table that is not there is not one conversation's damage.
    if (isDexError(error) && error.code === "corrupt" && codeOf(error.cause) !== "SQLITE_ERROR") return []
    throw error
  }
}

/** What of a changed conversation the index has not seen: only those messages are read. */
async function load(db: Db, store: HistoryReader, change: Change, { recent }: FollowOptions): Promise<Loaded> {
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

type Doc = { id: number; conversation: number; fields?: IndexedText; tags?: string }

function isRead(doc: Doc): doc is Doc & ReadText {
  return doc.fields !== undefined
}

/** The conversation, where it lost a message. One that was written to may say more than before, and not less. */
function staleIn({ known, row, gone }: Loaded): number[] {
  return known && (!row || gone.some((number) => number !== CARD)) ? [known.id] : []
}

/** Writes the rows of one conversation, and returns the documents whose words are to be added or (without fields) removed. */
function indexConversation(db: Db, { change, known, row, card, gone, fresh, versions }: Loaded): Doc[] {
  const docs: Doc[] = []
  const remove = (number: number) => {
    const old = known?.docs.get(number)
    if (!old) return
    db.prepare("delete from doc where id = ?").run(old.id)
    docs.push({ id: old.id, conversation: known!.id })
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
  const put = (number: number, at: number | undefined, version: number, fields: IndexedText, ownTags: string) => {
    remove(number)
    const doc = next++
    const sql = "insert into doc (id, conversation_id, number, at, version) values (?, ?, ?, ?, ?)"
    db.prepare(sql).run(doc, id, number, at ?? row.ended_at ?? null, version)
    docs.push({ id: doc, conversation: id, fields, tags: `${tags} ${ownTags}` })
  }
  if (hasNewCard) put(CARD, row.ended_at, 0, card, CARD_TAG)
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

/** The column `source` has the owner too, where there is one. */
function saveConversation(db: Db, name: string, ref: Ref, tags: string, card: string | null): number {
  const source = sourceWithOwner(ref)
  db.prepare("delete from conversation where source = ? and native_id = ? and name <> ?").run(source, ref.id, name)
  return db
    .prepare(
      `insert into conversation (name, source, native_id, tags, card) values (?, ?, ?, ?, ?)
       on conflict (name) do update set source = excluded.source, native_id = excluded.native_id, tags = excluded.tags, card = excluded.card returning id`,
    )
    .pluck()
    .get(name, source, ref.id, tags, card) as number
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

function check(db: Db): string[] {
  const found = (db.prepare("pragma integrity_check(20)").pluck().all() as string[]).filter((line) => line !== "ok")
  try {
    db.exec("insert into words (words) values ('integrity-check')")
  } catch (error) {
    // FTS5 checks itself by a statement that writes: where another one writes, or nobody may, it says nothing of the index.
    if (isBusy(error)) throw new DexError("busy", "Another program writes to the index.", { cause: error })
    if (!isDamage(error)) throw error
    found.push(`full text: ${(error as Error).message}`)
  }
  const bad = badBlocks(db)
  if (bad > 0) found.push(`${bad} blocks of words are not what was written`)
  const rotten = badRows(db)
  if (rotten > 0) found.push(`${rotten} rows are not what was written`)
  const docs = db.prepare("select count(*) from doc").pluck().get() as number
  const rows = db.prepare("select count(*) from words_docsize").pluck().get() as number
  if (docs !== rows) found.push(`${docs} messages are listed but ${rows} are indexed`)
  return [...found, ...checkVectors(db)]
}
