import { setImmediate } from "node:timers/promises"
import { createContext, Script } from "node:vm"
import { DexError, isDexError, messageOf } from "../core/error.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import { MATCH_MARK } from "../store/index/snippets.ts"
import { createRowFolding } from "./fold.ts"
import { isFilteredOut, listedPages } from "./scan.ts"
import { canMatch, type Filters, intersectRefs, type Scope, scopeOf } from "./scope.ts"

export type PatternSearch = Filters & {
  pattern: TextPattern
  by: "conversation" | "message"
  /** The number of lines to show before and after a match; undefined for none, and only a part of a long line. */
  contextLines?: number
  /** True to read on after the last row that is asked for, to the end. */
  countsAll: boolean
  limit: number
  offset: number
  /** Called once if the search takes longer than a person waits without a word. */
  onSlow?: (progress: { read: number; of: number }) => void
}

export type PatternHit = {
  row: ConversationRow
  /** Set for a subagent that is shown in the row of the conversation that started it. */
  parent?: ConversationRow
  message: StoredMessage
  /** The beginning of the match in its line, marked. */
  snippet: string
  lines?: string[]
  /** The number of other matching messages in this row, among those that were read. */
  more: number
}

export type PatternOutcome = {
  hits: PatternHit[]
  /** The matching messages, and the conversations of which they are, among those that were read. */
  messages: number
  conversations: number
  /** True if everything was read in which the pattern could occur. */
  isComplete: boolean
  read: number
  of: number
  /** When the oldest conversation that was read ended. */
  backTo?: number
  /** Messages in which the search for the pattern took too long. */
  tooSlow: Required<Ref>[]
}

const SLOW_MS = 2_000
/** The longest time of a search, in milliseconds. The answer says how far it got. */
const MAX_TIME_MS = 60_000

/** Searches the text as dex keeps it, newest conversation first, until there are enough rows. */
export async function findPattern(
  store: HistoryReader,
  index: SearchIndex | undefined,
  input: PatternSearch,
): Promise<PatternOutcome> {
  const match = createMatcher(compilePattern(input.pattern))
  const outcome: PatternOutcome = {
    hits: [],
    messages: 0,
    conversations: 0,
    isComplete: true,
    read: 0,
    of: 0,
    tooSlow: [],
  }
  const scope = await scopeOf(store, input)
  if (scope === undefined || !canMatch(scope.filters)) return outcome
  const { filters } = scope
  const wanted = await wantedRefs(store, index, input, filters)
  const excluded = new Set(filters.excludedConversations?.map(formatRef))
  const startedAt = Date.now()
  let isSlow = false
  const findRow = createRowFolding(store, filters)
  const rows = new Map<string, PatternHit>()
  const isEnough = () => !input.countsAll && rows.size >= input.offset + input.limit
  reading: for await (const page of listedPages(store, input, filters)) {
    outcome.of += page.added
    for (const row of page.rows) {
      const tookMs = Date.now() - startedAt
      if (tookMs >= SLOW_MS && !isSlow) {
        isSlow = true
        input.onSlow?.(outcome)
      }
      if (isEnough() || tookMs >= MAX_TIME_MS) {
        outcome.isComplete = false
        break reading
      }
      outcome.read++
      outcome.backTo = row.ended_at ?? outcome.backTo
      const name = formatRef(row.ref)
      if ((wanted && !wanted.has(name)) || excluded.has(name)) continue
      if (filters.sources && !filters.sources.includes(row.ref.source)) continue
      const messages = (await store.messages(row.ref)).filter(
        (message) => !message.copied && !isFilteredOut(message, row.ended_at, input),
      )
      const texts = messages.map(rawText)
      const found = match(texts, startedAt + MAX_TIME_MS).flatMap((result, i) =>
        result === undefined ? [] : [{ i, result }],
      )
      const hits: PatternHit[] = []
      for (const { i, result } of found) {
        const message = messages[i]!
        if (result === "too_slow") outcome.tooSlow.push({ ...row.ref, number: message.number } as Required<Ref>)
        else hits.push({ row, message, more: 0, ...shownMatch(texts[i]!, result, input.contextLines) })
      }
      outcome.messages += hits.length
      if (hits.length > 0) outcome.conversations++
      for (const hit of hits) {
        const { name: rowName, parent } = await findRow(row)
        const key = input.by === "message" ? `${name}#${hit.message.number}` : rowName
        const leader = rows.get(key)
        if (leader) leader.more++
        else rows.set(key, { ...hit, parent: input.by === "message" ? undefined : parent })
      }
      await setImmediate() // Lets a server answer others.
    }
  }
  return { ...outcome, hits: [...rows.values()].slice(input.offset, input.offset + input.limit) }
}

