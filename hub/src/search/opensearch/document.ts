import { createHash } from "node:crypto"
import type { ConversationAccess, ConversationRow, StoredMessage } from "../../../../src/store/history/store.ts"
import {
  CARD_NUMBER,
  CARD_TAG,
  fieldsOf,
  INDEXED_KINDS,
  type IndexedText,
  messageTags,
  TEXT_COLUMNS,
  tagsOf,
} from "../../../../src/store/index/fields.ts"
import { indexWordsInOrder } from "../../../../src/store/index/tokenizer.ts"
import type { TenantKey } from "../../store/keyring.ts"
import { COLUMN_TIMES } from "./indexes.ts"

/** A word as the cluster knows it: a keyed hash, and the hashes of its beginnings. */
export type HashedWord = { word: string; beginnings: readonly string[] }
/** Hashes the words of each text, in order and with repeats. */
export type WordHasher = (texts: readonly string[]) => HashedWord[][]

/** The lengths of the beginnings that are indexed, in characters. */
export const BEGINNING_LENGTHS = [5, 7] as const

/** A run of characters that may be in words. The tokenizer ends a word at every other ASCII character. */
const RUN = /[A-Za-z0-9\u0080-\uffff]+/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are all ASCII characters.
const ASCII = /^[\0-\x7f]*$/
/** Longer runs are rarely words that occur again. */
const MAX_KEPT_LENGTH = 64
const MAX_KEPT = 50_000

/**
 * Hashes words as FTS5 finds them. Only runs that were not seen before are tokenized: taking every word from SQLite would need
 * several times as long.
 */
export function createWordHasher(key: TenantKey): WordHasher {
  const known = new Map<string, readonly HashedWord[]>()
  const hashed = (word: string): HashedWord => ({
    word: key.word(word),
    beginnings: beginningsOf(word).map((beginning) => hashedBeginning(key, beginning)),
  })
  return (texts) => {
    const runsOfTexts = texts.map((text) =>
      (text.match(RUN) ?? []).map((run) => (ASCII.test(run) ? run.toLowerCase() : run)),
    )
    if (known.size > MAX_KEPT) known.clear()
    const unknown = [...new Set(runsOfTexts.flat())].filter((run) => !known.has(run))
    const words = indexWordsInOrder(unknown)
    const found = new Map(unknown.map((run, i) => [run, words[i]!.map(hashed)]))
    for (const [run, list] of found) if (run.length <= MAX_KEPT_LENGTH) known.set(run, list)
    return runsOfTexts.map((runs) => runs.flatMap((run) => found.get(run) ?? known.get(run) ?? []))
  }
}

/** The indexed beginnings of a word. A word that is no longer than a beginning begins with itself. */
export function beginningsOf(word: string): string[] {
  const characters = [...word.slice(0, 2 * BEGINNING_LENGTHS.at(-1)!)]
  return BEGINNING_LENGTHS.flatMap((length) =>
    characters.length >= length ? [characters.slice(0, length).join("")] : [],
  )
}

/** Words contain no spaces, so a beginning never has the hash of a word. */
export function hashedBeginning(key: TenantKey, beginning: string): string {
  return key.word(`${beginning} `)
}

// The documents of an index: one for each message, and one for each conversation's card.

export const VISIBILITIES: readonly ConversationAccess["visibility"][] = ["private", "project", "org"]

export function documentId(conversation: number | string, number: number): string {
  return `${conversation}.${number}`
}

export function placeOf(id: string): { conversation: number; number: number } {
  const [conversation, number] = id.split(".").map(Number)
  return { conversation: conversation!, number: number! }
}

/** A message to index, or a card. `state` changes with everything that is in its document. */
export type IndexedEntry = { number: number; at?: number; state: string; fields: IndexedText; tags: string }
export type EntryState = Pick<IndexedEntry, "number" | "state">

/** A state has two parts. The first is the same for all entries of a conversation. */
function stateFields(both: string): { shared: string; state: string } {
  const [shared, state] = both.split(" ")
  return { shared: shared!, state: state! }
}

export function stateOf({ shared, state }: { shared: string; state: string }): string {
  return `${shared} ${state}`
}

/** The part of an entry's state that all of its conversation share: everything that determines who may read it and its tags. */
export function sharedState(row: Pick<ConversationRow, "access" | "ref" | "kind">): string {
  return shortHash([row.access, tagsOf(row, undefined)])
}

export function messageState(shared: string, version: number): string {
  return stateOf({ shared, state: String(version) })
}

/** The state of a card reveals none of its words. */
export function cardState(key: TenantKey, shared: string, card: IndexedText): string {
  return stateOf({ shared, state: key.word(JSON.stringify(card)) })
}

export function messageEntry(row: ConversationRow, message: StoredMessage, state: string): IndexedEntry {
  const tags = `${tagsOf(row, undefined)} ${messageTags(message)}`
  return { number: message.number, at: message.at ?? row.ended_at, state, fields: fieldsOf(message), tags }
}

export function cardEntry(row: ConversationRow, card: IndexedText, state: string): IndexedEntry {
  return { number: CARD_NUMBER, at: row.ended_at, state, fields: card, tags: `${tagsOf(row, undefined)} ${CARD_TAG}` }
}

/** Builds the documents of entries. It has no word and no name, only hashes and the numbers of PostgreSQL. */
export function documentsOf(
  entries: { conversation: string; row: ConversationRow; entry: IndexedEntry }[],
  hash: WordHasher,
  key: TenantKey,
): { id: string; document: object }[] {
  const texts = entries.flatMap(({ entry }) => TEXT_COLUMNS.map((column) => entry.fields[column]))
  const hashed = hash(texts)
  return entries.map(({ conversation, row, entry }, i) => {
    const columns = TEXT_COLUMNS.map((column, c) => ({
      times: COLUMN_TIMES[column],
      words: hashed[i * TEXT_COLUMNS.length + c]!,
    }))
    const { author, project, visibility } = row.access!
    const document = {
      words: columns.filter(({ words }) => words.length > 0).map(columnText),
      beginnings: [...new Set(columns.flatMap(({ words }) => words.flatMap(({ beginnings }) => beginnings)))].join(" "),
      tags: entry.tags.split(" ").map((tag) => key.word(tag)),
      author: String(author),
      project: String(project),
      visibility,
      conversation,
      kind: String(INDEXED_KINDS.indexOf(row.kind)),
      number: entry.number,
      at: entry.at,
      ...stateFields(entry.state),
    }
    return { id: documentId(conversation, entry.number), document }
  })
}

function columnText({ times, words }: { times: number; words: HashedWord[] }): string {
  const end = times === 1 ? "" : `~${times}`
  return words.map(({ word }) => word + end).join(" ")
}

function shortHash(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("base64url").slice(0, 12)
}
