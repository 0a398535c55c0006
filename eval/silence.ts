import { parseQuery } from "../src/search/query.ts"
import { searchHistory } from "../src/search/search.ts"
import { type EvalHome, openHome } from "./home.ts"
import type { Half } from "./set.ts"
import { questions, unanswered } from "./sets/questions.ts"

/** One question: how much of it the best message contains, whether it has an answer, and whether dex was silent. */
export type Asked = { half: Half; kind: "answered" | "left out" | "unanswered"; coverage: number; silent: boolean }

export type SilenceRow = {
  half: Half
  /** The product's current behaviour. */
  falseSilence: number
  silence: number
  /** Silence on questions without an answer, for each rate of silence on questions that have one. */
  curve: { falseSilence: number; silence: number }[]
  /** How often a question with an answer is covered better than one without: 0.5 is chance. */
  auc: number
  n: { answered: number; without: number }
}

/**
 * Every question with its answers in the history, again without the conversations that answer it, and questions that nothing ever
 * answered.
 */
export async function measureSilence(): Promise<SilenceRow[]> {
  const set = questions("conversation")
  const home = await openHome(set)
  const asked: Asked[] = []
  for (const { text, half, gold } of set.questions) {
    asked.push({ half, kind: "answered", ...(await ask(home, text, [])) })
    asked.push({ half, kind: "left out", ...(await ask(home, text, gold)) })
  }
  for (const { text, half } of unanswered()) asked.push({ half, kind: "unanswered", ...(await ask(home, text, [])) })
  home.close()
  return (["tune", "held"] as const).map((half) =>
    rowOf(
      half,
      asked.filter((one) => one.half === half),
    ),
  )
}

async function ask(home: EvalHome, text: string, without: string[]): Promise<Pick<Asked, "coverage" | "silent">> {
  const outcome = await searchHistory(home.store, home.index, {
    query: parseQuery(text),
    excludedConversations: without.map((id) => ({ source: "claude_code" as const, id })),
    by: "conversation",
    limit: 10,
    offset: 0,
  })
  return { coverage: outcome.coverage ?? 0, silent: outcome.hits.length === 0 }
}

const RATES = [0.02, 0.05, 0.1, 0.2, 0.3]

function rowOf(half: Half, asked: Asked[]): SilenceRow {
  const answered = asked.filter((one) => one.kind === "answered")
  const without = asked.filter((one) => one.kind !== "answered")
  const share = (list: Asked[], holds: (one: Asked) => boolean) => list.filter(holds).length / list.length
  const sorted = answered.map((one) => one.coverage).sort((a, b) => a - b)
  return {
    half,
    falseSilence: share(answered, (one) => one.silent),
    silence: share(without, (one) => one.silent),
    curve: RATES.map((rate) => {
      const threshold = sorted[Math.floor(rate * sorted.length)]!
      return {
        falseSilence: share(answered, (one) => one.coverage < threshold),
        silence: share(without, (one) => one.coverage < threshold),
      }
    }),
    auc: areaUnderCurve(
      answered.map((one) => one.coverage),
      without.map((one) => one.coverage),
    ),
    n: { answered: answered.length, without: without.length },
  }
}

function areaUnderCurve(higher: number[], lower: number[]): number {
  const wins = higher.flatMap((a) => lower.map((b) => (a > b ? 1 : a === b ? 0.5 : 0)))
  return wins.reduce<number>((sum, win) => sum + win, 0) / wins.length
}