/** The conversations in which the pattern may occur. Undefined if every one of them has to be read. */
async function wantedRefs(
  store: HistoryReader,
  index: SearchIndex | undefined,
  { pattern }: PatternSearch,
  { conversations }: Scope["filters"],
): Promise<Set<string> | undefined> {
  const narrowed = index && (await conversationsWithWords(store, index, wordsInEveryMatch(pattern)))
  const lists = [conversations, narrowed].filter((refs) => refs !== undefined)
  return lists.length === 0 ? undefined : new Set(intersectRefs(lists).map(formatRef))
}

/** Undefined if the index does not know: it is behind or damaged, or the words are too common. */
async function conversationsWithWords(
  store: HistoryReader,
  index: SearchIndex,
  words: readonly string[],
): Promise<Ref[] | undefined> {
  try {
    if (words.length === 0 || (await index.isBehind(store))) return undefined
    const terms = words.map((word) => ({ words: word.toLowerCase() }))
    const { total_is_at_least } = await index.count({ match: terms.slice(0, 1), required: terms })
    if (total_is_at_least) return undefined
    const newest = await index.newest({ all: terms.map((term) => [term]), limit: Number.MAX_SAFE_INTEGER })
    return newest.map(({ ref }) => ref)
  } catch (error) {
    if (isDexError(error) && error.code === "index_damaged") return undefined
    throw error
  }
}

/** The text of all parts, without the labels that dex puts before them. */
function rawText({ parts }: StoredMessage): string {
  return parts.map(({ text }) => text).join("\n")
}

const LEAD_CHARS = 60
const LINE_CHARS = 300

/** The line of a match with the match marked, and the lines around it. A match of several lines ends with the first one. */
function shownMatch(text: string, { index, length }: Exclude<PatternMatch, undefined | "too_slow">, around?: number) {
  const lineStart = text.lastIndexOf("\n", index - 1) + 1
  const lineEnd = endOfLine(text, index)
  const end = Math.min(index + length, lineEnd)
  const clean = (part: string) => part.replaceAll(MATCH_MARK, "")
  const from = Math.max(lineStart, index - LEAD_CHARS)
  const marked = clean(text.slice(index, Math.min(end, index + LINE_CHARS)))
  const line = [
    from > lineStart ? "…" : "",
    clean(text.slice(from, index)),
    marked === "" ? "" : MATCH_MARK + marked + MATCH_MARK,
    clean(text.slice(end, Math.min(lineEnd, end + LINE_CHARS))),
  ].join("")
  if (around === undefined) return { snippet: line.trim() }
  const before = lineStart === 0 ? [] : text.slice(0, lineStart - 1).split("\n")
  const after = lineEnd === text.length ? [] : text.slice(lineEnd + 1).split("\n")
  const shortened = (lines: string[]) => lines.map((other) => clean(other.slice(0, LINE_CHARS)))
  return {
    snippet: line.trim(),
    lines: [...(around === 0 ? [] : shortened(before.slice(-around))), line, ...shortened(after.slice(0, around))],
  }
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from)
  return end === -1 ? text.length : end
}

/** A regular expression, or a fixed text. */
export type TextPattern = { text: string; isFixed: boolean; wholeWords: boolean }

/** The first match in a text, or `too_slow` if that could not be found out in MATCH_MS. */
export type PatternMatch = { index: number; length: number } | "too_slow" | undefined

