import { codeOf, isDexError } from "../../core/error.ts"
import { type Ref, sourceWithOwner } from "../../core/ref.ts"
import type { Change, ConversationAccess, ConversationRow, HistoryReader, StoredMessage } from "../history/store.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { watchBlocks } from "./blocks.ts"
import {
  CARD_NUMBER,
  CARD_TAG,
  COLUMN_NAMES,
  COLUMN_VALUES,
  cardOf,
  fieldsOf,
  type IndexedText,
  messageTags,
  tagsOf,
} from "./fields.ts"
import { forgottenAtLastPurge, savedToken, saveForgottenAtPurge, saveToken, saveTokenIfNew } from "./follow-marks.ts"
import { storeSizesTwice } from "./twins.ts"
import { markStaleWords, type ReadText, readUnreadGroups, saveVocabulary } from "./vocabulary.ts"

export type FollowOptions = {
  deadline?: number
  onProgress?: (indexed: number) => void
  /** Returns messages that were just written, by number, so that they need not be read again. */
  recent?: (ref: Ref) => Map<number, StoredMessage> | undefined
  /** The approximate amount of text in memory at once, in bytes. Long conversations are processed in smaller batches. */
  maxBatchBytes?: number
}

const BATCH_SIZE = 64
/** The number of conversations in a batch while their length is unknown. */
export const FIRST_BATCH_SIZE = 8
/** The maximum number of files on a card. More files would not describe the topic of a conversation any better. */
export const MAX_CARD_FILES = 40

/**
 * The number of the first document. Newer documents that are found later get smaller numbers, so a smaller number roughly means
 * a newer document.
 */
const FIRST_ID = 100_000_000

/**
 * Updates the index from the history, a batch of conversations at a time. Returns "rebuild" if the history does not know what
 * has changed.
 */
export async function followFeed(
  db: Db,
  store: HistoryReader,
  options: FollowOptions = {},
): Promise<{ indexed: number; complete: boolean } | "rebuild"> {
  let indexed = 0
  watchBlocks(db)
  storeSizesTwice(db)
  // A new index contains nothing that was forgotten before it was created.
  if (forgottenAtLastPurge(db) === undefined) {
    const forgotten = savedToken(db) === undefined ? await store.forgotten() : 0
    inTransaction(db, () => saveForgottenAtPurge(db, forgotten))
  }
  let batchSize = options.maxBatchBytes === undefined ? BATCH_SIZE : FIRST_BATCH_SIZE
  for (;;) {
    const feed = await store.changes(savedToken(db), batchSize)
    if (feed.rebuild) return "rebuild"
    if (feed.changes.length > 0) {
      const { deleteVectors } = await import("./vectors.ts")
      const loaded: LoadedChange[] = []
      for (const change of feed.changes) loaded.push(...(await loadIfReadable(db, store, change, options)))
      inTransaction(db, () => {
        // FTS5 flushes its memory before any other statement that could fail, so its rows are written together.
        const docs = loaded.flatMap((conversation) => indexConversation(db, conversation))
        saveToken(db, feed.token)
        // A document's number may be reused, so its vectors must be deleted.
        deleteVectors(
          db,
          docs.filter((doc) => !doc.fields).map((doc) => doc.id),
        )
        saveVocabulary(db, docs.filter(hasFields))
        markStaleWords(db, loaded.flatMap(staleConversation))
        saveWords(db, docs)
      })
      indexed += feed.changes.filter(({ deleted }) => !deleted).length
      options.onProgress?.(indexed)
      if (options.maxBatchBytes !== undefined)
        batchSize = nextBatchSize(
          loaded.map(({ row }) => row),
          options.maxBatchBytes,
        )
    } else saveTokenIfNew(db, feed.token)
    if (!feed.more) {
      await readUnreadGroups(db, store, options.deadline)
      return { indexed, complete: true }
    }
    if (options.deadline !== undefined && Date.now() > options.deadline) return { indexed, complete: false }
  }
}

/** Returns the size of the next batch: `maxBatchBytes` of text, if its conversations are as long as those of the last batch. */
export function nextBatchSize(rows: (ConversationRow | undefined)[], maxBatchBytes: number): number {
  const bytes = rows.reduce((sum, row) => sum + (row?.text_bytes ?? 0), 1)
  return Math.max(1, Math.min(BATCH_SIZE, Math.floor((rows.length * maxBatchBytes) / bytes)))
}

type IndexedConversation = {
  id: number
  tags: string
  card: string | null
  docs: Map<number, { id: number; version: number }>
}
type LoadedChange = {
  change: Change
  known: IndexedConversation | undefined
  row?: ConversationRow
  card?: IndexedText
  removedNumbers: number[]
  newMessages: StoredMessage[]
  versions: Map<number, number>
}

