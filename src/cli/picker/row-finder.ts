import type { FoundRows } from "./newest-rows.ts"
import type { LookUpAnswer, LookUpProcess } from "./start-look-up.ts"
import { conversationOfRow, type PickerFilter } from "./state.ts"

/** How long after the last key press the full search starts, in milliseconds. */
const PAUSE_MS = 150
const MAX_LISTED_ROWS = 1_000
const MAX_FOUND_ROWS = 50

export type RowFinderEvents = {
  /** `isFirst`: these are the first rows for these words. `isLast`: no better rows will follow. */
  onFound(result: FoundRows, order: { isFirst: boolean; isLast: boolean }): void
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
  /** Two processes, so that the quick search for the next key press does not wait for a ranking. */
  { quickLookUp, rankingLookUp }: { quickLookUp: LookUpProcess; rankingLookUp: LookUpProcess },
  { onFound, onProblem }: RowFinderEvents,
): RowFinder {
  let latestRequest = 0
  let pauseTimer: NodeJS.Timeout | undefined
  /** Returns a handler that ignores an answer if the words have changed since the request. */
  const ifStillLatest = (onRows: (result: FoundRows) => void, fail = onProblem) => {
    const requestNumber = latestRequest
    return (answer: LookUpAnswer) => {
      if (requestNumber !== latestRequest) return
      if ("found" in answer) onRows(answer.found)
      else if ("problem" in answer) fail(answer.problem)
    }
  }
  const listNewest = (filter: PickerFilter, isFirst: boolean) =>
    quickLookUp.ask(
      { type: "typed", query: { text: "", filter, limit: MAX_LISTED_ROWS }, isAgain: !isFirst },
      ifStillLatest((result) => onFound(result, { isFirst, isLast: true })),
    )
  const search = (text: string, filter: PickerFilter, isRefresh: boolean) => {
    const query = { text, filter, limit: MAX_FOUND_ROWS }
    let quickResult: FoundRows = { rows: [], hasMore: false, note: "" }
    let rankedResult: FoundRows | undefined
    let problem: string | undefined
    const showRankedResult = (result: FoundRows) => {
      const isFirst = !isRefresh && rankedResult === undefined && quickResult.rows.length === 0
      rankedResult = result
      onFound(appendQuickRows(result, quickResult), { isFirst, isLast: true })
    }
    const showQuickResult = (result: FoundRows) => {
      quickResult = result
      // Either of the two processes may answer first.
      if (rankedResult) showRankedResult(rankedResult)
      else if (problem !== undefined) showProblem(problem)
      // An empty quick result is not shown: the full search may find more.
      else if (!isRefresh && result.rows.length > 0) onFound(result, { isFirst: true, isLast: false })
    }
    // Keeps the quick results, newest first, if the full search failed.
    const showProblem = (note: string) => {
      problem = note
      if (quickResult.rows.length > 0) onFound({ ...quickResult, note }, { isFirst: false, isLast: true })
      else onProblem(note)
    }
    quickLookUp.ask({ type: "typed", query, isAgain: isRefresh }, ifStillLatest(showQuickResult))
    const rank = () => rankingLookUp.ask({ type: "ranked", query }, ifStillLatest(showRankedResult, showProblem))
    pauseTimer = setTimeout(rank, isRefresh ? 0 : PAUSE_MS)
  }
  const start = (typedText: string, filter: PickerFilter, isRefresh: boolean) => {
    latestRequest++
    clearTimeout(pauseTimer)
    const text = typedText.trim()
    if (text === "") listNewest(filter, !isRefresh)
    else search(text, filter, isRefresh)
  }
  return {
    find: (text, filter) => start(text, filter, false),
    refresh: (text, filter) => start(text, filter, true),
    stop: () => {
      latestRequest++
      clearTimeout(pauseTimer)
    },
  }
}

/** Appends the quick results that the ranking does not contain. */
function appendQuickRows(rankedResult: FoundRows, quickResult: FoundRows): FoundRows {
  const ranked = new Set(rankedResult.rows.map(conversationOfRow))
  const others = quickResult.rows.filter((row) => !ranked.has(conversationOfRow(row)))
  return { ...rankedResult, rows: [...rankedResult.rows, ...others] }
}
