import type { SearchIndex } from "../store/index/search-index.ts"
import type { CommitQuestion } from "./commit-questions.ts"
import { type Figures, goldRank, meanOf, queryOf, type Searched } from "./measure.ts"
import { rank } from "./rank.ts"
import { scopeOf } from "./scope.ts"
import { type Fitted, weightsOf } from "./weights.ts"

/** What a weight may become, in percent. */
const STEPS: Record<keyof Fitted, readonly number[]> = {
  pairs: [0, 15, 30, 45, 60, 80, 100],
  neighbours: [0, 10, 20, 30, 45, 60],
  decay: [0, 15, 30, 40, 50, 60, 75],
}
const ROUNDS = 3
/** A smaller gain in MRR is chance. */
const LEAST_GAIN = 0.005
/** More questions make it slower, not better. */
const MOST_QUESTIONS = 300

/** The weights near `start` that rank these questions' conversations best: one weight at a time, while it gains. */
export async function fitWeights(
  searched: Searched,
  questions: CommitQuestion[],
  start: Fitted,
  onStep: () => Promise<void>,
): Promise<Fitted> {
  const scope = await scopeOf(searched.store, { inside: searched.inside })
  const index = remembering(searched.index)
  const asked = questions.slice(0, MOST_QUESTIONS).map((question) => ({ question, query: queryOf(question) }))
  const worth = async (weights: Fitted): Promise<number> => {
    await onStep()
    const ranks: number[] = []
    for (const { question, query } of asked) {
      const { conversations } = await rank(index, query, scope!.filters, weightsOf(weights))
      const place = goldRank(
        question,
        conversations.map(({ ref }) => ref),
      )
      ranks.push(place === undefined ? 0 : 1 / place)
    }
    return meanOf(ranks)
  }
  let best = { weights: start, mrr: await worth(start) }
  for (let round = 0; round < ROUNDS; round++) {
    const before = best
    for (const name of ["pairs", "neighbours", "decay"] as const) {
      for (const value of STEPS[name]) {
        if (value === best.weights[name]) continue
        const weights = { ...best.weights, [name]: value }
        const mrr = await worth(weights)
        if (mrr >= best.mrr + LEAST_GAIN) best = { weights, mrr }
      }
    }
    if (best === before) break
  }
  return best.weights
}

/** Trying weights asks the index for the same lists again and again. */
function remembering(index: SearchIndex): SearchIndex {
  const lists = new Map<string, ReturnType<SearchIndex["find"]>>()
  return {
    ...index,
    find: (query) => {
      const key = JSON.stringify(query)
      const list = lists.get(key) ?? index.find(query)
      lists.set(key, list)
      return list
    },
  }
}

export type Halves = { fitted: Figures; other: Figures }

/** Fitted weights are taken only if the questions they never saw are answered no worse. */
export function isWorthTaking(before: Halves, after: Halves): boolean {
  return (
    after.fitted.mrr >= before.fitted.mrr + LEAST_GAIN &&
    after.other.mrr >= before.other.mrr &&
    after.other.hit_at_5 >= before.other.hit_at_5
  )
}
