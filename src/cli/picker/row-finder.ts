import type { FoundRows } from "./newest-rows.ts"
import type { LookUpAnswer, LookUpProcess } from "./start-look-up.ts"
import type { PickerFilter } from "./state.ts"

/** How long after the last key press the full search starts, in milliseconds. */
const PAUSE_MS = 150
const MAX_LISTED = 1_000
const MAX_FOUND = 50

export type RowFinderEvents = {
  /** `isFirst`: these are the first rows for these words. `isLast`: no better ones will follow. */
  onFound(found: FoundRows, how: { isFirst: boolean; isLast: boolean }): void
  onProblem(problem: string): void
}

export type RowFinder = {
  find(text: string, filter: PickerFilter): void
  /** Searches again for the same words, because something new was read. */
  refresh(text: string, filter: PickerFilter): void
  stop(): void
}

/** Finds rows while a person types: quick results at once, and the full ranking when they pause. */
export function createRowFinder(
  /** Two processes, so that the search for the next key does not wait for a ranking. */
  { typing, ranking }: { typing: LookUpProcess; ranking: LookUpProcess },
  { onFound, onProblem }: RowFinderEvents,
): RowFinder {
  let newest = 0
  let pause: NodeJS.Timeout | undefined
  /** Ignores answers to words that have changed since. */
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
      { type: "typed", query: { text: "", filter, limit: MAX_LISTED }, isAgain: !isFirst },
      whileNewest((found) => onFound(found, { isFirst, isLast: true })),
    )
  const search = (text: string, filter: PickerFilter, isRefresh: boolean) => {
    const query = { text, filter, limit: MAX_FOUND }
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
      // Either of the two processes may answer first.
      if (ranked) showRanked(ranked)
      else if (problem !== undefined) showProblem(problem)
      // An empty quick result is not shown: the full search may find more.
      else if (!isRefresh && found.rows.length > 0) onFound(found, { isFirst: true, isLast: false })
    }
    // Keeps the quick results, newest first.
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

/** Appends the quick results that the ranking does not contain. */
function withTyped(ranked: FoundRows, typed: FoundRows): FoundRows {
  const refs = new Set(ranked.rows.map(({ ref }) => ref))
  const others = typed.rows.filter(({ ref }) => !refs.has(ref))
  return { ...ranked, rows: [...ranked.rows, ...others] }
}
