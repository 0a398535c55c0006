import type { Db } from "../sqlite/engine.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { anyOf, expressionOf, type Term } from "./terms.ts"
import { withTokenizer } from "./tokenizer.ts"

/** The length of a snippet in words, about 300 characters of ordinary text. */
const SNIPPET_WORDS = 44
/** The number of characters of a text that FTS5 examines. Words beyond it are found with a plain text search. */
const WINDOW_CHARS = 20_000

/** The mark on both sides of a matched word, as in Markdown. It is removed from the text itself, so that it is unambiguous. */
export const MATCH_MARK = "**"

export type TextMatch = {
  /** The passage that shows the matched words, marked. */
  snippet: string
  /** Whether the text contains each of the words. */
  contains: boolean[]
}

/**
 * Matches texts as the index does. The index contains no text, so its tokenizer processes these texts again, in memory: the
 * marked words are exactly those that matched, including stems. If a text contains one of the phrases, the snippet shows it.
 */
export function matchTexts(
  texts: string[],
  terms: Term[],
  words: string[],
  phrases: readonly Term[] = [],
): TextMatch[] {
  return withTokenizer((db) => {
    const insert = db.prepare("insert into look (rowid, x) values (?, ?)")
    const phraseTexts = phrases.map((phrase) => phrase.words)
    const windows = texts.map((text) =>
      windowOf(withoutMarks(text), containsAny(text, phraseTexts) ? phraseTexts : words),
    )
    for (const [i, text] of windows.entries()) insert.run(i + 1, text)
    const snippetQuery = rowQuery(
      db,
      "select rowid, snippet(look, 0, @mark, @mark, '…', @words) as snippet from look where look match @match",
      { rowid: "integer", snippet: "text" },
    )
    const snippetsFor = (wantedTerms: readonly Term[]) =>
      wantedTerms.length === 0
        ? []
        : snippetQuery.all({ mark: MATCH_MARK, words: SNIPPET_WORDS, match: anyOf(wantedTerms) })
    const snippetByRow = new Map(
      [...snippetsFor(terms), ...snippetsFor(phrases)].map((row) => [row.rowid, row.snippet]),
    )
    const rowsByWord = rowsContaining(db, words)
    return texts.map((text, i) => ({
      snippet: asLine(snippetByRow.get(i + 1) ?? firstWords(windows[i]!)),
      contains: words.map((word, w) => rowsByWord[w]!.has(i + 1) || isBeyondWindow(text, word)),
    }))
  })
}

/** For each text and each word, whether the text contains the word according to the index's tokenizer. */
export function containedWords(texts: readonly string[], words: readonly string[]): boolean[][] {
  return withTokenizer((db) => {
    const insert = db.prepare("insert into look (rowid, x) values (?, ?)")
    for (const [i, text] of texts.entries()) insert.run(i + 1, text)
    const rowsByWord = rowsContaining(db, words)
    return texts.map((_, i) => rowsByWord.map((rows) => rows.has(i + 1)))
  })
}

/** Returns the words in these texts that have the same stem as one of the given words, in lower case, each once. */
export function spellingsIn(texts: readonly string[], words: readonly string[]): string[] {
  if (words.length === 0) return []
  return withTokenizer((db) => {
    const insert = db.prepare("insert into look (x) values (?)")
    for (const text of texts) insert.run(withoutMarks(text))
    const highlightQuery = valueQuery(
      db,
      "select highlight(look, 0, @mark, @mark) from look where look match @match",
      "text",
    )
    const highlighted = highlightQuery.all({ mark: MATCH_MARK, match: anyOf(words.map((word) => ({ words: word }))) })
    return [...new Set(highlighted.flatMap((text) => text.split(MATCH_MARK).filter((_, i) => i % 2 === 1)))].map(
      (word) => word.toLowerCase(),
    )
  })
}

function containsAny(text: string, phrases: readonly string[]): boolean {
  const lower = text.toLowerCase()
  return phrases.some((phrase) => lower.includes(phrase.toLowerCase()))
}

function rowsContaining(db: Db, words: readonly string[]): Set<number>[] {
  const selectContaining = valueQuery(db, "select rowid from look where look match ?", "integer")
  return words.map((word) => new Set(selectContaining.all(expressionOf({ words: word }))))
}

function isBeyondWindow(text: string, word: string): boolean {
  return text.length > WINDOW_CHARS && text.toLowerCase().includes(word)
}

/** Returns the part of a long text around the first of these words that occurs in it. */
function windowOf(text: string, words: string[]): string {
  if (text.length <= WINDOW_CHARS) return text
  const lower = text.toLowerCase()
  const positions = words.map((word) => lower.indexOf(word.toLowerCase())).filter((position) => position >= 0)
  const start = positions.length === 0 ? 0 : Math.max(0, Math.min(...positions) - WINDOW_CHARS / 4)
  return text.slice(start, start + WINDOW_CHARS)
}

function withoutMarks(text: string): string {
  return text.replaceAll(MATCH_MARK, "")
}

const FIRST_CHARS = 300

function firstWords(text: string): string {
  return text.length <= FIRST_CHARS ? text : `${text.slice(0, FIRST_CHARS).replace(/\s\S*$/, "")}…`
}

/** A passage as one line, without the signs that make headings, quotes, tables, rules and blocks of code in Markdown. */
function asLine(passage: string): string {
  const lines = passage.split("\n").map((line) => {
    if (/^[\s|:-]*$|^\s*(?:```|~~~)/.test(line)) return ""
    const text = line.replace(/^(…?)\s*(?:#{1,6}|>+)\s+/, "$1")
    return /^\s*…?\||\|\s*…?$/.test(text)
      ? text
          .split(/\s*\|\s*/)
          .filter(Boolean)
          .join(" · ")
      : text
  })
  return lines.join(" ").replace(/\s+/g, " ").trim()
}

/** Cuts a part of a snippet around its first marked word, with balanced marks. `sizeOf` defaults to the size in JSON. */
export function clipSnippet(snippet: string, maxSize: number, sizeOf = sizeInJson, maxLead = LEAD_WORDS): string {
  if (sizeOf(snippet) <= maxSize) return snippet
  const words = snippet.split(" ")
  const firstMarked = Math.max(
    0,
    words.findIndex((word) => word.includes(MATCH_MARK)),
  )
  const fits = (from: number, to: number) => sizeOf(words.slice(from, to).join(" ")) <= maxSize - ELLIPSES_SIZE
  let from = firstMarked
  let to = firstMarked + 1
  for (;;) {
    const canGrowRight = to < words.length && fits(from, to + 1)
    if (canGrowRight) to++
    const canGrowLeft = from > 0 && firstMarked - from < maxLead && fits(from - 1, to)
    if (canGrowLeft) from--
    if (!canGrowRight && !canGrowLeft) break
  }
  const text = words.slice(from, to).join(" ")
  const clipped = sizeOf(text) <= maxSize ? text : text.slice(0, maxSize)
  const balanced = clipped.split(MATCH_MARK).length % 2 === 1 ? clipped : `${clipped}${MATCH_MARK}`
  return `${from > 0 && !balanced.startsWith("…") ? "…" : ""}${balanced}${to < words.length && !balanced.endsWith("…") ? "…" : ""}`
}

function sizeInJson(text: string): number {
  return JSON.stringify(text).length - 2
}

/** The space for an ellipsis on each side, in characters. */
const ELLIPSES_SIZE = 2
/** The number of words to keep before the first marked one. */
const LEAD_WORDS = 8
