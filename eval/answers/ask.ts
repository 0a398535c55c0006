import { unanswered } from "../sets/questions.ts"
import type { BuiltDex } from "./command.ts"
import { type Half, holdsWords, type LabelledQuestion, namesAll, wordsIn } from "./labels.ts"

/** How much a person reads. */
const READ_WORDS = 120

export type Asked = {
  id: string
  half: Half
  isAnswerable: boolean
  isDocumented: boolean
  /** The labelled sentence or command is in the part that is read. */
  hasSentence: boolean
  /** That, or every fact of a right answer is in it. */
  isRight: boolean
  isNotFound: boolean
  confidence: string
  probability: number
  answer: string
}

type Answer = { answer: string; sources: unknown[]; confidence: string; probability: number }

/** Including those that nothing answers. */
export function allQuestions(questions: LabelledQuestion[]): LabelledQuestion[] {
  const others = unanswered().map(({ id, text, half }) => ({
    id,
    half: half === "tune" ? ("build" as const) : ("held" as const),
    question: text,
    sentences: [],
    facts: [],
    isDocumented: false,
  }))
  return [...questions, ...others]
}

export async function askAll(dex: BuiltDex, questions: LabelledQuestion[]): Promise<Asked[]> {
  const asked: Asked[] = []
  for (const one of questions) asked.push(judged(one, await dex.json<Answer>(["ask", one.question])))
  return asked
}

function judged({ id, half, sentences, facts, isDocumented }: LabelledQuestion, answer: Answer): Asked {
  const isNotFound = answer.sources.length === 0
  const read = isNotFound ? [] : wordsRead(answer.answer)
  const hasSentence = holdsOneOf(read, sentences)
  return {
    id,
    half,
    isAnswerable: sentences.length > 0 || facts.length > 0,
    isDocumented,
    hasSentence,
    isRight: hasSentence || namesOneOf(read, facts),
    isNotFound,
    confidence: answer.confidence,
    probability: answer.probability,
    answer: answer.answer,
  }
}

/** The part of an answer that is read. The numbers of sources are not counted as words. */
export function wordsRead(answer: string): string[] {
  const words = answer.replaceAll(/\[\d{1,3}\]/g, " ").split(/\s+/)
  return wordsIn(words.slice(0, READ_WORDS).join(" "))
}

export const holdsOneOf = (read: string[], sentences: string[]) =>
  sentences.some((sentence) => holdsWords(read, wordsIn(sentence)))
export const namesOneOf = (read: string[], facts: string[][]) => facts.some((all) => namesAll(read, all))

export type AskFigures = ReturnType<typeof askFigures>

export function askFigures(asked: Asked[], half: Half) {
  const own = asked.filter((one) => one.half === half)
  const answerable = own.filter((one) => one.isAnswerable)
  const others = own.filter((one) => !one.isAnswerable)
  const high = own.filter(({ confidence }) => confidence === "high")
  const share = (of: Asked[], holds: (one: Asked) => boolean) => ({ of: of.length, count: of.filter(holds).length })
  return {
    "labelled sentence or command in the first 120 words": share(answerable, (one) => one.hasSentence),
    "… or everything that a right answer names": share(answerable, (one) => one.isRight),
    "… of those that documents answer": share(
      answerable.filter((one) => one.isDocumented),
      (one) => one.isRight,
    ),
    "… of those that conversations answer": share(
      answerable.filter((one) => !one.isDocumented),
      (one) => one.isRight,
    ),
    "something else is shown": share(answerable, (one) => !one.isRight && !one.isNotFound),
    "answerable, but not found": share(answerable, (one) => one.isNotFound),
    "nothing answers, and not found": share(others, (one) => one.isNotFound),
    "high confidence and right": share(high, (one) => one.isRight),
    "AUC, answerable above the others": area(answerable.map(scoreOf), others.map(scoreOf)),
  }
}

export const scoreOf = ({ isNotFound, probability }: Asked) => (isNotFound ? 0 : probability)

/** How often a value of the first list is above one of the second, in percent; a tie counts half. */
export function area(above: number[], below: number[]): number {
  let won = 0
  for (const a of above) for (const b of below) won += a > b ? 1 : a === b ? 0.5 : 0
  return (100 * won) / (above.length * below.length)
}
