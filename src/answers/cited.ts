import { dayOf, type Passage } from "./passages.ts"
import { findUnsupported } from "./specifics.ts"
import { findWordFault } from "./support.ts"

/** A sentence or block of code in an answer, with the numbers of the passages that support it. */
export type CitedPiece = { text: string; numbers: number[] }

export type CheckedAnswer = {
  kept: CitedPiece[]
  /** How many sentences were removed, by reason. */
  dropped: Record<DropReason, number>
}
export type DropReason = "no_source" | "wrong_quote" | "foreign_link" | "unsupported" | "unrelated" | "contradicted"

export const NONE_DROPPED: Record<DropReason, number> = {
  no_source: 0,
  wrong_quote: 0,
  foreign_link: 0,
  unsupported: 0,
  unrelated: 0,
  contradicted: 0,
}

const CITATION = /\[(\d{1,3})\]/g
const QUOTE = /“([^”]{12,})”|"([^"\n]{12,})"/g
const LINK = /\b(?:https?|ftp|file|data|javascript):[^\s<>)\]}"'`]+|\bwww\.[^\s<>)\]}"'`]+/gi

/**
 * Removes every sentence that its sources do not support. A sentence must cite a passage that was read. Its quotations,
 * links, names, paths, numbers, commands and code must be in the cited passages. Its words must be about the same subject,
 * and must not say the opposite. Code belongs to the sentence before it.
 */
export function checkCitations(answer: string, passage: (n: number) => Passage | undefined): CheckedAnswer {
  const checked: CheckedAnswer = { kept: [], dropped: { ...NONE_DROPPED } }
  let previousPiece: CitedPiece | undefined
  const pieces = piecesOf(answer)
  for (const [i, piece] of pieces.entries()) {
    const citedNumbers = [...piece.text.matchAll(CITATION)]
      .map((match) => Number(match[1]))
      .filter((n) => passage(n) !== undefined)
    const numbers =
      piece.isCode && citedNumbers.length === 0 ? (previousPiece?.numbers ?? []) : [...new Set(citedNumbers)]
    const sources = numbers.flatMap((n) => passage(n) ?? [])
    const code = pieces[i + 1]?.isCode && isUnfinished(piece.text) ? pieces[i + 1]!.text : ""
    const reason = findDropReason(piece, code, sources)
    if (reason) {
      checked.dropped[reason]++
      previousPiece = undefined
      continue
    }
    previousPiece = { text: withoutInvalidCitations(piece.text, passage), numbers }
    checked.kept.push(previousPiece)
  }
  return checked
}

/**
 * Returns why the sources do not support a piece, or undefined if they do. A sentence that introduces code says little on its
 * own, so it is checked together with the code.
 */
function findDropReason({ text, isCode }: Piece, code: string, sources: Passage[]): DropReason | undefined {
  if (sources.length === 0) return "no_source"
  const quotes = [...text.matchAll(QUOTE)].map((match) => match[1] ?? match[2]!)
  if (!quotes.every((quote) => sources.some((source) => containsQuote(source.text, quote)))) return "wrong_quote"
  if (!linksIn(text).every((link) => sources.some((source) => source.text.includes(link)))) return "foreign_link"
  const evidence = sources.map(evidenceIn)
  if (findUnsupported(text, evidence) !== undefined) return "unsupported"
  return isCode ? undefined : findWordFault(`${text}\n${code}`, evidence)
}

function evidenceIn({ text, title, ref, at }: Passage) {
  return { text, title, ref, date: dayOf({ at }) }
}

/** True if the text contains the quote. White space may differ; `…` matches omitted text. */
export function containsQuote(text: string, quote: string): boolean {
  const plain = collapseSpace(text)
  let from = 0
  for (const part of collapseSpace(quote).split("…")) {
    const fragment = part.trim()
    const at = plain.indexOf(fragment, from)
    if (at === -1) return false
    from = at + fragment.length
  }
  return true
}

function collapseSpace(text: string): string {
  return text.replace(/\s+/g, " ").replaceAll("**", "").trim()
}

/** The links in a text, without the punctuation at the end of a sentence. */
export function linksIn(text: string): string[] {
  return (text.match(LINK) ?? []).map((link) => link.replace(/[.,;:!?]+$/, ""))
}

function withoutInvalidCitations(text: string, passage: (n: number) => Passage | undefined): string {
  return text.replace(CITATION, (mark, n: string) => (passage(Number(n)) ? mark : ""))
}

type Piece = { text: string; isCode: boolean }

const BETWEEN_SENTENCES = /(?<=[.!?](?:\s?\[\d{1,3}\])*)\s+(?!\[\d{1,3}\])(?=\S)/
const CLOSED_CODE = /^```[^\n]*\n[\s\S]*?^```[ \t]*$(?=[\s\S])/gm

/**
 * How many characters at the start of an unfinished answer can no longer be changed by the text that follows. This excludes
 * unclosed code, a line that may be followed by code, and a sentence whose citation may still follow.
 */
export function settledLength(text: string): number {
  const lastFence = [...text.matchAll(CLOSED_CODE)].at(-1)
  const from = lastFence ? lastFence.index + lastFence[0].length : 0
  const openFence = text.slice(from).search(/^```/m)
  const prose = openFence === -1 ? text.slice(from) : text.slice(from, from + openFence)
  const lineStart = prose.lastIndexOf("\n") + 1
  const completeLines = prose.slice(0, lineStart).trimEnd()
  if (/^[ \t]*`{0,2}$/.test(prose.slice(lineStart)) && isUnfinished(completeLines))
    return from + completeLines.lastIndexOf("\n") + 1
  const ends = [...prose.slice(lineStart).matchAll(new RegExp(BETWEEN_SENTENCES, "g"))]
    .map((gap) => lineStart + gap.index + gap[0].length)
    .filter((at) => !/^\[\d{0,3}$/.test(prose.slice(at)))
  return from + Math.max(lineStart, ...ends)
}

/** True if the sentence has not ended, so that the following code belongs to it. */
function isUnfinished(text: string): boolean {
  return /[^.!?]$/.test(text.replace(CITATION, "").trimEnd())
}

/** Splits an answer into sentences, list items and fenced code. A citation after a full stop belongs to the sentence it ends. */
function piecesOf(answer: string): Piece[] {
  return answer.split(/(^```[^\n]*\n[\s\S]*?^```[ \t]*$)/m).flatMap((block): Piece[] => {
    if (block.startsWith("```")) return [{ text: block.trim(), isCode: true }]
    return block
      .split("\n")
      .flatMap((line) => line.split(BETWEEN_SENTENCES))
      .map((text) => text.trim())
      .filter((text) => /[\p{L}\p{N}]/u.test(text.replace(CITATION, "")))
      .map((text) => ({ text, isCode: false }))
  })
}
