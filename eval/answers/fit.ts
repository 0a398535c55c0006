import { join } from "node:path"
import { FEATURES, type WeightedQuestion } from "../../src/answers/answering.ts"
import { type AnswerEvidence, evidenceOf, probabilityOf } from "../../src/answers/ask.run.ts"
import { answerCandidates } from "../../src/answers/candidates.ts"
import { type AnswerWeights, chooseBlocks, quotedText, rankStatements, scoreOf } from "../../src/answers/extract.ts"
import { createPassages } from "../../src/answers/passages.ts"
import { createDex } from "../../src/app/dex.ts"
import { CACHE_DIR } from "../home.ts"
import { holdsOneOf, namesOneOf, wordsRead } from "./ask.ts"
import { holdsWords, type LabelledQuestion, wordsIn } from "./labels.ts"
import type { Project } from "./project.ts"

/** A question with every statement that may answer it, and which of them do. */
export type Case = {
  question: LabelledQuestion
  weighted: WeightedQuestion
  ranked: ReturnType<typeof rankStatements>
  answers: boolean[]
}

/** Few labels should change a weight only a little. */
const PENALTY = 0.02
const STEPS = 600
const PACE = 0.06

export async function casesOf(project: Project, questions: LabelledQuestion[]): Promise<Case[]> {
  const home = join(CACHE_DIR, "answers-today")
  const dex = createDex({ env: { HOME: home, DEX_TRACES: "off" }, cwd: project.clone, version: "eval" })
  const cases: Case[] = []
  for (const one of questions) {
    const { question, candidates } = await answerCandidates(dex, one.question, { among: "all" }, createPassages())
    const ranked = rankStatements(question, candidates)
    const gold = one.sentences.map(wordsIn)
    const answers = ranked.map((statement) => isOneOf(quotedText(statement), gold))
    cases.push({ question: one, weighted: question, ranked, answers })
  }
  dex.close()
  return cases
}

/** A statement that is most of a labelled sentence answers as well as the complete one. */
function isOneOf(text: string, gold: string[][]): boolean {
  const words = wordsIn(text)
  return gold.some((one) => holdsWords(words, one) || (words.length >= 0.6 * one.length && holdsWords(one, words)))
}

/**
 * Weights under which a statement that answers is likely to be chosen before all others of its question: a conditional logit with
 * a little shrinkage, by gradient descent.
 */
export function fittedWeights(cases: Case[]): AnswerWeights {
  const usable = cases
    .filter(({ answers }) => answers.includes(true))
    .map(({ ranked, answers }) => ({
      rows: ranked.map(({ features }) => FEATURES.map((name) => features[name])),
      answers,
    }))
  const size = FEATURES.length
  const weights = new Float64Array(size)
  const [mean, spread] = [new Float64Array(size), new Float64Array(size)]
  for (let step = 1; step <= STEPS; step++) {
    const slope = weights.map((weight) => -PENALTY * weight)
    for (const { rows, answers } of usable) {
      const scores = rows.map((row) => row.reduce((sum, value, i) => sum + value * weights[i]!, 0))
      const top = Math.max(...scores)
      const odds = scores.map((score) => Math.exp(score - top))
      const all = odds.reduce((sum, one) => sum + one, 0)
      const right = odds.reduce((sum, one, i) => sum + (answers[i] ? one : 0), 0)
      for (const [r, row] of rows.entries()) {
        const pull = (answers[r] ? odds[r]! / right : 0) - odds[r]! / all
        for (let i = 0; i < size; i++) slope[i]! += (pull * row[i]!) / usable.length
      }
    }
    for (let i = 0; i < size; i++) {
      mean[i] = 0.9 * mean[i]! + 0.1 * slope[i]!
      spread[i] = 0.999 * spread[i]! + 0.001 * slope[i]! ** 2
      const [m, s] = [mean[i]! / (1 - 0.9 ** step), spread[i]! / (1 - 0.999 ** step)]
      weights[i]! += (PACE * m) / (Math.sqrt(s) + 1e-8)
    }
  }
  return Object.fromEntries(FEATURES.map((name, i) => [name, Number(weights[i]!.toFixed(2))])) as AnswerWeights
}

/** The weights of statements, and those of the confidence in the chosen ones. */
export async function fitted(project: Project, questions: LabelledQuestion[]) {
  const cases = await casesOf(
    project,
    questions.filter(({ half }) => half === "build"),
  )
  const weights = fittedWeights(cases)
  const judged = cases.map(({ question: { id, sentences, facts }, weighted, ranked }) => {
    const again = ranked.map((one) => ({ ...one, score: scoreOf(one.features, weights) }))
    const shown = chooseBlocks(
      weighted,
      again.sort((a, b) => b.score - a.score),
    )
    const read = wordsRead(shown.map(quotedText).join(" "))
    const isRight = holdsOneOf(read, sentences) || namesOneOf(read, facts)
    return { id, isAnswerable: sentences.length > 0, evidence: evidenceOf(shown), isRight }
  })
  const confidence = fittedConfidence(judged)
  const told = judged.map(({ evidence, ...one }) => ({ ...one, probability: probabilityOf(evidence, confidence) }))
  const bounds = [0.15, 0.2, 0.25, 0.3, 0.7, 0.8, 0.85, 0.9].map((bound) => ({
    bound,
    refused: told.filter((one) => one.isAnswerable && one.probability < bound).length,
    silent: told.filter((one) => !one.isAnswerable && one.probability < bound).length,
    above: told.filter((one) => one.probability >= bound).length,
    right_above: told.filter((one) => one.probability >= bound && one.isRight).length,
  }))
  const right = judged.filter(({ isRight }) => isRight).length
  return { weights, confidence, right, answerable: judged.filter((one) => one.isAnswerable).length, bounds }
}

type Evidence = { evidence: AnswerEvidence; isRight: boolean }

/** A logistic regression with a little shrinkage: two numbers, some hundred questions. */
export function fittedConfidence(cases: Evidence[]) {
  const weights = { base: 0, covered: 0 }
  for (let round = 0; round < 20_000; round++) {
    const slope = { base: 0, covered: 0 }
    for (const { evidence, isRight } of cases) {
      const error = probabilityOf(evidence, weights) - (isRight ? 1 : 0)
      slope.base += error
      slope.covered += error * evidence.covered
    }
    weights.base -= (0.5 * slope.base) / cases.length
    weights.covered -= 0.5 * (slope.covered / cases.length + 0.002 * weights.covered)
  }
  return weights
}
