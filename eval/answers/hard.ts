import { openGenuineHome } from "../genuine-home.ts"
import { type Asked, area, scoreOf } from "./ask.ts"
import { openDecisionsHome, type Place } from "./decisions-home.ts"
import { type Half, type LabelledQuestion, type LabelledSentence, linesOf, sentencesThatAnswer } from "./labels.ts"
import type { Project } from "./project.ts"

// Questions as people type them, half of them in other words than their answer's.
//
// All questions about one conversation or document are in the same half: by the hash of the first answer's conversation or path,
// and by the hash of their own id if nothing answers.

/** What a question is about, and whether it has the answer's words. Neither is known of a question that nothing answers. */
export type HardQuestion = LabelledQuestion & {
  kind: string
  words?: "same" | "other"
  of?: "conversations" | "documents" | "recordings"
}

/** Other agents' conversations about which the hard set asks. */
export const RECORDINGS: Place[] = [
  {
    file: "samples/pi/real-fixtures/before-compaction.jsonl",
    conversation: "ffae836b-9420-4060-ac13-7745215f90ff",
  },
  { file: "samples/pi/real-fixtures/large-session.jsonl", conversation: "d703a1a9-1b7b-4fb1-b512-c9738b1fe617" },
  { file: "samples/gemini-cli/real-entire-1.json", conversation: "faff42ab-6ea5-4f78-b8c4-f7dd6272af08" },
  { file: "samples/gemini-cli/real-entire-4.json", conversation: "f7633853-6663-4dbb-bbf4-6159afa29df8" },
  {
    file: "real-sessions/codex/CODEX_HOME/sessions/2026/11/14/rollout-2026-11-14T22-48-10-01a1dc3f-2c49-7272-b9f0-a2eeaedbb7ad.jsonl",
    conversation: "01a1dc3f-2c49-7272-b9f0-a2eeaedbb7ad",
  },
]

type Written = Pick<HardQuestion, "id" | "half" | "question" | "kind" | "words" | "of"> & {
  answers?: LabelledSentence[]
  facts?: string[][]
}

export async function hardQuestions(project: Project): Promise<HardQuestion[]> {
  const genuine = await openGenuineHome()
  const others = await openDecisionsHome(RECORDINGS)
  const questions: HardQuestion[] = []
  for (const { answers = [], facts = [], ...question } of linesOf<Written>("hard.jsonl")) {
    const store = question.of === "recordings" ? others.store : genuine.store
    questions.push({
      ...question,
      sentences: await sentencesThatAnswer(answers, project, store),
      facts,
      isDocumented: question.of === "documents",
    })
  }
  genuine.close()
  others.close()
  return questions
}

type Outcome = { of: number; right: number; wrong: number; refused: number }

export type HardFigures = { rows: Record<string, Outcome>; high: { of: number; right: number }; area: number }

/** What became of a half's questions: of all that can be answered, by what they are like, and of the others. */
export function hardFigures(questions: HardQuestion[], asked: Asked[], half: Half): HardFigures {
  const byId = new Map(asked.map((one) => [one.id, one]))
  const own = questions.filter((one) => one.half === half).map((one) => ({ ...one, ...byId.get(one.id)! }))
  const answerable = own.filter((one) => one.isAnswerable)
  const others = own.filter((one) => !one.isAnswerable)
  const by = (name: (one: (typeof own)[number]) => string) =>
    Object.fromEntries([...Map.groupBy(answerable, name)].sort().map(([key, of]) => [key, outcomeOf(of)]))
  const high = own.filter(({ confidence }) => confidence === "high")
  return {
    rows: {
      "all that can be answered": outcomeOf(answerable),
      ...by(({ words }) => `${words} words`),
      ...by(({ of, words }) => `${of}, ${words} words`),
      ...by(({ kind }) => `kind: ${kind}`),
      "nothing answers": outcomeOf(others),
    },
    high: { of: high.length, right: high.filter((one) => one.isRight).length },
    area: area(answerable.map(scoreOf), others.map(scoreOf)),
  }
}

function outcomeOf(asked: Asked[]): Outcome {
  const right = asked.filter((one) => one.isRight).length
  const refused = asked.filter((one) => one.isNotFound).length
  return { of: asked.length, right, refused, wrong: asked.length - right - refused }
}

export function printHard(half: Half, { rows, high, area }: HardFigures): void {
  const cell = (count: number, of: number) => `${((100 * count) / of).toFixed(1)} % (${count})`.padEnd(16)
  console.log(`\n${`hard set, ${half}`.padEnd(36)}   of  right           wrong           refused`)
  for (const [name, { of, ...counts }] of Object.entries(rows))
    console.log(
      `  ${name.padEnd(34)} ${String(of).padStart(4)}  ${[counts.right, counts.wrong, counts.refused].map((count) => cell(count, of)).join("")}`,
    )
  console.log(
    `  high confidence and right: ${high.right} of ${high.of}; AUC, answerable above the others: ${area.toFixed(1)}`,
  )
}
