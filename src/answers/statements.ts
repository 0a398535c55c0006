import { isProse, outlineLines } from "../core/prose.ts"

/** A piece of a text that can be quoted in an answer: a sentence, a list item, a table row or a line of code. */
export type TextStatement = {
  /** The position in the text. */
  start: number
  end: number
  text: string
  kind: "sentence" | "item" | "row" | "code"
  /** The headings above it, nearest last. */
  headings: string[]
  /** The sentence before a list or a block of code. */
  lead: string
  /** The index among all statements of the text. */
  place: number
}

/** The most characters of a statement. A longer line is a file or a server's output. */
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
      place: statements.length,
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
