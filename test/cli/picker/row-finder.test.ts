import { expect, test, vi } from "vitest"
import type { FoundRows } from "../../../src/cli/picker/newest-rows.ts"
import { createRowFinder } from "../../../src/cli/picker/row-finder.ts"
import type { LookUpAnswer, LookUpRequest } from "../../../src/cli/picker/start-look-up.ts"

// Which rows are shown at the end, whichever of the two processes answers first?

type PendingQuestions = Partial<Record<LookUpRequest["type"], (answer: LookUpAnswer) => void>>

/** A finder whose questions stay open until the test answers them, and what it showed. */
function finder() {
  const pending: PendingQuestions = {}
  const shown: { refs: string[]; note: string; isLast: boolean }[] = []
  const processes = {
    ask: ({ type }: LookUpRequest, answered: (answer: LookUpAnswer) => void) => {
      pending[type] = answered
    },
    close: () => {},
  }
  const { find } = createRowFinder(
    { quickLookUp: processes, rankingLookUp: processes },
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
  find("token", { scope: "all" })
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

test("a conversation and its subagent, whose message ranks higher, are one row", async () => {
  const { pending, shown } = await searching()
  pending.typed!({ found: rows("a", "b") })
  const [subagent] = rows("a-agent").rows
  pending.ranked!({ found: { rows: [{ ...subagent!, parent: "a" }], hasMore: false, note: "" } })
  expect(shown.at(-1)).toEqual({ refs: ["a-agent", "b"], note: "", isLast: true })
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
  pending.ranked!({ problem: "The search process ended unexpectedly. Try again." })
  expect(shown.at(-1)).toEqual({ refs: ["a"], note: "The search process ended unexpectedly. Try again.", isLast: true })
})

test("if the ranking fails first, the quick rows are the last ones", async () => {
  const { pending, shown } = await searching()
  pending.ranked!({ problem: "The search process ended unexpectedly. Try again." })
  expect(shown.at(-1)).toEqual({ refs: [], note: "The search process ended unexpectedly. Try again.", isLast: true })
  pending.typed!({ found: rows("a") })
  expect(shown.at(-1)).toEqual({ refs: ["a"], note: "The search process ended unexpectedly. Try again.", isLast: true })
})

test("answers to words that have changed are dropped", async () => {
  const { find, pending, shown } = finder()
  find("tok", { scope: "all" })
  const old = pending.typed!
  find("token", { scope: "all" })
  old({ found: rows("a") })
  expect(shown).toEqual([])
})
