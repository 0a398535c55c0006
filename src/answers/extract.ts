import { FEATURES, type Features, featuresIn, shareContained, type WeightedQuestion, wordsOf } from "./answering.ts"
import type { AnswerCandidate } from "./candidates.ts"
import type { CitedPiece } from "./cited.ts"
import { blocksIn, mayAnswer, type TextStatement } from "./statements.ts"

/** A block of text that may answer the question: the statement that matches best, and what is around it. */
export type AnswerStatement = {
  candidate: AnswerCandidate
  /** The position in the candidate's text. */
  start: number
  end: number
  /** The features of the statement that matches best. */
  features: Features
  score: number
  /** The share of the question that the block, its headings and its title contain. Rare words count more. */
  covered: number
}

/** The maximum number of words in all quotes combined. People do not read more. */
const MAX_WORDS = 110
const MAX_BLOCKS = 3
/** Blocks are made only around this many of the best statements. */
const MAX_WIDENED = 150
/** How much more a block scores that contains all of the question than one that contains none of it. */
const COVERED_WEIGHT = 2
/** The largest gap between a block's score and the best score. A block with a lower score probably answers another question. */
const MAX_SCORE_GAP = 6
/** A further block must contain at least this share of what the first one contains of the question. */
const MIN_SHARE_OF_FIRST = 0.5
/** Two blocks say the same thing if more than this share of the shorter one's words are in the other. */
const MIN_DUPLICATE_SHARE = 0.6
/** Of two blocks that say the same thing, the newer one is used unless the older one's score is higher by this much. */
const MUCH_BETTER_SCORE_GAP = 1
/** The maximum number of words that are added to a statement that introduces them. */
const MAX_FOLLOWING_WORDS = 45

type RankedStatement = Omit<AnswerStatement, "covered"> & { index: number }

/** The statements that may answer, best first. */
export function rankStatements(
  question: WeightedQuestion,
  candidates: AnswerCandidate[],
  weights: AnswerWeights = ANSWER_WEIGHTS,
): RankedStatement[] {
  return candidates
    .flatMap((candidate) =>
      featuresIn(question, candidate).flatMap((features, index): RankedStatement[] => {
        const statement = candidate.statements[index]!
        if (!mayAnswer(question.text, statement, candidate.textKind === "agent")) return []
        const end = endWithFollowing(candidate, index)
        return [{ candidate, index, start: statement.start, end, features, score: scoreOf(features, weights) }]
      }),
    )
    .sort((a, b) => b.score - a.score)
}

/** The best blocks within the limits. No two of them overlap or say the same thing. */
export function chooseBlocks(question: WeightedQuestion, ranked: RankedStatement[]): AnswerStatement[] {
  const widened = ranked.slice(0, MAX_WIDENED)
  const candidates = new Set(widened.map(({ candidate }) => candidate))
  const extents = new Map([...candidates].map((one) => [one, blocksIn(one.text, one.statements)]))
  const blocks = widened
    .map((statement) => blockAround(question, statement, extents.get(statement.candidate)![statement.index]!))
    .sort((a, b) => b.score - a.score)
  const chosen: { block: AnswerStatement; words: Set<string> }[] = []
  let totalWords = 0
  for (const block of blocks) {
    if (chosen.length === MAX_BLOCKS || block.score < blocks[0]!.score - MAX_SCORE_GAP) break
    if (block.covered < MIN_SHARE_OF_FIRST * blocks[0]!.covered) continue
    if (chosen.some((other) => overlaps(other.block, block))) continue
    const quote = quotedText(block)
    const words = new Set(wordsOf(quote))
    const duplicate = chosen.find((other) => sharedShare(words, other.words) > MIN_DUPLICATE_SHARE)
    if (duplicate) {
      const isNewer = (block.candidate.at ?? 0) > (duplicate.block.candidate.at ?? 0)
      if (isNewer && duplicate.block.score - block.score < MUCH_BETTER_SCORE_GAP)
        Object.assign(duplicate, { block, words })
      continue
    }
    const wordCount = quote.split(/\s+/).length
    if (totalWords + wordCount > MAX_WORDS && chosen.length > 0) continue
    totalWords += wordCount
    chosen.push({ block, words })
  }
  return chosen.map(({ block }) => block)
}

