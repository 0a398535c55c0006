import { isProse, outlineLines } from "../core/prose.ts"

/** A piece of a text that can be quoted in an answer: a sentence, a list item, a table row or a line of code. */
export type TextStatement = {
  /** The position in the text. */
  start: number
  end: number
  text: string
  kind: "sentence" | "item" | "row" | "code"
  /** The headings above the statement, nearest last. */
  headings: string[]
  /** The last sentence above the statement's line that is not in a list, a table or code. Empty directly below a heading. */
  lead: string
  /** The index among all statements of the text. */
  index: number
}

/** The maximum number of characters of a statement. A longer line is most likely the content of a file or a server's output. */
const MAX_STATEMENT_LENGTH = 700
const MAX_STATEMENTS = 400
const LIST_ITEM = /^(\s*(?:[-*+•]|\d{1,3}[.)])\s+)(?=\S)/
const TABLE_ROW = /^\s*\|.*\|\s*$/
const HORIZONTAL_RULE = /^[\s|:+=─━═_*-]+$/
/** Matches the space between two sentences. */
const BETWEEN_SENTENCES = /(?<=[.!?](?:["'”)*`]{0,3}))\s+(?=[\p{Lu}\p{N}`"'“(*[])/gu
/** Matches abbreviations whose full stop does not end a sentence. */
const ABBREVIATION = /(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|Dr|Mr|Ms)|^\s*\d{1,3})\.$/i

/** The statements of a text, in order, without headings, horizontal rules and machine output. */
export function statementsIn(text: string): TextStatement[] {
  const statements: TextStatement[] = []
  let lead = ""
  let headings: string[] = []
  const add = (start: number, end: number, kind: TextStatement["kind"]) => {
    const piece = text.slice(start, end)
    const from = start + piece.length - piece.trimStart().length
    const trimmed = piece.trim()
    if (trimmed.length > MAX_STATEMENT_LENGTH || !/[\p{L}\p{N}]/u.test(trimmed)) return
    statements.push({
      start: from,
      end: from + trimmed.length,
      text: trimmed,
      kind,
      headings,
      lead,
      index: statements.length,
    })
  }
  for (const { text: line, start, kind, headings: above } of outlineLines(text)) {
    if (statements.length >= MAX_STATEMENTS) break
    const end = start + line.length
    headings = above
    if (kind === "heading") lead = ""
    if (kind === "code") add(start, end, "code")
    if (kind !== "text" || line === "") continue
    if (HORIZONTAL_RULE.test(line)) continue
    if (TABLE_ROW.test(line)) {
      add(start, end, "row")
      continue
    }
    const item = LIST_ITEM.exec(line)
    const from = item ? start + item[1]!.length : start
    if (!isProse(line.slice(from - start))) continue
    for (const [first, last] of sentencesIn(text, from, end)) add(first, last, item ? "item" : "sentence")
    if (!item && !/^\s{2,}/.test(line)) lead = statements.at(-1)?.text ?? ""
  }
  return statements
}

function sentencesIn(text: string, from: number, to: number): [number, number][] {
  const line = text.slice(from, to)
  const sentences: [number, number][] = []
  let start = 0
  for (const gap of line.matchAll(BETWEEN_SENTENCES)) {
    if (ABBREVIATION.test(line.slice(start, gap.index))) continue
    sentences.push([from + start, from + gap.index])
    start = gap.index + gap[0].length
  }
  sentences.push([from + start, to])
  return sentences
}

/** The maximum number of words of a block, unless a single statement is longer. */
const MAX_BLOCK_WORDS = 45
const INTRODUCES = /:[*_`\s]*$/

/**
 * For each statement, the first and last statement of the block around it: as much of its paragraph, list or piece of code as
 * people read at once, with the sentence that introduces it. The lines below are added first, because the answer is more often below
 * the question's words than above them.
 */
export function blocksIn(text: string, statements: TextStatement[]): [first: number, last: number][] {
  const counts = statements.map((one) => one.text.split(/\s+/).length)
  const isJoined = statements.map((one, i) => {
    const next = statements[i + 1]
    if (next === undefined || one.headings !== next.headings || isAnnouncement(next.text)) return false
    const isList = one.kind === "item" && next.kind === "item"
    return isList || INTRODUCES.test(one.text) || !/\n\s*\n/.test(text.slice(one.end, next.start))
  })
  return statements.map((_, index) => {
    let [first, last] = [index, index]
    let words = counts[index]!
    while (isJoined[last] && words + counts[last + 1]! <= MAX_BLOCK_WORDS) words += counts[++last]!
    while (first > 0 && isJoined[first - 1] && words + counts[first - 1]! <= MAX_BLOCK_WORDS) {
      if (isAnnouncement(statements[first - 1]!.text)) break
      words += counts[--first]!
    }
    return [first, last]
  })
}

const ANNOUNCEMENT =
  /^(?:now|next|finally)\b|^(?:(?:ok(?:ay)?|great|good|perfect|now|first|next|so|alright|right|yes|hmm|wait|done|excellent)[,.!:—-]*\s+)*(?:let me|let's|i'll|i will|i'm going|i am going|i need to|i should|now i|i see|i can see|i've|i have|looking at|let us|i want|i think i|can you|could you|please)\b/i

/** True if a statement only says what its author is going to do. */
export function isAnnouncement(text: string): boolean {
  return ANNOUNCEMENT.test(text)
}

const INTENTION =
  /^(?:(?:ok(?:ay)?|great|good|perfect|now|first|next|so|alright|right|yes|hmm|wait|done|excellent)[,.!:—-]*\s+)*(?:let me|let's|let us|i'll|i will|i'm going|i am going|i need to|i should|now (?:i|run|check|verify|update|add|fix|test|build|commit))\b/i
const LINK_WITHIN_DOCUMENT = /^\[[^\]]*\]\(#[^)]*\)$/
const QUESTION = /\?["'”)*_`]*$/

const TEST_NAME = /\bTest[A-Z_]\w*|_test\.\w+\b|\.(?:test|spec)\.\w+\b/
/** With fewer words outside of code, a statement only names what it is about. */
const MIN_WORDS_BESIDE_NAMES = 5

/**
 * False for what never answers: what an agent is about to do, another question, an entry of a table of contents, and the name of a
 * test, unless the question is about tests.
 */
export function mayAnswer(question: string, { text }: TextStatement, isAgent: boolean): boolean {
  return (
    !(isAgent && INTENTION.test(text)) &&
    !QUESTION.test(text) &&
    !LINK_WITHIN_DOCUMENT.test(text) &&
    (!isTestName(text) || /\btests?\b/i.test(question))
  )
}

function isTestName(text: string): boolean {
  const words = text.replace(/`[^`]*`/g, " ").match(/\p{L}{2,}/gu) ?? []
  return TEST_NAME.test(text) && words.length < MIN_WORDS_BESIDE_NAMES
}
