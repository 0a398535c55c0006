import { expect, test, vi } from "vitest"
import type { FoundRows } from "../../../src/cli/picker/newest-rows.ts"
import { createRowFinder } from "../../../src/cli/picker/row-finder.ts"
import type { LookUpAnswer, LookUpQuestion } from "../../../src/cli/picker/start-look-up.ts"

// Which rows are shown at the end, whichever of the two processes answers first?

type PendingQuestions = Partial<Record<LookUpQuestion["type"], (answer: LookUpAnswer) => void>>

/** A finder whose questions stay open until the test answers them, and what it showed. */
function finder() {
  const pending: PendingQuestions = {}
  const shown: { refs: string[]; note: string; isLast: boolean }[] = []
  const processes = {
    ask: ({ type }: LookUpQuestion, answered: (answer: LookUpAnswer) => void) => {
      pending[type] = answered
    },
    close: () => {},
  }
  const { find } = createRowFinder(
    { typing: processes, ranking: processes },
    {
      onFound: ({ rows, note }, { isLast }) => shown.push({ refs: rows.map(({ ref }) => ref), note, isLast }),
      onProblem: (note) => shown.push({ refs: [], note, isLast: true }),
    },
  )
  return { pending, shown, find }
}

function rows(...refs: string[]): FoundRows {
  const row = { title: "", time: "", source: "codex", project: "" }
  return { rows: refs.map((ref) => ({ ...row, ref })), hasMore: false, note: "" }
}

async function searching() {
  const { find, pending, shown } = finder()
  find("token", { here: false })
  await vi.waitFor(() => expect(Object.keys(pending).sort()).toEqual(["ranked", "typed"]))
  return { pending, shown }
}

test("ranked rows come first, and the quick ones stay below", async () => {
  const { pending, shown } = await searching()
  pending.typed!({ found: rows("a", "b") })
  expect(shown.at(-1)).toEqual({ refs: ["a", "b"], note: "", isLast: false })
  pending.ranked!({ found: rows("c", "b") })
  expect(shown.at(-1)).toEqual({ refs: ["c", "b", "a"], note: "", isLast: true })
})

test("the order is the same if the ranking arrives first", async () => {
  const { pending, shown } = await searching()
  pending.ranked!({ found: rows("c", "b") })
  pending.typed!({ found: rows("a", "b") })
  expect(shown.at(-1)).toEqual({ refs: ["c", "b", "a"], note: "", isLast: true })
})

test("if the ranking fails, the quick rows stay, and the reason is shown", async () => {
  const { pending, shown } = await searching()
  pending.typed!({ found: rows("a") })
  pending.ranked!({ problem: "The search process ended unexpectedly." })
  expect(shown.at(-1)).toEqual({ refs: ["a"], note: "The search process ended unexpectedly.", isLast: true })
})

test("if the ranking fails first, the quick rows are the last ones", async () => {
  const { pending, shown } = await searching()
  pending.ranked!({ problem: "The search process ended unexpectedly." })
  expect(shown.at(-1)).toEqual({ refs: [], note: "The search process ended unexpectedly.", isLast: true })
  pending.typed!({ found: rows("a") })
  expect(shown.at(-1)).toEqual({ refs: ["a"], note: "The search process ended unexpectedly.", isLast: true })
})

test("answers to words that have changed are dropped", async () => {
  const { find, pending, shown } = finder()
  find("tok", { here: false })
  const old = pending.typed!
  find("token", { here: false })
  old({ found: rows("a") })
  expect(shown).toEqual([])
})