/** The longest time for the match of one text, in milliseconds. Some patterns would take years: `(a+)+$`. */
const MATCH_MS = 250
/** A part of a word, for the index and for this search. */
const LETTER = "[\\p{L}\\p{N}\\p{Co}_]"

/**
 * Compiles a pattern. A pattern without capital letters also finds them. `^` and `$` are the beginning and the end of a line.
 * Throws a DexError if it is not a regular expression.
 */
export function compilePattern({ text, isFixed, wholeWords }: TextPattern): RegExp {
  const source = isFixed ? text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&") : text
  const flags = `m${hasCapital(text, isFixed) ? "" : "i"}${wholeWords || /\\[pP]\{|\\u\{/.test(source) ? "u" : ""}`
  try {
    new RegExp(source, flags) // A mistake is reported without what is added for whole words.
    return new RegExp(wholeWords ? `(?<!${LETTER})(?:${source})(?!${LETTER})` : source, flags)
  } catch (error) {
    const mistake = /: ([^:]+)$/.exec(messageOf(error))?.[1] ?? messageOf(error)
    throw new DexError("usage", `That is no regular expression: ${mistake}. -F searches for it as it is written.`, {
      cause: error,
    })
  }
}

function hasCapital(text: string, isFixed: boolean): boolean {
  return /\p{Lu}/u.test(isFixed ? text : text.replaceAll(/\\[pP]\{[^}]*\}|\\./g, ""))
}

/**
 * Returns words that every match contains between two separators, as the index has them. They narrow a search without losing a
 * match; a part of a word would not. Only characters that are written literally count.
 */
export function wordsInEveryMatch({ text, isFixed, wholeWords }: TextPattern): string[] {
  if (!isFixed && /[[({|]|\\\\/.test(text)) return []
  const searched = wholeWords ? ` ${text} ` : text
  return [...searched.matchAll(isFixed ? FIXED_WORD : LITERAL_WORD)].map(([word]) => word)
}

const FIXED_WORD =
  /(?<=[\x20-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e\n])[A-Za-z0-9]{3,}(?=[\x20-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e\n])/g
const LITERAL_WORD =
  /(?<=[ !"#%&',/:;<=>@`~-]|\\[.()[\]{}+*?^$|\\/-])[A-Za-z0-9]{3,}(?=(?:[ !"#%&',/:;<=>@`~-]|\\[.()[\]{}+*?^$|\\/-])(?![*?{]))/g

/**
 * Returns a function that finds the first match of each text. It never takes longer than a few MATCH_MS for one text, and after
 * `until`, a time in milliseconds, it gives up on all that are left.
 */
export function createMatcher(pattern: RegExp): (texts: readonly string[], until?: number) => PatternMatch[] {
  const work = { texts: [] as readonly string[], matches: [] as PatternMatch[], end: 0 }
  const matchAll = () => {
    while (work.matches.length < work.end) {
      const match = pattern.exec(work.texts[work.matches.length]!)
      work.matches.push(match ? { index: match.index, length: match[0].length } : undefined)
    }
  }
  const context = createContext({ matchAll })
  const script = new Script("matchAll()")
  /** Goes on until the end or the time limit. Returns false if the time is up. A script is the only work that V8 interrupts. */
  const runTo = (end: number) => {
    work.end = end
    try {
      script.runInContext(context, { timeout: MATCH_MS })
      return true
    } catch (error) {
      // A pattern can also need more memory than V8 gives it.
      if ((error as { code?: string }).code === "ERR_SCRIPT_EXECUTION_TIMEOUT" || error instanceof RangeError)
        return false
      throw error
    }
  }
  return (texts, until = Number.POSITIVE_INFINITY) => {
    Object.assign(work, { texts, matches: [] })
    while (!runTo(texts.length)) {
      if (Date.now() >= until) return texts.map((_, i) => (i < work.matches.length ? work.matches[i] : "too_slow"))
      // The text at which the time was up may only be the last of many: it gets the whole time once.
      if (!runTo(work.matches.length + 1)) work.matches.push("too_slow")
    }
    return work.matches
  }
}
