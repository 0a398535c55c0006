import { FEATURES, type Features, featuresIn, type WeightedQuestion, wordsOf } from "./answering.ts"
import type { AnswerCandidate } from "./candidates.ts"
import type { Cited } from "./cited.ts"
import type { TextStatement } from "./statements.ts"

/** A statement that may be an answer. */
export type Answering = {
  candidate: AnswerCandidate
  /** Its place in the candidate's text. A statement that ends with a colon includes what follows. */
  start: number
  end: number
  features: Features
  score: number
}

/** People do not read more than this. */
const MAX_WORDS = 110
const MAX_STATEMENTS = 6
/** A statement with a score this far below the best one answers another question. */
const FAR_BEHIND = 4
/** Two statements that share this much of the shorter one's words say the same. */
const SAME_SHARE = 0.6
/** Of two statements that say the same, the newer one wins unless the older one's score is higher by this much. */
const MUCH_BETTER = 1
/** The most words that are added to a statement that introduces them. */
const MAX_FOLLOWING = 45

/** All statements, best first. */
export function rankStatements(
  question: WeightedQuestion,
  candidates: AnswerCandidate[],
  weights: AnswerWeights = ANSWER_WEIGHTS,
): Answering[] {
  return candidates
    .flatMap((candidate) =>
      featuresIn(question, candidate).map((features, i): Answering => {
        const { start } = candidate.statements[i]!
        return { candidate, start, end: endWithFollowing(candidate, i), features, score: scoreOf(features, weights) }
      }),
    )
    .sort((a, b) => b.score - a.score)
}

/** The best statements that fit. No two say the same. */
export function chosen(ranked: Answering[]): Answering[] {
  const kept: { one: Answering; words: Set<string> }[] = []
  let total = 0
  for (const one of ranked) {
    if (kept.length === MAX_STATEMENTS || one.score < ranked[0]!.score - FAR_BEHIND) break
    const text = quoteOf(one)
    const words = new Set(wordsOf(text))
    const same = kept.find((other) => shared(words, other.words) > SAME_SHARE)
    if (same) {
      const isNewer = (one.candidate.at ?? 0) > (same.one.candidate.at ?? 0)
      if (isNewer && same.one.score - one.score < MUCH_BETTER) Object.assign(same, { one, words })
      continue
    }
    const length = text.split(/\s+/).length
    if (total + length > MAX_WORDS && kept.length > 0) continue
    total += length
    kept.push({ one, words })
  }
  return kept.map(({ one }) => one)
}

export function quoted(statements: Answering[]): Cited[] {
  return statements.flatMap((one) => {
    const passage = one.candidate.cite()
    return passage ? [{ text: `“${quoteOf(one)}” [${passage.n}]`, numbers: [passage.n] }] : []
  })
}

export function quoteOf({ candidate, start, end }: Answering): string {
  return candidate.text.slice(start, end)
}

/** “Run it with:” says nothing without the next line. */
function endWithFollowing({ statements, text }: AnswerCandidate, at: number): number {
  const { end, kind, text: own } = statements[at]!
  if (kind === "code") return isComment(statements[at]!) ? (commandAfter(statements, at)?.end ?? end) : end
  if (!/:[*_`\s]*$/.test(own)) return end
  let last = end
  const follows = statements[at + 1]?.kind
  for (const next of statements.slice(at + 1)) {
    if (next.kind !== follows || follows === "sentence") break
    if (text.slice(end, next.end).split(/\s+/).length > MAX_FOLLOWING) break
    last = next.end
  }
  const closing =
    follows === "code" && last > end ? /^\s*\n\s*(?:`{3,}|~{3,})[ \t]*(?=\n|$)/.exec(text.slice(last)) : null
  return last + (closing?.[0].length ?? 0)
}

/** A comment describes the next line. */
function commandAfter(statements: TextStatement[], at: number): TextStatement | undefined {
  const next = statements[at + 1]
  return next?.kind === "code" && !isComment(next) ? next : undefined
}

function isComment({ text }: TextStatement): boolean {
  return /^(?:#|\/\/|--)\s/.test(text)
}

function shared(a: Set<string>, b: Set<string>): number {
  const least = Math.min(a.size, b.size)
  return least === 0 ? 0 : [...a].filter((word) => b.has(word)).length / least
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
  // Fitted: -0.36. Announcements of an agent annoy the reader even if they are not wrong.
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
