import { existsSync } from "node:fs"
import { isDexError, messageOf } from "../../core/error.ts"
import type { Ref } from "../../core/ref.ts"
import type { HistoryReader } from "../history/store.ts"
import {
  copyTo,
  type Db,
  emptyLog,
  explained,
  inOneState,
  inTransaction,
  isMarkedDamaged,
  openDatabase,
  openToRead,
  removeDatabase,
} from "../sqlite/database.ts"
import { olderIndex } from "../sqlite/older-files.ts"
import { replaceDatabase } from "../sqlite/replace-database.ts"
import { distrustSums, indexDamage, sumBlocks, watchBlocks } from "./blocks.ts"
import type { DocId } from "./doc-id.ts"
import { type FollowOptions, followFeed } from "./follow-feed.ts"
import { purgedOf, savePurged, tokenOf } from "./follow-marks.ts"
import { checkIndex, isIndexDamage, MIGRATIONS } from "./index-file.ts"
import { createScopes, type IndexScope } from "./index-scope.ts"
import { type NewestHit, type NewestQuery, newest } from "./newest.ts"
import {
  type Count,
  type CountByKind,
  countConversations,
  countMatches,
  find,
  holding,
  type IndexFilter,
  type IndexHit,
  type IndexQuery,
  prepareFilter,
  type Sizes,
  sizes,
  unspokenIn,
} from "./query.ts"
import type { Term } from "./terms.ts"
import type { VectorIndex } from "./vector-index.ts"
import { forgetSaved, readStale, type WrittenWord, wordsBeginning, wordsOfLength } from "./vocabulary.ts"

/**
 * The full-text index: derived from the history, safe to delete, comes back by itself. It holds no text (contentless),
 * only which words stand in which message.
 */
export type SearchIndex = {
  /** It answers from a part of what it holds: a word of it may stand elsewhere only. */
  isPart?: true
  /** It contains what whoever asks may not see: how common its words are (`spread`) must not show. */
  leavesOut?: true
  /** Where it is made of several: how many of them have answered all that was asked so far. */
  shards?(): { searched: number; of: number }
  /** Where it is made of several: none of those that could have an answer was searched. */
  isUnanswered?(): boolean
  /** Reads what changed in the history since last time, until it is done or the time is up. */
  follow(store: HistoryReader, options?: FollowOptions): Promise<{ indexed: number; complete: boolean }>
  /** The token of the newest change that it has seen. */
  followed(): Promise<string | undefined>
  /** True when the history has changed since the index last followed it. */
  isBehind(store: HistoryReader): Promise<boolean>
  find(query: IndexQuery): Promise<IndexHit[]>
  /** Conversations in which all of it stands, the newest first, unranked. */
  newest(query: NewestQuery): Promise<NewestHit[]>
  /** Which of these documents hold the term. */
  holding(term: Term, docs: DocId[]): Promise<Set<DocId>>
  /** Those of a conversation's messages in which nobody says or thinks any of the terms. None that the index does not know. */
  unspoken(ref: Ref, numbers: number[], terms: Term[]): Promise<Set<number>>
  /** How many messages match, counted to a limit. */
  count(query: IndexFilter): Promise<Count>
  /** In how many conversations; a lower bound where too many messages match. */
  countConversations(query: IndexFilter): Promise<CountByKind>
  /** How many messages there are, and which share of a sample of the newest holds each term. */
  sizes(terms: Term[], scope?: IndexScope): Promise<Sizes>
  /** The words as they are written that begin so, the commonest first. */
  words(beginning: string, limit?: number): Promise<WrittenWord[]>
  wordsOfLength(least: number, most: number): Promise<WrittenWord[]>
  /** These conversations, as the history's feed names them: what is asked with it is answered from them only. */
  scope(names: ReadonlySet<string>): Promise<IndexScope>
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
          if (isIndexDamage(error)) return "rebuild" as const
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
    if (isIndexDamage(error) || (isDexError(error) && ["corrupt", "newer_schema"].includes(error.code)))
      return undefined
    throw error
  }
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
      throw isIndexDamage(error) && !isDexError(error) ? indexDamage(messageOf(error)) : explained(error, path)
    }
  }
  const scopeOf = createScopes()
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
    followed: async () => guard(tokenOf),
    isBehind,
    find: async (query) => readInOneState((db) => find(db, query)),
    newest: async (query) => readInOneState((db) => newest(db, query)),
    holding: async (term, docs) => readInOneState((db) => holding(db, term, docs)),
    unspoken: async (ref, numbers, terms) => readInOneState((db) => unspokenIn(db, ref, numbers, terms)),
    count: async (query) => readInOneState((db) => countMatches(db, query)),
    countConversations: async (query) => readInOneState((db) => countConversations(db, query)),
    sizes: async (terms, scope) => readInOneState((db) => sizes(db, terms, scope)),
    words: async (beginning, limit) => readInOneState((db) => wordsBeginning(db, beginning, limit)),
    wordsOfLength: async (least, most) => readInOneState((db) => wordsOfLength(db, least, most)),
    scope: async (names) => readInOneState((db) => scopeOf(db, names)),
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
    check: () => readInOneState(checkIndex),
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