/** The statement with as much of its paragraph, list or code as people read at once. */
function blockAround(
  question: WeightedQuestion,
  { index, ...statement }: RankedStatement,
  [first, last]: [number, number],
): AnswerStatement {
  const { statements, text, title } = statement.candidate
  const start = withListMark(text, statements[first]!)
  const end = Math.max(statement.end, statements[last]!.end)
  const headings = new Set(statements.slice(first, last + 1).flatMap((one) => one.headings))
  const withContext = [title, ...headings, statements[index]!.lead, text.slice(start, end)].join("\n")
  const covered = shareContained(question, withContext)
  return { ...statement, start, end, covered, score: statement.score + COVERED_WEIGHT * covered }
}

/** The start of a statement, with the mark of its list item if it begins one. */
function withListMark(text: string, { start, kind }: TextStatement): number {
  if (kind !== "item") return start
  const mark = /[-*+•] $|\d{1,3}[.)] $/.exec(text.slice(Math.max(0, start - 5), start))
  return start - (mark?.[0].length ?? 0)
}

function overlaps(a: AnswerStatement, b: AnswerStatement): boolean {
  return a.candidate === b.candidate && a.start < b.end && b.start < a.end
}

export function quoteStatements(statements: AnswerStatement[]): CitedPiece[] {
  return statements.flatMap((one) => {
    const passage = one.candidate.cite()
    // A text that imitates the end of a quote gets a second space there, so that what follows keeps its own source.
    const text = quotedText(one).replaceAll(/” (?=\[\d+\])/g, "”  ")
    return passage ? [{ text: `“${text}” [${passage.n}]`, numbers: [passage.n] }] : []
  })
}

export function quotedText({ candidate, start, end }: Pick<AnswerStatement, "candidate" | "start" | "end">): string {
  return candidate.text.slice(start, end)
}

/** The end of a statement, including the lines that it introduces: “Run it with:” says nothing without the next line. */
function endWithFollowing({ statements, text }: AnswerCandidate, index: number): number {
  const { end, kind, text: statementText } = statements[index]!
  if (kind === "code") return isComment(statements[index]!) ? (commandAfter(statements, index)?.end ?? end) : end
  if (!/:[*_`\s]*$/.test(statementText)) return end
  let lastEnd = end
  const nextKind = statements[index + 1]?.kind
  for (const next of statements.slice(index + 1)) {
    if (next.kind !== nextKind || nextKind === "sentence") break
    if (text.slice(end, next.end).split(/\s+/).length > MAX_FOLLOWING_WORDS) break
    lastEnd = next.end
  }
  const closing =
    nextKind === "code" && lastEnd > end ? /^\s*\n\s*(?:`{3,}|~{3,})[ \t]*(?=\n|$)/.exec(text.slice(lastEnd)) : null
  return lastEnd + (closing?.[0].length ?? 0)
}

/** The command on the line below a comment in code. Such a comment usually describes that line. */
function commandAfter(statements: TextStatement[], index: number): TextStatement | undefined {
  const next = statements[index + 1]
  return next?.kind === "code" && !isComment(next) ? next : undefined
}

function isComment({ text }: TextStatement): boolean {
  return /^(?:#|\/\/|--)\s/.test(text)
}

function sharedShare(a: Set<string>, b: Set<string>): number {
  const smallerSize = Math.min(a.size, b.size)
  return smallerSize === 0 ? 0 : [...a].filter((word) => b.has(word)).length / smallerSize
}

export type AnswerWeights = Record<keyof Features, number>

/** `npm run eval:answers -- --fit` computes these from half of the labelled questions. See docs/answers.md. */
const ANSWER_WEIGHTS: AnswerWeights = {
  own: 3.76,
  lead: 0.41,
  heading: 1.09,
  around: 0.57,
  passage: -1.84,
  pairs: 1.93,
  repeats: 1.04,
  // The fitted weight is -0.36. This one is lower, because an agent's announcements annoy the reader even if they are not wrong.
  narrates: -1.5,
  short: -0.36,
  code_span: 0.88,
  code_wanted: -0.59,
  number: 0.38,
  number_wanted: 0.79,
  path_wanted: 0.51,
  reason_wanted: 1.23,
  subject: 0.82,
  defines: 0.32,
  row: 0.27,
  code: -1.47,
  person: -0.89,
  plan: -0.69,
  document: -0.48,
  rank: 2.81,
  score: 1.36,
}

export function scoreOf(features: Features, weights: AnswerWeights): number {
  let sum = 0
  for (const name of FEATURES) sum += weights[name] * features[name]
  return sum
}
