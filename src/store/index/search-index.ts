import { existsSync } from "node:fs"
import { isDexError, messageOf } from "../../core/error.ts"
import type { Ref } from "../../core/ref.ts"
import type { HistoryReader } from "../history/store.ts"
import {
  copyDatabase,
  type Db,
  emptyLog,
  explainError,
  inReadTransaction,
  inTransaction,
  isMarkedDamaged,
  openDatabase,
  openReadOnly,
  removeDatabase,
} from "../sqlite/database.ts"
import { olderIndexPath } from "../sqlite/older-files.ts"
import { distrustSums, indexDamage, sumBlocks, watchBlocks } from "./blocks.ts"
import type { DocId } from "./doc-id.ts"
import { type FollowOptions, followFeed } from "./follow-feed.ts"
import { forgottenAtLastPurge, savedToken, saveForgottenAtPurge } from "./follow-marks.ts"
import { isIndexDamage, MIGRATIONS } from "./index-file.ts"
import type { createScopes, IndexScope, MemberAccess } from "./index-scope.ts"
import { findNewest, type NewestHit, type NewestQuery } from "./newest.ts"
import {
  type CountByKind,
  countConversations,
  countMatches,
  docsContaining,
  findMessages,
  findUnspoken,
  type IndexFilter,
  type IndexHit,
  type IndexQuery,
  type IndexSizes,
  type MatchCount,
  prepareFilter,
  querySizes,
} from "./query.ts"
import type { Term } from "./terms.ts"
import type { VectorIndex } from "./vector-index.ts"
import { clearSavedWords, readStaleGroups, type WrittenWord, wordsBeginning, wordsOfLength } from "./vocabulary.ts"

/**
 * The full-text index: derived from the history, safe to delete, rebuilt automatically. It contains no text (contentless), only
 * which words occur in which message.
 */
export type SearchIndex = {
  /** True if searches cover only some of the messages. A word of the index may then occur only in messages that are not searched. */
  isPart?: true
  /**
   * Set if the index contains conversations that the user may not see, so that the frequency of its words (`spread`) must not be
   * shown: those of other people, or of the user's own private projects.
   */
  leavesOut?: "others" | "private"
  /** True if common words cost the index hardly more than others, so that a search need not be limited. */
  isFastForCommonWords?: true
  /** Announces the terms of a query, so that a remote index can count all of them at once. */
  countAhead?(terms: Term[]): Promise<void>
  /** Processes the changes to the history since the last call, until all are done or the deadline passes. */
  follow(store: HistoryReader, options?: FollowOptions): Promise<{ indexed: number; complete: boolean }>
  /** The token of the newest change that the index has processed. */
  followed(): Promise<string | undefined>
  /** Whether the history has changed since the index last followed it. */
  isBehind(store: HistoryReader): Promise<boolean>
  find(query: IndexQuery): Promise<IndexHit[]>
  /** Returns conversations that contain all terms, newest first, unranked. */
  newest(query: NewestQuery): Promise<NewestHit[]>
  /** Returns those of the documents that contain the term. */
  containing(term: Term, docs: DocId[]): Promise<Set<DocId>>
  /**
   * Returns the messages of a conversation in which no term occurs in spoken text or thinking, except messages that are not
   * indexed.
   */
  unspoken(ref: Ref, numbers: number[], terms: Term[]): Promise<Set<number>>
  /** The number of matching messages, counted up to a limit. */
  count(query: IndexFilter): Promise<MatchCount>
  /** The number of matching messages, and of their conversations by kind; lower bounds if too many messages match. */
  countConversations(query: IndexFilter): Promise<CountByKind>
  /** The number of messages, and the share of a sample of the newest that contains each term. */
  sizes(terms: Term[], scope?: IndexScope): Promise<IndexSizes>
  /** Returns words that begin with this text, as people write them, most common first. */
  words(beginning: string, limit?: number): Promise<WrittenWord[]>
  wordsOfLength(least: number, most: number): Promise<WrittenWord[]>
  /** Creates a scope of the conversations that a member of a team may read. */
  scopeOf(access: MemberAccess, listAtMost?: number): Promise<IndexScope>
  /** Creates a scope of all conversations except these. */
  scopeWithout(refs: readonly Ref[]): Promise<IndexScope>
  /** Returns the vectors for search by meaning; loaded on first use. */
  vectors(): Promise<VectorIndex>
  /**
   * Rewrites the index without deleted messages, so that not even single words of them stay on disk. `messagesChanged` also
   * removes words of messages that have a new text.
   */
  purge(store: HistoryReader, options?: { messagesChanged: boolean }): Promise<void>
  /** Whether conversations were forgotten since the last purge, for example because the process was stopped before it. */
  isPurgeDue(store: HistoryReader): Promise<boolean>
  check(): Promise<string[]>
  checkpoint(): void
  close(): void
}

