import type { Answering } from "./extract.ts"

/** How much of what was asked the statements hold that would be shown, from 0 to 1, a rare word counting for more. */
export type AnswerEvidence = {
  /** In the words of the one that holds most. */
  own: number
  /** With the sentence that leads to it and the headings above it. */
  introduced: number
  /** With all that stands around it. */
  passage: number
}

export type Confidence = "high" | "medium" | "low"

/** Fitted on the build half of the labelled questions and of those that nothing answers: `npm run eval:answers -- --fit`. */
const WEIGHTS = { base: -2.97, own: 1.47, introduced: 3.55, passage: 0.74 }
const HIGH = 0.88
const MEDIUM = 0.5
const LEAST_WORDS = 3
/** Below this "not found" is the better answer. */
const LEAST = 0.21

export function evidenceOf(shown: Answering[]): AnswerEvidence {
  const most = (share: (features: Answering["features"]) => number) =>
    Math.max(0, ...shown.map(({ features }) => share(features)))
  return {
    own: most(({ own }) => own),
    introduced: most(({ own, lead, heading }) => own + lead + heading),
    passage: most(({ own, lead, heading, around, passage }) => own + lead + heading + around + passage),
  }
}

/** The probability that one of the statements answers. Computed from what they hold; no model is asked. */
export function probabilityOf({ own, introduced, passage }: AnswerEvidence, weights = WEIGHTS): number {
  const sum = weights.base + weights.own * own + weights.introduced * introduced + weights.passage * passage
  return 1 / (1 + Math.exp(-sum))
}

export function answersNothing(evidence: AnswerEvidence): boolean {
  return probabilityOf(evidence) < LEAST
}

/** A statement that has the only two words of a question need not answer it, so of few words the confidence is never high. */
export function confidenceOf(evidence: AnswerEvidence, words: number): Confidence {
  const probability = probabilityOf(evidence)
  if (probability >= HIGH && words >= LEAST_WORDS) return "high"
  return probability >= MEDIUM ? "medium" : "low"
}

export function atMostMedium(confidence: Confidence): Confidence {
  return confidence === "high" ? "medium" : confidence
}
