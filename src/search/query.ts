import { cjkRuns, isStopword, pairsOfCharacters, splitIdentifier } from "../core/words.ts"
import type { Term } from "../store/index/terms.ts"

/** A parsed query. Any text is valid: everything that is not a filter, phrase or exclusion is a word. */
export type Query = {
  /** A message matches if it contains any of these terms. More and rarer matches rank higher. Each term occurs once. */
  terms: Term[]
  /** Adjacent words of the query, as phrases. Text with these phrases ranks higher. */
  pairs: Term[]
  /** Phrases in quotation marks. All of them must occur. */
  required: Term[]
  /** Words and phrases with a minus sign before them. None of these may occur. */
  excluded: Term[]
  filters: QueryFilters
  /** The typed text without filters and exclusions, for models. */
  text: string
  /** Plain words, for highlighting and for searching without an index. */
  words: string[]
  /** The excluded words as typed, so that the answer can name them. */
  without: string[]
}

export type QueryFilters = Partial<Record<(typeof FILTER_NAMES)[number], string>>

export const FILTER_NAMES = ["project", "source", "file", "tool", "role", "from", "to", "model", "tag"] as const

const TOKEN = /(-?)(?:([a-z]+):)?"([^"]*)"?|(\S+)/gi
const FILTER = new RegExp(`^(${FILTER_NAMES.join("|")}):(.+)$`, "i")
const WORD = /[\p{L}\p{N}\p{Co}\p{M}]+/gu
const HASH = /^(?=.*\d)[0-9a-f]{7,40}$/i
/** The maximum number of terms in a query, which is more than anybody types. Only the beginning of a pasted log is searched. */
const MAX_TERMS = 40
const MAX_QUERY_LENGTH = 4_000

export function parseQuery(typed: string, accepts: (filter: string, value: string) => boolean = () => true): Query {
  const query: Query = {
    terms: [],
    pairs: [],
    required: [],
    excluded: [],
    filters: {},
    text: "",
    words: [],
    without: [],
  }
  const text = typed.slice(0, MAX_QUERY_LENGTH).replaceAll("\0", " ")
  const isCommandLine = /(?:^|\s)--[a-z]/i.test(text)
  const plain: string[] = []
  const applyFilter = (name: string, value: string): boolean => {
    const filterName = FILTER_NAMES.find((one) => one === name.toLowerCase())
    if (filterName === undefined || value === "" || !accepts(filterName, value)) return false
    query.filters[filterName] = value
    return true
  }
  for (const [matched, minus, name, phrase, word] of text.matchAll(TOKEN)) {
    if (phrase !== undefined) {
      if (name !== undefined && minus === "" && applyFilter(name, phrase.trim())) continue
      if (!hasWord(phrase)) continue
      if (minus !== "") {
        query.excluded.push(termOf(phrase))
        query.without.push(phrase)
      } else {
        query.required.push(termOf(phrase))
        plain.push(phrase)
      }
      if (name !== undefined) plain.push(name)
      continue
    }
    const filterMatch = FILTER.exec(word ?? matched)
    if (filterMatch && applyFilter(filterMatch[1]!, filterMatch[2]!)) continue
    const excludedWord = /^-([\p{L}]{2,})$/u.exec(word ?? "")?.[1]
    if (excludedWord !== undefined && !isCommandLine) {
      query.excluded.push(termOf(excludedWord))
      query.without.push(excludedWord)
    } else if (hasWord(word ?? "")) plain.push(word!)
  }
  query.text = plain.join(" ")
  addTerms(query, plain)
  return query
}

function addTerms(query: Query, plain: string[]): void {
  const terms = new Map<string, Term>()
  const add = (text: string) => void terms.set(text.toLowerCase(), termOf(text))
  const words: string[] = []
  const contentWords = plain.flatMap((text) => text.match(WORD) ?? []).filter((word) => !isStopword(word))
  const keepAll = contentWords.length === 0
  for (const text of plain) {
    const parts = text.match(WORD) ?? []
    // A path, a flag or a snake_case name is more specific as a phrase than its parts are.
    if (parts.length > 1 && parts.length <= 12) add(parts.join(" "))
    for (const part of parts) {
      if (!keepAll && isStopword(part)) continue
      words.push(part)
      if (HASH.test(part)) terms.set(`${part.toLowerCase()}*`, { ...termOf(part), prefix: true })
      else add(part)
      const split = splitIdentifier(part)
      if (split !== undefined) {
        add(split)
        for (const piece of split.split(" ")) if (piece.length > 2 && !isStopword(piece)) add(piece)
      }
      for (const run of cjkRuns(part)) add(pairsOfCharacters(run))
    }
  }
  query.terms = [...terms.values()].slice(0, MAX_TERMS)
  query.words = [...new Set(words.map((word) => word.toLowerCase()))].slice(0, MAX_TERMS)
  query.pairs = query.words.slice(1).map((word, i) => termOf(`${query.words[i]} ${word}`))
}

function hasWord(text: string): boolean {
  return /[\p{L}\p{N}\p{Co}]/u.test(text)
}

function termOf(text: string): Term {
  return { words: text.toLowerCase() }
}

/**
 * Returns true if the query is one word or only phrases in quotation marks. For other queries, a count would be useless, because
 * it would include messages with only one of the words.
 */
export function isOneTerm({ words, required }: Query): boolean {
  const inPhrases = required.flatMap((phrase) => phrase.words.split(/\s+/)).length
  return words.length <= 1 || words.length <= inPhrases
}

export function phrasesOf({ required, excluded }: Query): Partial<Pick<Query, "required" | "excluded">> {
  return { ...(required.length > 0 && { required }), ...(excluded.length > 0 && { excluded }) }
}