/** The oldest index format that can still be read, that of version 0.1.0. */
const OLDEST_FORMAT = 2

/** Opens an index for writing. Creates it if there is none; if it is damaged, the next `follow` rebuilds it. */
export function openIndex(path: string): SearchIndex {
  if (!existsSync(path)) copyOlderIndex(path)
  let db = isMarkedDamaged(path) ? undefined : openIfIntact(path)
  const rebuild = async (store: HistoryReader, options?: FollowOptions) => {
    db?.close()
    db = undefined
    db = await rebuildBeside(path, store, options)
    return { indexed: 1, complete: true }
  }
  const index = indexMethods(path, () => db ?? throwUnusable(path))
  return {
    ...index,
    follow: async (store, options) => {
      try {
        if (!db) return await rebuild(store, options)
        const followed = await followFeed(db, store, options).catch((error: unknown) => {
          if (db) clearSavedWords(db)
          if (isIndexDamage(error)) return "rebuild" as const
          throw error
        })
        return followed === "rebuild" ? await rebuild(store, options) : followed
      } catch (error) {
        throw explainError(error, path)
      }
    },
    isBehind: async (store) => db === undefined || index.isBehind(store),
    check: async () => (db ? index.check() : ["it cannot be opened"]),
    close: () => db?.close(),
  }
}

/**
 * Opens an index for reading. If it does not exist or is still empty, opens the index of an older dex, or returns `none`: a
 * search in an empty index would find nothing, although the history has messages.
 */
export function readIndex(path: string): SearchIndex | "none" | "damaged" {
  if (!existsSync(path)) return readOlder(path) ?? "none"
  const db = isMarkedDamaged(path) ? undefined : openIfIntact(path)
  if (!db) return "damaged"
  try {
    if (savedToken(db) !== undefined) return indexMethods(path, () => db)
    db.close()
    return readOlder(path) ?? "none"
  } catch {
    db.close()
    return "damaged"
  }
}

/** Returns undefined if the file is damaged, or is not an index that this version of dex can read. */
function openIfIntact(path: string): Db | undefined {
  try {
    return openDatabase(path, MIGRATIONS)
  } catch (error) {
    if (isIndexDamage(error) || (isDexError(error) && ["corrupt", "newer_schema"].includes(error.code)))
      return undefined
    throw error
  }
}

function throwUnusable(path: string): never {
  throw indexDamage(`${path} cannot be read`)
}

/**
 * Copies an older version's index, which only lacks some checksums and words, so that nobody has to wait for a new one. The old
 * file stays.
 */
function copyOlderIndex(path: string): void {
  const olderDb = openOlder(path)
  if (olderDb) copyDatabase(olderDb, path)
  olderDb?.close()
}

function readOlder(path: string): SearchIndex | undefined {
  const olderDb = openOlder(path)
  return olderDb && indexMethods(path, () => olderDb)
}

const OLDER_BUSY_MS = 2_000

/** Opens the newest index of an older format, if there is one that can be read. */
function openOlder(path: string): Db | undefined {
  for (let format = MIGRATIONS.length - 1; format >= OLDEST_FORMAT; format--) {
    const older = olderIndexPath(path, format)
    const db = older === path ? undefined : openIfReadable(older, format)
    if (db) return db
  }
  return undefined
}

/** Queries name the table `access`, which is empty on a laptop and missing in the older formats. */
const ACCESS_FORMAT = 6
const TEMPORARY_ACCESS =
  "create temp table access (conversation integer, author integer, project integer, visibility integer)"

/** The vectors of the older formats are of other texts, so they are hidden. */
const VECTOR_FORMAT = 7
const NO_VECTORS = `create temp table vector_space (id integer, embedder text, dims integer, golden blob);
  create temp table vector_group (doc integer, space integer, head integer)`

function openIfReadable(path: string, format: number): Db | undefined {
  try {
    const db = openReadOnly(path, format, OLDER_BUSY_MS)
    if (format < ACCESS_FORMAT) db?.exec(TEMPORARY_ACCESS)
    if (format < VECTOR_FORMAT) db?.exec(NO_VECTORS)
    return db
  } catch {
    return undefined // damaged
  }
}

