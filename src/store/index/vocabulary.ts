import { isDexError } from "../../core/error.ts"
import { refFrom } from "../../core/ref.ts"
import { cjkRuns, hiddenWords } from "../../core/words.ts"
import type { HistoryReader } from "../history/store.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../sqlite/typed-query.ts"
import { CARD_NUMBER, fieldsOf, type IndexedText } from "./fields.ts"

// The words as people wrote them: the index contains only stems, and nobody types stems. Conversations are divided into 30
// groups, and each word is stored with the groups in which it occurs. The number of groups tells roughly how common a word is.
// A writer need not know a conversation's earlier words. After a conversation was forgotten, only its group is read again to
// find the words that no longer occur.

/** A word as it is written, in lower case, and the number of groups of conversations in which it occurs (1 to 30). */
export type WrittenWord = { word: string; spread: number }

/** The number of groups, few enough that a bit mask of them is never a negative number in JavaScript. */
const GROUP_COUNT = 30
const ALL_GROUPS = 2 ** GROUP_COUNT - 1

export type ReadText = { conversation: number; fields: IndexedText }

export function saveVocabulary(db: Db, texts: ReadText[]): void {
  const seen = seenWordsOf(db)
  const groupsByWord = new Map<string, number>()
  for (const { conversation, fields } of texts) scanFields(fields, bitOf(conversation), seen, groupsByWord)
  saveWordGroups(db, groupsByWord)
}

function bitOf(conversation: number): number {
  return 1 << (conversation % GROUP_COUNT)
}

function scanFields(fields: IndexedText, bit: number, seen: SeenWords, groupsByWord: Map<string, number>): void {
  for (const text of Object.values(fields)) scanWords(text, bit, seen, groupsByWord)
}

function saveWordGroups(db: Db, groupsByWord: Map<string, number>): void {
  if (groupsByWord.size === 0) return
  // Words consist of letters, so they are their own JSON.
  const fields = [...groupsByWord.keys()].sort().map((word) => `"${word}":${groupsByWord.get(word)}`)
  db.prepare(SAVE_WORDS).run(`{${fields.join()}}`)
}

/** Saves all words in one statement, which takes half as long as one by one. */
const SAVE_WORDS = `insert into word (word, groups) select key, value from json_each(?) where true
  on conflict (word) do update set groups = groups | excluded.groups`

/** The words that this connection saved, valid while nobody else writes. */
const savedWords = new WeakMap<Db, { dataVersion: unknown; seen: SeenWords }>()

function seenWordsOf(db: Db): SeenWords {
  const dataVersion = db.pragma("data_version", { simple: true })
  const cached = savedWords.get(db)
  if (cached && cached.dataVersion === dataVersion) return cached.seen
  const seen = createSeenWords()
  savedWords.set(db, { dataVersion, seen })
  return seen
}

/** Call this after a transaction was rolled back. */
export function clearSavedWords(db: Db): void {
  savedWords.delete(db)
}

/** Marks conversations whose messages were deleted or changed, so that some of their words may be gone. */
export function markStaleWords(db: Db, conversations: number[]): void {
  const stale = conversations.reduce((groups, conversation) => groups | bitOf(conversation), 0)
  if (stale !== 0) saveGroups(db, "stale_groups", groupsOf(db, "stale_groups") | stale)
}

/** Reads the groups that were never read, until the deadline. */
export async function readUnreadGroups(db: Db, store: HistoryReader, deadline: number | undefined): Promise<void> {
  const unread = groupsOf(db, "unread_groups")
  if (unread !== 0) await readGroups(db, store, unread, deadline)
}

/** Reads the groups in which words may be gone and those that were never read, or all groups if `all` is true. */
export async function readStaleGroups(db: Db, store: HistoryReader, all = false): Promise<void> {
  await readGroups(db, store, all ? ALL_GROUPS : groupsOf(db, "stale_groups") | groupsOf(db, "unread_groups"))
}

type GroupsKey = "stale_groups" | "unread_groups"

function groupsOf(db: Db, key: GroupsKey): number {
  return Number(db.prepare("select value from meta where key = ?").pluck().get(key) ?? 0)
}

function saveGroups(db: Db, key: GroupsKey, groups: number): void {
  db.prepare("insert or replace into meta (key, value) values (?, ?)").run(key, String(groups))
}

