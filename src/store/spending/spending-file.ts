import { codeOf, DexError } from "../../core/error.ts"
import { isSameConversation, type Ref, refFrom, sourceWithOwner } from "../../core/ref.ts"
import { type Db, emptyLog, explainError, inTransaction, markDamaged, openDerivedDatabase } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import {
  dropUnusedModels,
  type KnownMade,
  type KnownSpending,
  type MadeWrite,
  madeThings,
  removeSpent,
  SPENT_SCHEMA,
  type Spender,
  type SpentWrite,
  saveSpent,
  spenders,
  spentBetween,
} from "./spent.ts"

/**
 * The spending of a conversation. `spender` is missing if there is nothing to count, because the conversation was forgotten or is
 * a document.
 */
export type ConversationSpending = {
  /** The conversation's name in the history's feed. */
  name: string
  ref?: Ref
  spender?: Omit<Spender, "id" | "source" | "native_id">
  spent?: SpentWrite[]
  made?: MadeWrite[]
}

/**
 * The spending of all conversations, in its own file: every sync writes it, so that readers need not read conversations. Derived
 * from the history, safe to delete.
 */
export type SpendingFile = {
  /** The position up to which the history's feed was processed. */
  followed(): string | undefined
  /**
   * Saves the changes between two positions of the feed, all or nothing. Returns false if another process has written meanwhile.
   */
  save(read: ConversationSpending[], from: string | undefined, to: string): boolean
  /** Deletes everything, because the history was replaced by another one. */
  clear(): void
  spentBetween(from: number, to: number): KnownSpending[]
  /** Returns what conversations made, oldest first. */
  madeThings(type: MadeWrite["type"]): KnownMade[]
  spenders(): Spender[]
  /** The number of conversations whose spending is counted. */
  counted(): number
  /** Whether anyone has used `dex usage --line`. */
  isLineWanted(): boolean
  wantLine(): void
  /** Rewrites the file without deleted data, if anything was deleted since the last purge or if `inAnyCase`. */
  purge(options?: { inAnyCase: boolean }): void
  /** Moves the write-ahead log into the file. */
  checkpoint(): void
  close(): void
}

const MIGRATIONS: readonly [string, string][] = [["001-spent", SPENT_SCHEMA]]

export function openSpending(path: string): SpendingFile {
  const db = openDerivedDatabase(path, MIGRATIONS)
  const withExplainedErrors = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw damageOf(error, path) ?? explainError(error, path)
    }
  }
  return {
    followed: () => withExplainedErrors(() => readMeta(db, "token")),
    save: (read, from, to) => withExplainedErrors(() => inTransaction(db, () => saveIfNext(db, read, from, to))),
    clear: () => withExplainedErrors(() => inTransaction(db, () => clearAll(db))),
    spentBetween: (from, to) => withExplainedErrors(() => spentBetween(db, from, to)),
    madeThings: (type) => withExplainedErrors(() => madeThings(db, type)),
    spenders: () => withExplainedErrors(() => spenders(db)),
    counted: () => withExplainedErrors(() => valueQuery(db, "select count(*) from conversation", "integer").get()!),
    isLineWanted: () => withExplainedErrors(() => readMeta(db, "line") !== undefined),
    wantLine: () =>
      withExplainedErrors(() => {
        if (readMeta(db, "line") === undefined) inTransaction(db, () => writeMeta(db, "line", "wanted"))
      }),
    purge: (options) => withExplainedErrors(() => purge(db, options?.inAnyCase === true)),
    checkpoint: () => withExplainedErrors(() => void emptyLog(db)),
    close: () => db.close(),
  }
}

/** Marks a damaged file, so that the next process that opens it recreates it, and returns an error for the user. */
function damageOf(error: unknown, path: string): DexError | undefined {
  if (!/^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error))) return undefined
  markDamaged(path)
  return new DexError(
    "corrupt",
    `${path} is damaged. It contains only derived data and is rebuilt automatically. Run the command again.`,
    { cause: error },
  )
}

function readMeta(db: Db, key: string): string | undefined {
  return valueQuery(db, "select value from meta where key = ?", "text").get(key)
}

function writeMeta(db: Db, key: string, value: string): void {
  db.prepare("insert or replace into meta (key, value) values (?, ?)").run(key, value)
}

function saveIfNext(db: Db, read: ConversationSpending[], from: string | undefined, to: string): boolean {
  if (readMeta(db, "token") !== from) return false
  for (const conversation of read) saveConversation(db, conversation)
  writeMeta(db, "token", to)
  return true
}

type StoredConversation = RowOf<typeof STORED_CONVERSATION_ROW>
const STORED_CONVERSATION_ROW = { id: "integer", source: "text", native_id: "text" } as const

function saveConversation(db: Db, { name, ref, spender, spent = [], made = [] }: ConversationSpending): void {
  const storedConversation = rowQuery(
    db,
    "select id, source, native_id from conversation where name = ?",
    STORED_CONVERSATION_ROW,
  ).get(name)
  if (storedConversation) removeConversation(db, storedConversation, ref)
  if (!spender || !ref) return
  const source = sourceWithOwner(ref)
  const selectByRef = rowQuery(
    db,
    "select id, source, native_id from conversation where source = ? and native_id = ?",
    STORED_CONVERSATION_ROW,
  )
  const sameRef = selectByRef.get(source, ref.id)
  if (sameRef) removeConversation(db, sameRef, ref)
  const { kind, project = null, branch = null, title = null, parent = null } = spender
  const id = valueQuery(
    db,
    `insert into conversation (name, source, native_id, kind, project, branch, title, parent)
       values (?, ?, ?, ?, ?, ?, ?, ?) returning id`,
    "integer",
  ).get(name, source, ref.id, kind, project, branch, title, parent)!
  saveSpent(db, id, spent, made)
}

/**
 * Removes a conversation. If its name now belongs to no conversation or to another one (`current`), it was forgotten, so the
 * file must be purged.
 */
function removeConversation(db: Db, { id, source, native_id }: StoredConversation, current: Ref | undefined): void {
  if (!current || !isSameConversation(refFrom(source, native_id), current)) writeMeta(db, "purge", "due")
  removeSpent(db, id)
  db.prepare("delete from conversation where id = ?").run(id)
}

function clearAll(db: Db): void {
  db.exec("delete from spent; delete from made; delete from conversation; delete from meta where key = 'token'")
  writeMeta(db, "purge", "due")
}

/** Rewrites the file, because deleted words stay in its bytes until then. */
function purge(db: Db, inAnyCase: boolean): void {
  if (!inAnyCase && readMeta(db, "purge") === undefined) return
  inTransaction(db, () => dropUnusedModels(db))
  emptyLog(db)
  db.exec("vacuum")
  // If another process still reads the old pages, the purge remains due.
  if (emptyLog(db)) inTransaction(db, () => db.prepare("delete from meta where key = 'purge'").run())
}
