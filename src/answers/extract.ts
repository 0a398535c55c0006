import { FEATURES, type Features, featuresIn, type WeightedQuestion, wordsOf } from "./answering.ts"
import type { AnswerCandidate } from "./candidates.ts"
import type { CitedPiece } from "./cited.ts"
import type { TextStatement } from "./statements.ts"

/** A statement that may be an answer. */
export type AnswerStatement = {
  candidate: AnswerCandidate
  /** The position in the candidate's text. A statement that ends with a colon includes what follows. */
  start: number
  end: number
  features: Features
  score: number
}

/** The maximum number of words in all quotes combined. People do not read more. */
const MAX_WORDS = 110
const MAX_STATEMENTS = 6
/** How far a statement's score may be below the best one. A statement with a lower score answers another question. */
const MAX_SCORE_GAP = 4
/** Two statements say the same if more than this share of the shorter one's words are in the other. */
const MIN_DUPLICATE_SHARE = 0.6
/** Of two statements that say the same, the newer one is used unless the older one's score is higher by this much. */
const MUCH_BETTER_SCORE_GAP = 1
/** The most words that are added to a statement that introduces them. */
const MAX_FOLLOWING_WORDS = 45

/** All statements, best first. */
export function rankStatements(
  question: WeightedQuestion,
  candidates: AnswerCandidate[],
  weights: AnswerWeights = ANSWER_WEIGHTS,
): AnswerStatement[] {
  return candidates
    .flatMap((candidate) =>
      featuresIn(question, candidate).map((features, i): AnswerStatement => {
        const { start } = candidate.statements[i]!
        return { candidate, start, end: endWithFollowing(candidate, i), features, score: scoreOf(features, weights) }
      }),
    )
    .sort((a, b) => b.score - a.score)
}

/** The best statements within the limits. No two of them say the same. */
export function chooseStatements(ranked: AnswerStatement[]): AnswerStatement[] {
  const chosen: { statement: AnswerStatement; words: Set<string> }[] = []
  let total = 0
  for (const statement of ranked) {
    if (chosen.length === MAX_STATEMENTS || statement.score < ranked[0]!.score - MAX_SCORE_GAP) break
    const quote = quotedText(statement)
    const words = new Set(wordsOf(quote))
    const duplicate = chosen.find((other) => sharedShare(words, other.words) > MIN_DUPLICATE_SHARE)
    if (duplicate) {
      const isNewer = (statement.candidate.at ?? 0) > (duplicate.statement.candidate.at ?? 0)
      if (isNewer && duplicate.statement.score - statement.score < MUCH_BETTER_SCORE_GAP)
        Object.assign(duplicate, { statement, words })
      continue
    }
    const length = quote.split(/\s+/).length
    if (total + length > MAX_WORDS && chosen.length > 0) continue
    total += length
    chosen.push({ statement, words })
  }
  return chosen.map(({ statement: one }) => one)
}

export function quoteStatements(statements: AnswerStatement[]): CitedPiece[] {
  return statements.flatMap((one) => {
    const passage = one.candidate.cite()
    return passage ? [{ text: `“${quotedText(one)}” [${passage.n}]`, numbers: [passage.n] }] : []
  })
}

export function quotedText({ candidate, start, end }: AnswerStatement): string {
  return candidate.text.slice(start, end)
}

/** The end of a statement, including the lines that it introduces: “Run it with:” says nothing without the next line. */
function endWithFollowing({ statements, text }: AnswerCandidate, at: number): number {
  const { end, kind, text: own } = statements[at]!
  if (kind === "code") return isComment(statements[at]!) ? (commandAfter(statements, at)?.end ?? end) : end
  if (!/:[*_`\s]*$/.test(own)) return end
  let last = end
  const nextKind = statements[at + 1]?.kind
  for (const next of statements.slice(at + 1)) {
    if (next.kind !== nextKind || nextKind === "sentence") break
    if (text.slice(end, next.end).split(/\s+/).length > MAX_FOLLOWING_WORDS) break
    last = next.end
  }
  const closing =
    nextKind === "code" && last > end ? /^\s*\n\s*(?:`{3,}|~{3,})[ \t]*(?=\n|$)/.exec(text.slice(last)) : null
  return last + (closing?.[0].length ?? 0)
}

/** The command below a comment in code: such a comment describes the next line. */
function commandAfter(statements: TextStatement[], at: number): TextStatement | undefined {
  const next = statements[at + 1]
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

/** Fitted on the build half of the labelled questions: `npm run eval:answers -- --fit`. See docs/answers.md. */
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
