import { join } from "node:path"
import fc from "fast-check"
import { expect, onTestFinished, test } from "vitest"
import { KINDS } from "../../src/core/suggestion.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import {
  adjustedRelevance,
  learnFromVerdict,
  MAX_FEATURE_WEIGHT,
  MAX_KIND_WEIGHT,
  MAX_SHIFT,
} from "../../src/suggest/feedback/feedback.ts"
import { usedItems } from "../../src/suggest/feedback/observe-use.ts"
import { itemOf, suggestionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"

const logit = (p: number) => Math.log(p / (1 - p))

test("used items weigh more from then on, dismissed ones less, and one command undoes it", () => {
  const suggestions = openSuggestions(join(tempDir(), "suggest.db"))
  onTestFinished(() => suggestions.close())
  const fix = itemOf({ relevance: 0.5 })
  const decision = itemOf({ kind: "decision", relevance: 0.5, features: {} })
  for (let i = 0; i < 3; i++) {
    suggestions.save(suggestionOf(`u${i}`, { items: [fix] }))
    suggestions.save(suggestionOf(`d${i}`, { items: [decision] }))
    suggestions.setStatus(`u${i}`, "used", 1, learnFromVerdict)
    suggestions.setStatus(`d${i}`, "dismissed", 1, learnFromVerdict)
  }
  const weights = suggestions.weights()
  expect(weights["kind:fix"]).toBeCloseTo(0.3)
  expect(weights["fix.likeness"]).toBeCloseTo(0.27)
  expect(weights["kind:decision"]).toBeCloseTo(-0.3)
  expect(adjustedRelevance(fix, weights)).toBeGreaterThan(0.6)
  expect(adjustedRelevance(decision, weights)).toBeLessThan(0.45)
  suggestions.resetWeights()
  expect(adjustedRelevance(fix, suggestions.weights())).toBe(0.5)
})

test("withdrawing a verdict leaves only the effect of the other verdict", () => {
  const item = itemOf({ relevance: 0.6 })
  const step = (weights: Record<string, number>, before: number | undefined, after: number) => ({
    ...weights,
    ...learnFromVerdict(item, before, after, (name) => weights[name] ?? 0),
  })
  const changed = step(step({}, undefined, 1), 1, 0)
  const direct = step({}, undefined, 0)
  for (const name of Object.keys(direct)) expect(changed[name]).toBeCloseTo(direct[name]!, 10)
})

test("no series of verdicts moves a kind by more than 1, a feature by more than 0.5, or an item by more than 1, in log-odds", () => {
  const item = fc.record({
    kind: fc.constantFrom(...KINDS),
    relevance: fc.double({ min: 0.01, max: 0.99, noNaN: true }),
    features: fc.dictionary(
      fc.constantFrom("a", "b", "c"),
      fc.oneof(fc.double({ min: -3, max: 3 }), fc.constant(Number.NaN)),
    ),
  })
  fc.assert(
    fc.property(fc.array(fc.tuple(item, fc.constantFrom(0, 1)), { maxLength: 200 }), item, (verdicts, asked) => {
      const weights: Record<string, number> = {}
      for (const [one, verdict] of verdicts)
        Object.assign(
          weights,
          learnFromVerdict(itemOf(one), undefined, verdict, (name) => weights[name] ?? 0),
        )
      for (const [name, value] of Object.entries(weights))
        expect(Math.abs(value)).toBeLessThanOrEqual(name.startsWith("kind:") ? MAX_KIND_WEIGHT : MAX_FEATURE_WEIGHT)
      const now = adjustedRelevance(asked, weights)
      expect(Math.abs(logit(now) - logit(asked.relevance))).toBeLessThanOrEqual(MAX_SHIFT + 1e-9)
    }),
    { numRuns: 300, seed: 6 },
  )
})

test("a hundred equal verdicts end at the bounds", () => {
  const item = itemOf({ relevance: 0.5, features: { a: 1, b: 1, c: 1 } })
  for (const verdict of [0, 1]) {
    const weights: Record<string, number> = {}
    for (let i = 0; i < 100; i++)
      Object.assign(
        weights,
        learnFromVerdict(item, undefined, verdict, (name) => weights[name] ?? 0),
      )
    const sign = verdict === 1 ? 1 : -1
    expect(weights).toEqual({ "kind:fix": sign, "fix.a": sign / 2, "fix.b": sign / 2, "fix.c": sign / 2 })
    expect(adjustedRelevance(item, weights)).toBeCloseTo(verdict === 1 ? 0.731 : 0.269, 3)
  }
})

test("an item counts as used if its ref was opened or its file edited afterwards, not if it was edited before", () => {
  const project = "/home/someone/api"
  const items = [
    { number: 1, ref: "claude_code:aaaa-1111#12" },
    { number: 2, file: "src/a.ts" },
    { number: 3, ref: "git:abcdef", file: "src/b.ts" },
    { number: 4, ref: "docs:api/auth.md§Tokens" },
    { number: 5 },
  ]
  const used = (refs: string[], files: string[], before: string[] = []) =>
    usedItems(items, { refs, files }, project, before)
  expect(used([], [])).toEqual([])
  expect(used(["claude_code:aaaa-1111"], [])).toEqual([1])
  expect(used(["claude_code:aaaa-1111#90"], [])).toEqual([1])
  expect(used(["aaaa"], [])).toEqual([1])
  expect(used(["aaa", "codex:aaaa-1111", "claude_code:aaaa-1112", "not a ref"], [])).toEqual([])
  expect(used([], [`${project}/src/a.ts`, "./src/b.ts", "/elsewhere/src/a.ts"])).toEqual([2, 3])
  expect(used([], ["src/a.ts", "src/b.ts"], [`${project}/src/a.ts`])).toEqual([3])
  expect(used(["git:abcdef"], [])).toEqual([3])
  expect(used(["docs:api/auth.md"], [])).toEqual([4])
})