async function readGroups(db: Db, store: HistoryReader, groups: number, deadline = Number.POSITIVE_INFINITY) {
  for (let group = 0; group < GROUP_COUNT && Date.now() < deadline; group++) {
    const bit = 1 << group
    if ((groups & bit) === 0) continue
    const before = indexToken(db)
    const groupsByWord = await readGroup(db, store, group)
    inTransaction(db, () => {
      // Another process may have added words that were not read here.
      if (!groupsByWord || indexToken(db) !== before) return
      replaceGroup(db, bit, groupsByWord)
      for (const key of ["stale_groups", "unread_groups"] as const) saveGroups(db, key, groupsOf(db, key) & ~bit)
    })
  }
  clearSavedWords(db)
}

function indexToken(db: Db): unknown {
  return db.prepare("select value from meta where key = 'token'").pluck().get()
}

/** Returns every word of a group. Returns undefined if the history cannot be read; the stored words then stay. */
async function readGroup(db: Db, store: HistoryReader, group: number): Promise<Map<string, number> | undefined> {
  const groupsByWord = new Map<string, number>()
  const seen = createSeenWords()
  const conversations = rowQuery(db, SELECT_GROUP_CONVERSATIONS, CONVERSATION_ROW).all({ group, groups: GROUP_COUNT })
  const selectNumbers = valueQuery(db, "select number from doc where conversation_id = ? and number <> ?", "integer")
  for (const { id, source, native_id, card } of conversations) {
    try {
      for (const message of await store.messages(refFrom(source, native_id), selectNumbers.all(id, CARD_NUMBER)))
        scanFields(fieldsOf(message), 1 << group, seen, groupsByWord)
    } catch (error) {
      if (isDexError(error) && error.code === "corrupt") return undefined
      throw error
    }
    if (card !== null) scanWords(`${card}\n${hiddenWords(card)}`, 1 << group, seen, groupsByWord)
  }
  return groupsByWord
}
const CONVERSATION_ROW = { id: "integer", source: "text", native_id: "text", card: "text?" } as const
const SELECT_GROUP_CONVERSATIONS =
  "select id, source, native_id, card from conversation where id % cast(@groups as integer) = cast(@group as integer)"

function replaceGroup(db: Db, bit: number, groupsByWord: Map<string, number>): void {
  saveWordGroups(db, groupsByWord)
  const storedWords = valueQuery(db, "select word from word where groups & ? <> 0", "text").all(bit)
  const removeFromGroup = db.prepare("update word set groups = groups & ~cast(? as integer) where word = ?")
  for (const word of storedWords) if (!groupsByWord.has(word)) removeFromGroup.run(bit, word)
  db.exec("delete from word where groups = 0")
}

/** Returns the words with this beginning, most common first. */
export function wordsBeginning(db: Db, beginning: string, limit = Number.MAX_SAFE_INTEGER): WrittenWord[] {
  const range = { from: beginning, to: `${beginning}\u{10ffff}`, limit }
  // Thousands of words begin with one letter. If enough of them occur in all groups, the others need not be read.
  const inAllGroups = findWords(db, `${IN_RANGE} and groups = ${ALL_GROUPS} limit @limit`, range)
  if (inAllGroups.length === limit) return inAllGroups
  const { limit: _, ...unlimited } = range
  return findWords(db, IN_RANGE, unlimited)
    .sort((a, b) => b.spread - a.spread)
    .slice(0, limit)
}

const IN_RANGE = "word >= @from and word < @to"

export function wordsOfLength(db: Db, least: number, most: number): WrittenWord[] {
  return findWords(db, "length(word) between @least and @most", { least, most })
}

function findWords(db: Db, CONDITION: string, values: object): WrittenWord[] {
  if (!hasVocabulary(db)) return []
  const rows = tupleQuery(db, `select word, groups from word where ${CONDITION}`, ["text", "integer"]).all(values)
  return rows.map(([word, groups]) => ({ word, spread: countBits(groups) }))
}

/** Returns false for an index from an older version, which has no vocabulary. */
function hasVocabulary(db: Db): boolean {
  return db.prepare("select 1 from sqlite_master where name = 'word'").get() !== undefined
}

