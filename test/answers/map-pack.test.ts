import fc from "fast-check"
import { expect, test } from "vitest"
import { hashOf, type MeasuredConversation, pieceLength } from "../../src/answers/map/data.ts"
import { type Batch, MAX_EMPTY_SHARE, maxUnitChars, planBatches, storedBatch } from "../../src/answers/map/pack.ts"

const BUDGET = 14_000
const HEAD = "=== a head\n"

type Made = MeasuredConversation & { shares: number[] }

/** `shares` is the length of each unit, in hundredths of the longest unit. */
function conversation(id: string, at: number, shares: number[]): Made {
  const most = maxUnitChars(BUDGET) - HEAD.length - "#1 goes on\n".length
  const units = shares.map((share, i) => ({
    number: (i % 9) + 1,
    isContinuation: share > 80,
    chars: Math.max(1, Math.floor((most * share) / 100)),
    hash: hashOf(`${id} ${i} ${share}`),
  }))
  const before = [0]
  for (const { chars } of units) before.push(before.at(-1)! + chars)
  return { ref: { source: "codex", id }, at, format: "stripped", head: HEAD, units, charsBefore: before, shares }
}

const sizes = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 90 })
const histories = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 40 }), sizes), { minLength: 1, maxLength: 60 })
  .map((all) => all.map(([at, units], i) => conversation(`c${i}`, at, units)))

const unitsIn = (batches: Batch[]) =>
  batches.flatMap(({ pieces }) =>
    pieces.flatMap(({ ref, from, count }) => Array.from({ length: count }, (_, i) => `${ref.id} ${from + i}`)),
  )
const unitsOf = (history: MeasuredConversation[]) =>
  history.flatMap(({ ref, units }) => units.map((_, i) => `${ref.id} ${i}`))
const isFull = ({ chars }: Batch) => chars >= BUDGET * (1 - MAX_EMPTY_SHARE)

test("every unit is in one batch, no batch is too large, and all but the last are full", () => {
  fc.assert(
    fc.property(histories, (history) => {
      const batches = planBatches(history, BUDGET)
      expect(unitsIn(batches).sort()).toEqual(unitsOf(history).sort())
      for (const batch of batches) {
        const of = (id: string) => history.find(({ ref }) => ref.id === id)!
        const chars = batch.pieces.reduce((sum, { ref, from, count }) => sum + pieceLength(of(ref.id), from, count), 0)
        expect(chars).toBe(batch.chars)
        expect(chars).toBeLessThanOrEqual(BUDGET)
      }
      expect(batches.slice(0, -1).filter((batch) => !isFull(batch))).toEqual([])
      expect(planBatches([...history].reverse(), BUDGET)).toEqual(batches)
    }),
  )
})

test("a conversation that fits into the rest of a batch is not split", () => {
  const batches = planBatches([conversation("a", 1, Array(15).fill(100)), conversation("b", 2, [50])], BUDGET)
  expect(batches[0]!.pieces).toEqual([
    { ref: { source: "codex", id: "a" }, from: 0, count: 15 },
    { ref: { source: "codex", id: "b" }, from: 0, count: 1 },
  ])
})

test("when a history grows, full and answered batches stay, and only new units are packed", () => {
  const growth = fc.tuple(histories, fc.array(sizes, { maxLength: 8 }), fc.array(fc.nat(59), { maxLength: 3 }), sizes)
  fc.assert(
    fc.property(growth, fc.boolean(), ([history, more, grown, tail], wasDone) => {
      const first = planBatches(history, BUDGET)
      const known = first.map(storedBatch)
      const later = [
        ...history.map((one, i) =>
          grown.includes(i) ? conversation(one.ref.id, one.at, [...one.shares, ...tail]) : one,
        ),
        // Newer and older ones, because an agent may be read for the first time.
        ...more.map((units, i) => conversation(`n${i}`, i % 2 ? 99 : -1, units)),
      ]
      const done = new Set(wasDone ? first.map(({ hash }) => hash) : [])
      const second = planBatches(later, BUDGET, known, (hash) => done.has(hash))
      expect(unitsIn(second).sort()).toEqual(unitsOf(later).sort())
      const stays = first.filter((batch) => wasDone || isFull(batch)).map(({ hash }) => hash)
      expect(second.slice(0, stays.length).map(({ hash }) => hash)).toEqual(stays)
      expect(second.slice(stays.length, -1).filter((batch) => !isFull(batch))).toEqual([])
    }),
  )
})

test("if a conversation changes, only its own batches change, and what was lost is packed again", () => {
  const history = Array.from({ length: 24 }, (_, i) => conversation(`c${i}`, i, Array(10).fill(60)))
  const first = planBatches(history, BUDGET)
  const without = (id: string) => (batch: Batch) => !batch.pieces.some(({ ref }) => ref.id === id)
  const kept = first
    .slice(0, -1)
    .filter(without("c1"))
    .map(({ hash }) => hash)
  expect(kept.length).toBeGreaterThan(3)
  const again = (later: Made[]) => {
    const second = planBatches(later, BUDGET, first.map(storedBatch))
    expect(unitsIn(second).sort()).toEqual(unitsOf(later).sort())
    expect(second.map(({ hash }) => hash)).toEqual(expect.arrayContaining(kept))
    expect(second.every(({ chars }) => chars <= BUDGET)).toBe(true)
  }
  again(history.map((one) => (one.ref.id === "c1" ? conversation("c1", 1, Array(10).fill(59)) : one)))
  again(history.map((one) => (one.ref.id === "c1" ? conversation("c1", 1, Array(10).fill(100)) : one)))
  again(history.filter((one) => one.ref.id !== "c1"))
})