/** Returns the methods of an open index, except that `follow` throws. */
function indexMethods(path: string, current: () => Db): SearchIndex {
  let vectors: VectorIndex | undefined
  const withExplainedErrors = <T>(work: (db: Db) => T): T => {
    try {
      return work(current())
    } catch (error) {
      throw isIndexDamage(error) && !isDexError(error) ? indexDamage(messageOf(error)) : explainError(error, path)
    }
  }
  let scopes: ReturnType<typeof createScopes> | undefined
  const openScopes = async () => {
    const { createScopes } = await import("./index-scope.ts")
    scopes ??= createScopes()
    return scopes
  }
  /** Reads in one transaction, because blocks and checksums of different states would look like damage. */
  const readConsistently = <T>(work: (db: Db) => T) =>
    withExplainedErrors((db) => inReadTransaction(db, () => work(db)))
  const isBehind = async (store: HistoryReader) => {
    const { changes, rebuild } = await store.changes(withExplainedErrors(savedToken), 1)
    return rebuild || changes.length > 0
  }
  return {
    follow: () => {
      throw new Error("This index was opened for reading only")
    },
    followed: async () => withExplainedErrors(savedToken),
    isBehind,
    find: async (query) => readConsistently((db) => findMessages(db, query)),
    newest: async (query) => readConsistently((db) => findNewest(db, query)),
    containing: async (term, docs) => readConsistently((db) => docsContaining(db, term, docs)),
    unspoken: async (ref, numbers, terms) => readConsistently((db) => findUnspoken(db, ref, numbers, terms)),
    count: async (query) => readConsistently((db) => countMatches(db, query)),
    countConversations: async (query) => readConsistently((db) => countConversations(db, query)),
    sizes: async (terms, scope) => readConsistently((db) => querySizes(db, terms, scope)),
    words: async (beginning, limit) => readConsistently((db) => wordsBeginning(db, beginning, limit)),
    wordsOfLength: async (least, most) => readConsistently((db) => wordsOfLength(db, least, most)),
    scopeOf: async (access, listAtMost) => {
      const { scopeOf } = await openScopes()
      return readConsistently((db) => scopeOf(db, access, listAtMost))
    },
    scopeWithout: async (refs) => {
      const { scopeWithout } = await openScopes()
      return readConsistently((db) => scopeWithout(db, refs))
    },
    vectors: async () => {
      const { openVectors } = await import("./vector-index.ts")
      vectors ??= openVectors(current, (filter) => prepareFilter(current(), filter))
      return vectors
    },
    purge: async (store, options) => {
      const forgotten = await store.forgotten()
      const wasBehind = await isBehind(store)
      await readStaleGroups(current(), store, options?.messagesChanged)
      withExplainedErrors((db) => {
        watchBlocks(db)
        distrustSums(db)
        db.exec("insert into words (words) values ('optimize')")
        emptyLog(db)
        db.exec("vacuum")
        sumBlocks(db)
        // If another process still reads the old pages, the purge remains due.
        const isDone = emptyLog(db)
        if (isDone && !wasBehind) inTransaction(db, () => saveForgottenAtPurge(db, forgotten))
      })
    },
    isPurgeDue: async (store) => (await store.forgotten()) !== forgottenAtLastPurge(current()),
    check: async () => readConsistently((await import("./check-index.ts")).checkIndex),
    checkpoint: () =>
      withExplainedErrors((db) => {
        sumBlocks(db)
        emptyLog(db)
      }),
    close: () => current().close(),
  }
}

/** Builds a new index file and replaces the current one with it. Nobody may write to the index meanwhile. */
export async function rebuildIndex(
  path: string,
  store: HistoryReader,
  options: Pick<FollowOptions, "onProgress"> = {},
): Promise<void> {
  try {
    ;(await rebuildBeside(path, store, options)).close()
  } catch (error) {
    throw explainError(error, path)
  }
}

async function rebuildBeside(path: string, store: HistoryReader, options: FollowOptions | undefined): Promise<Db> {
  const building = `${path}.building`
  removeDatabase(building)
  const db = openDatabase(building, MIGRATIONS)
  await followFeed(db, store, options?.onProgress ? { onProgress: options.onProgress } : {})
  if (existsSync(path)) (await import("./vectors.ts")).copyVectors(db, path)
  sumBlocks(db)
  db.pragma("journal_mode = delete")
  db.close()
  await (await import("../sqlite/replace-database.ts")).replaceDatabase(path, building)
  return openDatabase(path, MIGRATIONS)
}