/**
 * Leaves conversations that the history cannot read in the index unchanged, because one damaged conversation must not block the
 * others.
 */
async function loadIfReadable(
  db: Db,
  store: HistoryReader,
  change: Change,
  options: FollowOptions,
): Promise<LoadedChange[]> {
  try {
    return [await load(db, store, change, options)]
  } catch (error) {
    // A missing table does not mean that this conversation is damaged.
    if (isDexError(error) && error.code === "corrupt" && codeOf(error.cause) !== "SQLITE_ERROR") return []
    throw error
  }
}

/** Loads only those messages of a changed conversation that are new to the index. */
async function load(db: Db, store: HistoryReader, change: Change, { recent }: FollowOptions): Promise<LoadedChange> {
  const known = knownConversation(db, change.conversation)
  const row = change.ref && (await store.conversation(change.ref))
  if (!row)
    return { change, known, removedNumbers: [...(known?.docs.keys() ?? [])], newMessages: [], versions: new Map() }
  const versions = new Map(
    (await store.versions(row.ref))
      .filter((message) => !message.copied)
      .map(({ number, version }) => [number, version]),
  )
  const isNew = known === undefined || known.tags !== tagsOf(row, knownProject(db, row.project))
  const newNumbers = isNew
    ? [...versions.keys()]
    : [...versions].filter(([number, version]) => known.docs.get(number)?.version !== version).map(([number]) => number)
  const card = cardOf(row, await store.editedFiles(row.ref, MAX_CARD_FILES))
  const removedNumbers = [...(known?.docs.keys() ?? [])].filter((number) =>
    number === CARD_NUMBER ? card === undefined : !versions.has(number),
  )
  const recentMessages = recent?.(row.ref)
  const justWritten = newNumbers.flatMap((number) => recentMessages?.get(number) ?? [])
  const messages = justWritten.length < newNumbers.length ? await store.messages(row.ref, newNumbers) : justWritten
  return { change, known, row, removedNumbers, newMessages: messages, versions, card }
}

function knownConversation(db: Db, name: string): IndexedConversation | undefined {
  const row = rowQuery(db, "select id, tags, card from conversation where name = ?", {
    id: "integer",
    tags: "text",
    card: "text?",
  }).get(name)
  if (!row) return undefined
  const docs = rowQuery(db, "select id, number, version from doc where conversation_id = ?", {
    id: "integer",
    number: "integer",
    version: "integer",
  }).all(row.id)
  return { ...row, docs: new Map(docs.map((doc) => [doc.number, doc])) }
}

type ChangedDoc = { id: number; conversation: number; fields?: IndexedText; tags?: string }

function hasFields(doc: ChangedDoc): doc is ChangedDoc & ReadText {
  return doc.fields !== undefined
}

/** Returns the conversation if it lost a message, and with it perhaps words. New messages only add words. */
function staleConversation({ known, row, removedNumbers }: LoadedChange): number[] {
  return known && (!row || removedNumbers.some((number) => number !== CARD_NUMBER)) ? [known.id] : []
}

/** Writes the rows of one conversation. Returns the documents whose words must be added or, without fields, removed. */
function indexConversation(
  db: Db,
  { change, known, row, card, removedNumbers, newMessages, versions }: LoadedChange,
): ChangedDoc[] {
  const docs: ChangedDoc[] = []
  const remove = (number: number) => {
    const indexedDoc = known?.docs.get(number)
    if (!indexedDoc) return
    db.prepare("delete from doc where id = ?").run(indexedDoc.id)
    docs.push({ id: indexedDoc.id, conversation: known!.id })
  }
  for (const number of removedNumbers) remove(number)
  if (!row) {
    if (known) {
      db.prepare("delete from conversation where id = ?").run(known.id)
      saveAccess(db, known.id, undefined)
    }
    return docs
  }
  const tags = tagsOf(row, row.project === undefined ? undefined : projectId(db, row.project))
  const cardText = card === undefined ? null : `${card.said}\n${card.called}`
  const id = saveConversation(db, change.conversation, row.ref, tags, cardText)
  const hasNewCard = card !== undefined && (known?.card !== cardText || known.tags !== tags)
  let nextDocId = firstId(db, row.ended_at, newMessages.length + (hasNewCard ? 1 : 0))
  const addDocument = (
    number: number,
    at: number | undefined,
    version: number,
    fields: IndexedText,
    ownTags: string,
  ) => {
    remove(number)
    const doc = nextDocId++
    const sql = "insert into doc (id, conversation_id, number, at, version) values (?, ?, ?, ?, ?)"
    db.prepare(sql).run(doc, id, number, at ?? row.ended_at ?? null, version)
    docs.push({ id: doc, conversation: id, fields, tags: `${tags} ${ownTags}` })
  }
  if (hasNewCard) addDocument(CARD_NUMBER, row.ended_at, 0, card, CARD_TAG)
  for (const message of newMessages)
    addDocument(message.number, message.at, versions.get(message.number)!, fieldsOf(message), messageTags(message))
  if (row.access) saveAccess(db, id, row.access)
  return docs
}