function countBits(groups: number): number {
  let bits = 0
  for (let remaining = groups; remaining !== 0; remaining &= remaining - 1) bits++
  return bits
}

// Finds the words of a text as they are written. Every indexed text is scanned once, so this code only compares characters and
// numbers, and creates strings only for new words.

/** The lengths of words that are stored. Shorter words are not suggested, and longer ones are not words. */
const MIN_LETTERS = 4
const MAX_LETTERS = 64

/**
 * The words seen with each bit, as pairs of a word's hash and its bits. Of half a million words, about 25 share their hash with
 * another one and may wrongly count as seen.
 */
type SeenWords = { slots: Int32Array; size: number }

export function createSeenWords(): SeenWords {
  return { slots: new Int32Array(2 * 4096), size: 0 }
}

/** Adds to `groupsByWord`, in lower case, the words of a text that were not seen with this bit. */
export function scanWords(text: string, bit: number, seen: SeenWords, groupsByWord: Map<string, number>): void {
  const { length } = text
  let start = 0
  let hash = 0
  let isWord = true
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    const letter = LETTERS[code]!
    if (letter > UNKNOWN) {
      hash = Math.imul(hash, 0x01000193) ^ letter
      continue
    }
    if (letter === UNKNOWN) {
      LETTERS[code] = codeOf(String.fromCharCode(code))
      i-- // look the character up again, now that its code is known
    } else if (letter === NO_LETTER) isWord = false
    else {
      if (isWord && i - start >= MIN_LETTERS) addWord(text, start, i, hash, bit, seen, groupsByWord)
      start = i + 1
      hash = 0
      isWord = true
    }
  }
  if (isWord && length - start >= MIN_LETTERS) addWord(text, start, length, hash, bit, seen, groupsByWord)
}

function addWord(
  text: string,
  start: number,
  end: number,
  hash: number,
  bit: number,
  seen: SeenWords,
  groupsByWord: Map<string, number>,
): void {
  if (end - start > MAX_LETTERS || !isNew(seen, hash, bit)) return
  const word = text.slice(start, end).toLowerCase()
  groupsByWord.set(word, (groupsByWord.get(word) ?? 0) | bit)
}

/**
 * Codes for characters that are not letters. A SEPARATOR ends a word, as in the index's tokenizer. A word with a NO_LETTER, such
 * as `a1`, is not stored, because nobody mistypes it. An UNKNOWN character has not occurred yet.
 */
const SEPARATOR = 0
const NO_LETTER = 1
const UNKNOWN = 2
/** Maps each character to its lower-case letter, or to one of these three codes. */
const LETTERS = new Uint16Array(0x10000).fill(UNKNOWN)

function codeOf(character: string): number {
  if (/[\p{N}\p{Co}\p{Cs}]/u.test(character) || cjkRuns(character).length > 0) return NO_LETTER
  if (!/[\p{L}\p{M}]/u.test(character)) return SEPARATOR
  const lower = character.toLowerCase()
  return lower.length === 1 ? lower.charCodeAt(0) : NO_LETTER
}

function isNew(seen: SeenWords, hash: number, bit: number): boolean {
  const { slots } = seen
  const mixedHash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  const key = (mixedHash ^ (mixedHash >>> 13)) | 1 // never 0, which marks an empty slot
  const slot = slotOf(slots, key)
  if ((slots[slot + 1]! & bit) !== 0) return false
  if (slots[slot] === 0) seen.size++
  slots[slot] = key
  slots[slot + 1]! |= bit
  if (seen.size * 4 > slots.length) seen.slots = doubleSlots(slots)
  return true
}

function slotOf(slots: Int32Array, key: number): number {
  const mask = slots.length - 1
  let slot = key & mask & ~1
  while (slots[slot] !== 0 && slots[slot] !== key) slot = (slot + 2) & mask
  return slot
}

function doubleSlots(slots: Int32Array): Int32Array {
  const doubled = new Int32Array(2 * slots.length)
  for (let i = 0; i < slots.length; i += 2) {
    if (slots[i] === 0) continue
    const slot = slotOf(doubled, slots[i]!)
    doubled[slot] = slots[i]!
    doubled[slot + 1] = slots[i + 1]!
  }
  return doubled
}
