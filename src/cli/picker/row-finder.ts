import type { LookUpAnswer, LookUpProcess } from "./look-up-apart.ts"
import type { FoundRows } from "./newest-rows.ts"
import type { PickerFilter } from "./state.ts"

/** After so long without a key, the full search. */
const PAUSE_MS = 150
const MOST_LISTED = 1_000
const MOST_FOUND = 50

export type Finding = {
  /** `isFirst`: the first rows for these words. `isLast`: no better ones will follow. */
  onFound(found: FoundRows, how: { isFirst: boolean; isLast: boolean }): void
  onProblem(problem: string): void
}

export type RowFinder = {
  find(text: string, filter: PickerFilter): void
  /** Again for the same words: something new was read. */
  refresh(text: string, filter: PickerFilter): void
  stop(): void
}

/** Finds rows as words are typed: at once what is quickly found, and by the full ranking once they pause. */
export function createRowFinder(
  /** A ranking takes longer than the next key: it must not wait for it. */
  { typing, ranking }: { typing: LookUpProcess; ranking: LookUpProcess },
  { onFound, onProblem }: Finding,
): RowFinder {
  let newest = 0
  let pause: NodeJS.Timeout | undefined
  /** Answers for words that are no longer there are dropped. */
  const whileNewest = (take: (found: FoundRows) => void, fail = onProblem) => {
    const own = newest
    return (answer: LookUpAnswer) => {
      if (own !== newest) return
      if ("found" in answer) take(answer.found)
      else if ("problem" in answer) fail(answer.problem)
    }
  }
  const list = (filter: PickerFilter, isFirst: boolean) =>
    typing.ask(
      { type: "typed", query: { text: "", filter, limit: MOST_LISTED }, isAgain: !isFirst },
      whileNewest((found) => onFound(found, { isFirst, isLast: true })),
    )
  const search = (text: string, filter: PickerFilter, isRefresh: boolean) => {
    const query = { text, filter, limit: MOST_FOUND }
    let typed: FoundRows = { rows: [], hasMore: false, note: "" }
    let ranked: FoundRows | undefined
    let problem: string | undefined
    const showRanked = (found: FoundRows) => {
      const isFirst = !isRefresh && ranked === undefined && typed.rows.length === 0
      ranked = found
      onFound(withTyped(found, typed), { isFirst, isLast: true })
    }
    const showTyped = (found: FoundRows) => {
      typed = found
      // Two processes answer, and either may be first.
      if (ranked) showRanked(ranked)
      else if (problem !== undefined) showProblem(problem)
      // That there are none says nothing yet: the full search knows what was meant.
      else if (!isRefresh && found.rows.length > 0) onFound(found, { isFirst: true, isLast: false })
    }
    // What was found already stays, in the order of time.
    const showProblem = (note: string) => {
      problem = note
      if (typed.rows.length > 0) onFound({ ...typed, note }, { isFirst: false, isLast: true })
      else onProblem(note)
    }
    typing.ask({ type: "typed", query, isAgain: isRefresh }, whileNewest(showTyped))
    const rank = () => ranking.ask({ type: "ranked", query }, whileNewest(showRanked, showProblem))
    pause = setTimeout(rank, isRefresh ? 0 : PAUSE_MS)
  }
  const start = (typed: string, filter: PickerFilter, isRefresh: boolean) => {
    newest++
    clearTimeout(pause)
    const text = typed.trim()
    if (text === "") list(filter, !isRefresh)
    else search(text, filter, isRefresh)
  }
  return {
    find: (text, filter) => start(text, filter, false),
    refresh: (text, filter) => start(text, filter, true),
    stop: () => {
      newest++
      clearTimeout(pause)
    },
  }
}

/** What was there already stays, below what ranks higher. */
function withTyped(ranked: FoundRows, typed: FoundRows): FoundRows {
  const refs = new Set(ranked.rows.map(({ ref }) => ref))
  const others = typed.rows.filter(({ ref }) => !refs.has(ref))
  return { ...ranked, rows: [...ranked.rows, ...others] }
}
