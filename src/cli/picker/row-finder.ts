import type { LookUpAnswer, LookUpProcess } from "./look-up-apart.ts"
import type { PickerFilter } from "./state.ts"
import type { FoundRows } from "./typed-rows.ts"

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
export function createRowFinder(lookUp: LookUpProcess, { onFound, onProblem }: Finding): RowFinder {
  let newest = 0
  let pause: NodeJS.Timeout | undefined
  /** Answers for words that are no longer there are dropped. */
  const whileNewest = (take: (found: FoundRows) => void) => {
    const own = newest
    return (answer: LookUpAnswer) => {
      if (own !== newest) return
      if ("found" in answer) take(answer.found)
      else if ("problem" in answer) onProblem(answer.problem)
    }
  }
  const list = (filter: PickerFilter, isFirst: boolean) =>
    lookUp.ask(
      { type: "typed", query: { text: "", filter, limit: MOST_LISTED } },
      whileNewest((found) => onFound(found, { isFirst, isLast: true })),
    )
  const rank = (text: string, filter: PickerFilter, isFirst: () => boolean) =>
    lookUp.ask(
      { type: "ranked", query: { text, filter, limit: MOST_FOUND } },
      whileNewest((found) => onFound(found, { isFirst: isFirst(), isLast: true })),
    )
  const restart = () => {
    newest++
    clearTimeout(pause)
  }
  return {
    find: (typed, filter) => {
      restart()
      const text = typed.trim()
      if (text === "") return list(filter, true)
      let hasRows = false
      lookUp.ask(
        { type: "typed", query: { text, filter, limit: MOST_FOUND } },
        whileNewest((found) => {
          // Titles alone: that there are none says nothing yet.
          if (found.rows.length === 0) return
          hasRows = true
          onFound(found, { isFirst: true, isLast: false })
        }),
      )
      pause = setTimeout(() => rank(text, filter, () => !hasRows), PAUSE_MS)
    },
    refresh: (typed, filter) => {
      restart()
      const text = typed.trim()
      if (text === "") list(filter, false)
      else rank(text, filter, () => false)
    },
    stop: restart,
  }
}
