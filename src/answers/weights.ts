import { FEATURES, type Features } from "./answering.ts"

export type AnswerWeights = Record<keyof Features, number>

/** Fitted on the build half of the labelled questions: `npm run eval:answers -- --fit`. See docs/answers.md. */
export const ANSWER_WEIGHTS: AnswerWeights = {
  own: 3.76,
  lead: 0.41,
  heading: 1.09,
  around: 0.57,
  passage: -1.84,
  pairs: 1.93,
  repeats: 1.04,
  // Fitted -0.36. What an agent is about to do annoys who asked, even where it is not wrong.
  narrates: -1.5,
  short: -0.36,
  code_span: 0.88,
  code_asked: -0.59,
  number: 0.38,
  number_asked: 0.79,
  path_asked: 0.51,
  reason_asked: 1.23,
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
