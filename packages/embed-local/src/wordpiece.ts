/**
 * Converts a text to the token numbers that an uncased BERT model reads. Returns at most `most` numbers, including the special
 * tokens at both ends.
 */
export type Tokenizer = (text: string, most: number) => number[]

/** The maximum length of a word in characters. A longer word becomes the unknown token, as in BERT's own tokenizer. */
const LONGEST_WORD = 100

/** Creates a tokenizer. `vocabulary` has one token per line, and a token's number is the index of its line. */
export function createTokenizer(vocabulary: string): Tokenizer {
  const numbers = new Map(
    vocabulary
      .trimEnd()
      .split("\n")
      .map((token, number) => [token, number]),
  )
  const special = (name: string) => {
    const number = numbers.get(name)
    if (number === undefined) throw new Error(`The vocabulary has no ${name}`)
    return number
  }
  const [first, last, unknown] = [special("[CLS]"), special("[SEP]"), special("[UNK]")]
  return (text, most) => {
    const tokens = [first]
    for (const word of wordsOf(text)) {
      if (tokens.length >= most - 1) break
      tokens.push(...(piecesOf(word, numbers) ?? [unknown]))
    }
    return [...tokens.slice(0, most - 1), last]
  }
}

/**
 * Splits a word into the longest known beginning, then the longest known continuation, and so on. Returns undefined if the word
 * is too long or a part of it is unknown.
 */
function piecesOf(word: string, numbers: Map<string, number>): number[] | undefined {
  const letters = [...word]
  if (letters.length > LONGEST_WORD) return undefined
  const pieces: number[] = []
  let start = 0
  while (start < letters.length) {
    let end = letters.length
    let found: number | undefined
    for (; end > start && found === undefined; end--)
      found = numbers.get((start > 0 ? "##" : "") + letters.slice(start, end).join(""))
    if (found === undefined) return undefined
    pieces.push(found)
    start = end + 1
  }
  return pieces
}

const IGNORED = /[\0\ufffd]|(?![\t\n\r])\p{C}/gu
const MARKS = /\p{Mn}/gu
/**
 * Matches the characters that are always separate tokens: Chinese characters and punctuation. As in BERT, punctuation includes
 * the symbols $, +, <, =, >, ^, `, | and ~.
 */
const ALONE =
  /[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}]|[!-/:-@[-`{-~]|\p{P}/gu

/** Yields the words in lower case, without accents. A punctuation mark or a Chinese character counts as a word. */
function* wordsOf(text: string): Generator<string> {
  const clean = text.replace(IGNORED, "").toLowerCase().normalize("NFD").replace(MARKS, "").replace(ALONE, " $& ")
  for (const [word] of clean.matchAll(/\S+/g)) yield word
}
