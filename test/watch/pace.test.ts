import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { createLookSchedule, type LookOutcome } from "../../src/watch/watch.ts"

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Looks that take this long, on a clock that only the test moves. */
function pace(takesMs: number, outcomes: LookOutcome[] = []) {
  const looks: { key: string; at: number }[] = []
  const began = Date.now()
  const now = () => Date.now() - began
  const made = createLookSchedule(async (key) => {
    looks.push({ key, at: Math.round(now() / 10) * 10 }) // a timer of 0 is one of 1 here
    await new Promise((resolve) => setTimeout(resolve, takesMs))
    return outcomes.shift() ?? "done"
  }, now)
  const times = () => looks.map(({ at }) => at)
  return { ...made, looks, times }
}

test("a first change is looked at a tenth of a second later, together with others from that time", async () => {
  const { touch, times } = pace(10)
  touch("a")
  await vi.advanceTimersByTimeAsync(60)
  touch("a")
  await vi.advanceTimersByTimeAsync(10_000)
  expect(times()).toEqual([100])
})

test("a file that changes all the time is looked at once a second, and the last change is never missed", async () => {
  const { touch, times } = pace(20)
  for (let i = 0; i < 1_000; i++) {
    touch("a")
    await vi.advanceTimersByTimeAsync(5)
  }
  await vi.advanceTimersByTimeAsync(10_000)
  expect(times()).toEqual([100, 1_100, 2_100, 3_100, 4_100, 5_100])
})

test("a long look takes at most a fifth of the time, but happens at least once a minute", async () => {
  const slow = pace(2_000)
  const slowest = pace(50_000)
  for (let i = 0; i < 300; i++) {
    slow.touch("a")
    slowest.touch("a")
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(slow.looks.length).toBeGreaterThan(25)
  expect(slow.looks.length).toBeLessThanOrEqual(31)
  expect(slowest.looks.length).toBeGreaterThanOrEqual(5)
})

test("starting the reading process does not count as reading", async () => {
  const { touch, times } = pace(900, [{ tookMs: 50 }])
  touch("a")
  await vi.advanceTimersByTimeAsync(2_000)
  touch("a")
  await vi.advanceTimersByTimeAsync(5_000)
  expect(times()).toEqual([100, 2_100])
})

test("a failed look is retried, less and less often, and returns to the usual pace when it works again", async () => {
  const { touch, times } = pace(0, ["failed", "failed", "failed", "done"])
  touch("a")
  await vi.advanceTimersByTimeAsync(100_000)
  expect(times()).toEqual([100, 5_100, 15_100, 35_100])
  touch("a")
  await vi.advanceTimersByTimeAsync(100)
  expect(times().at(-1)).toBe(100_100)
})

test("failing for a day means a try every five minutes", async () => {
  const { touch, looks } = pace(0, Array<LookOutcome>(1_000).fill("failed"))
  touch("a")
  await vi.advanceTimersByTimeAsync(86_400_000)
  expect(looks.length).toBeLessThan(300)
  expect(looks.length).toBeGreaterThan(280)
})

test("if another process is doing it, it is retried after a second", async () => {
  const { touch, times } = pace(0, ["busy", "busy", "done"])
  touch("a")
  await vi.advanceTimersByTimeAsync(60_000)
  expect(times()).toEqual([100, 1_100, 2_100])
})

test("one look at a time, and a slow one does not slow down another key", async () => {
  const { touch, looks } = pace(300)
  touch("a")
  touch("b")
  await vi.advanceTimersByTimeAsync(10_000)
  expect(looks).toEqual([
    { key: "a", at: 100 },
    { key: "b", at: 400 },
  ])
})

test("after stop nothing begins, and it waits for the current look", async () => {
  const { touch, stop, looks } = pace(500)
  touch("a")
  await vi.advanceTimersByTimeAsync(150)
  touch("a")
  let stopped = false
  const stopping = stop().then(() => {
    stopped = true
  })
  await vi.advanceTimersByTimeAsync(100)
  expect(stopped).toBe(false)
  await vi.advanceTimersByTimeAsync(10_000)
  await stopping
  expect(looks.length).toBe(1)
})