const VISIBILITIES: readonly ConversationAccess["visibility"][] = ["private", "project", "org"]

/** Saves who may read a conversation, after its documents. Without `access`, nobody may, because it was deleted. */
function saveAccess(db: Db, conversation: number, access: ConversationAccess | undefined): void {
  const [addToOwn, addToProject] = [db.prepare(ADD_TO_ACCESS_TOTAL), db.prepare(ADD_TO_PROJECT_TOTAL)]
  const addToTotals = ({ author, ...row }: RowOf<typeof ACCESS_ROW>) => {
    addToOwn.run({ author, ...row })
    addToProject.run(row)
  }
  const before = rowQuery(db, SELECT_ACCESS, ACCESS_ROW).get(conversation)
  if (before) addToTotals({ ...before, messages: -before.messages })
  db.prepare("delete from access where conversation = ?").run(conversation)
  if (!access) return
  const count = valueQuery(db, "select count(*) from doc where conversation_id = ?", "integer")
  const row = { ...access, visibility: VISIBILITIES.indexOf(access.visibility), messages: count.get(conversation)! }
  db.prepare(INSERT_ACCESS).run({ ...row, conversation })
  addToTotals(row)
}

const ACCESS_ROW = { author: "integer", project: "integer", visibility: "integer", messages: "integer" } as const
const SELECT_ACCESS = "select author, project, visibility, messages from access where conversation = ?"
const INSERT_ACCESS =
  "insert into access (conversation, author, project, visibility, messages) values (@conversation, @author, @project, @visibility, @messages)"
const ADD_TO_PROJECT_TOTAL = `insert into project_total (project, visibility, messages) values (@project, @visibility, @messages)
  on conflict do update set messages = messages + excluded.messages`
const ADD_TO_ACCESS_TOTAL = `insert into access_total (author, project, visibility, messages) values (@author, @project, @visibility, @messages)
  on conflict do update set messages = messages + excluded.messages`

/**
 * Reserves a range of numbers for a conversation's documents: above all others if the conversation is older than everything read
 * so far, otherwise below them. A first sync reads the newest conversations first, so it only appends.
 */
function firstId(db: Db, endedAt: number | undefined, count: number): number {
  const oldest = rowQuery(db, "select id, at from doc order by id desc limit 1", {
    id: "integer",
    at: "integer?",
  }).get()
  if (!oldest) return FIRST_ID
  if (endedAt !== undefined && oldest.at !== null && endedAt <= oldest.at) return oldest.id + 1
  return valueQuery(db, "select min(id) from doc", "integer").get()! - count
}

function saveWords(db: Db, docs: ChangedDoc[]): void {
  const remove = db.prepare("delete from words where rowid = ?")
  const add = db.prepare(INSERT_WORDS)
  for (const { id, fields } of docs) if (!fields) remove.run(id)
  // Sort by number, because FTS5 flushes its memory whenever a number is smaller than the one before.
  const added = docs.filter((doc) => doc.fields !== undefined).sort((a, b) => a.id - b.id)
  for (const { id, fields, tags } of added) add.run({ ...fields, id, tags })
}

const INSERT_WORDS = `insert into words (rowid, ${COLUMN_NAMES}, tags) values (@id, ${COLUMN_VALUES}, @tags)`

/** Saves a conversation's row. The column `source` includes the owner, if there is one. */
function saveConversation(db: Db, name: string, ref: Ref, tags: string, card: string | null): number {
  const source = sourceWithOwner(ref)
  db.prepare("delete from conversation where source = ? and native_id = ? and name <> ?").run(source, ref.id, name)
  return valueQuery(
    db,
    `insert into conversation (name, source, native_id, tags, card) values (?, ?, ?, ?, ?)
       on conflict (name) do update set source = excluded.source, native_id = excluded.native_id, tags = excluded.tags, card = excluded.card returning id`,
    "integer",
  ).get(name, source, ref.id, tags, card)!
}

function knownProject(db: Db, path: string | undefined): number | undefined {
  return path === undefined ? undefined : valueQuery(db, "select id from project where path = ?", "integer").get(path)
}

function projectId(db: Db, path: string): number {
  return (
    knownProject(db, path) ?? valueQuery(db, "insert into project (path) values (?) returning id", "integer").get(path)!
  )
}
