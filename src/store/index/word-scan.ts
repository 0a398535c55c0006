import { cjkRuns } from "../../core/words.ts"

// Which words stand in a text, as they are written? Every text that is indexed goes through here once, so it looks at
// characters and numbers only, and makes a string of a word just where the word is new.

/** Shorter words are not guessed at, and longer ones are not words. */
const LEAST_LETTERS = 4
const MOST_LETTERS = 64

/**
 * Which words were seen with which bits: pairs of a word's hash and its bits. Of half a million words about 25 share their hash
 * with another, and may be taken for seen when they are not.
 */
export type SeenWords = { slots: Int32Array; size: number }

export function noWordsSeen(): SeenWords {
  return { slots: new Int32Array(2 * 4096), size: 0 }
}

/** Adds the words of a text that were not seen with this bit to `found`, in lower case. */
export function scanWords(text: string, bit: number, seen: SeenWords, found: Map<string, number>): void {
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
      LETTERS[code] = lookAt(String.fromCharCode(code))
      i-- // now it is known
    } else if (letter === NO_LETTER) isWord = false
    else {
      if (isWord && i - start >= LEAST_LETTERS) add(text, start, i, hash, bit, seen, found)
      start = i + 1
      hash = 0
      isWord = true
    }
  }
  if (isWord && length - start >= LEAST_LETTERS) add(text, start, length, hash, bit, seen, found)
}

function add(
  text: string,
  start: number,
  end: number,
  hash: number,
  bit: number,
  seen: SeenWords,
  found: Map<string, number>,
): void {
  if (end - start > MOST_LETTERS || !isNew(seen, hash, bit)) return
  const word = text.slice(start, end).toLowerCase()
  found.set(word, (found.get(word) ?? 0) | bit)
}

/** What the index's tokenizer takes as the end of a word, and what makes of it something that nobody mistypes: `a1`. */
const SEPARATOR = 0
const NO_LETTER = 1
const UNKNOWN = 2
/** For each character the letter that it is in lower case, or one of these three. */
const LETTERS = new Uint16Array(0x10000).fill(UNKNOWN)

function lookAt(character: string): number {
  if (/[\p{N}\p{Co}\p{Cs}]/u.test(character) || cjkRuns(character).length > 0) return NO_LETTER
  if (!/[\p{L}\p{M}]/u.test(character)) return SEPARATOR
  const lower = character.toLowerCase()
  return lower.length === 1 ? lower.charCodeAt(0) : NO_LETTER
}

function isNew(seen: SeenWords, hash: number, bit: number): boolean {
  const { slots } = seen
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  const key = (mixed ^ (mixed >>> 13)) | 1 // 0 is an empty slot
  const at = slotOf(slots, key)
  if ((slots[at + 1]! & bit) !== 0) return false
  if (slots[at] === 0) seen.size++
  slots[at] = key
  slots[at + 1]! |= bit
  if (seen.size * 4 > slots.length) seen.slots = twiceAsMany(slots)
  return true
}

function slotOf(slots: Int32Array, key: number): number {
  const last = slots.length - 1
  let at = key & last & ~1
  while (slots[at] !== 0 && slots[at] !== key) at = (at + 2) & last
  return at
}

function twiceAsMany(slots: Int32Array): Int32Array {
  const more = new Int32Array(2 * slots.length)
  for (let i = 0; i < slots.length; i += 2) {
    if (slots[i] === 0) continue
    const at = slotOf(more, slots[i]!)
    more[at] = slots[i]!
    more[at + 1] = slots[i + 1]!
  }
  return more
}
