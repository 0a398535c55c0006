export type AnswerEvidence = {
  /** How much of what was asked the best passage holds, from 0 to 1, a rare word counting for more. */
  coverage: number
  /** How far the best is ahead of the second, from 0 to 1. */
  gap: number
  /** In how many other conversations or documents nearly as much is held, at most 3, as a share. */
  agreement: number
  /** 1 for today, a half for half a year ago. */
  recency: number
}

export type Confidence = "high" | "medium" | "low"

/** Fitted on the tune half of the questions, with those that nothing answers; see docs/ask.md. */
const WEIGHTS = { base: -2.81, coverage: 3.9, gap: 2.14, agreement: 1.9, recency: 0.02 }
const HIGH = 0.8
const MEDIUM = 0.5

/** The probability that the passages hold the answer. Computed from how they were found; no model is asked. */
export function probabilityOf({ coverage, gap, agreement, recency }: AnswerEvidence, weights = WEIGHTS): number {
  const sum =
    weights.base +
    weights.coverage * coverage +
    weights.gap * gap +
    weights.agreement * agreement +
    weights.recency * recency
  return 1 / (1 + Math.exp(-sum))
}

export function confidenceOf(evidence: AnswerEvidence): Confidence {
  const probability = probabilityOf(evidence)
  return probability >= HIGH ? "high" : probability >= MEDIUM ? "medium" : "low"
}
