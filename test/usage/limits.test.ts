import { describe, expect, test } from "vitest"
import { limitsInStatusLine } from "../../src/agents/claude-code/limits.ts"
import type { AgentLimits } from "../../src/core/limits.ts"
import { forecast, limitsLine, windowName, withReport } from "../../src/usage/limits.ts"

const HOUR = 3_600_000
const START = Date.UTC(2026, 10, 3, 9)
const END = START + 5 * HOUR
/** A report of the five hours from `START`, this many hours after it. */
const report = (hours: number, used: number): AgentLimits => ({
  at: START + hours * HOUR,
  limits: [{ minutes: 300, used, resets_at: END }],
  earlier: [],
})
const reports = (...all: AgentLimits[]) => all.reduce<AgentLimits | undefined>(withReport, undefined)!
const forecastOf = (limits: AgentLimits) => forecast(limits.limits[0]!, limits)

describe("the limits in a status line's input", () => {
  const limits = (rate_limits: unknown) => limitsInStatusLine({ rate_limits }, 5)?.limits
  const five_hour = { used_percentage: 23.5, resets_at: 1_738_425_600 }
  test("are read with their windows", () => {
    expect(limits({ five_hour, seven_day: { used_percentage: 105, resets_at: 1_738_857_600 } })).toEqual([
      { minutes: 300, used: 23.5, resets_at: 1_738_425_600_000 },
      { minutes: 10_080, used: 105, resets_at: 1_738_857_600_000 },
    ])
  })
  test("are left out if they are missing or nonsense", () => {
    for (const wrong of [undefined, null, 3, {}, { five_hour: null }, { five_hour: { used_percentage: "x" } }])
      expect(limits(wrong)).toBeUndefined()
    expect(limits({ five_hour: { ...five_hour, used_percentage: -1 } })).toBeUndefined()
    expect(limits({ five_hour: { ...five_hour, resets_at: 0 } })).toBeUndefined()
  })
})

describe("the forecast", () => {
  test("is a range of the pace so far and that of the last fifth of the window", () => {
    // 30 % in 3 hours are 50 % in 5; 20 % in the last of them are 70 %.
    expect(forecastOf(reports(report(2, 10), report(3, 30)))).toEqual({ type: "lasts", from: 50, to: 70 })
  })
  test("is when the limit is reached, if that is before the reset", () => {
    const both = forecastOf(reports(report(1, 40), report(2, 80)))
    expect(both).toEqual({ type: "runs_out", from: START + 2.5 * HOUR, to: START + 2.5 * HOUR })
    // 60 % in 3 hours last; 40 % in the last of them do not.
    expect(forecastOf(reports(report(2, 15), report(3, 57)))).toMatchObject({ type: "runs_out", to: undefined })
  })
  test("does not exist at the beginning of a window, after it, and once the limit is reached", () => {
    for (const one of [report(0.1, 5), report(6, 5), report(2, 100)]) expect(forecastOf(one)).toBeUndefined()
  })
  test("forgets the reports of a window that has ended", () => {
    const next = { ...report(6, 3), limits: [{ minutes: 300, used: 3, resets_at: END + 5 * HOUR }] }
    expect(reports(report(1, 5), report(4, 90), next).earlier).toEqual([])
  })
  test("stores a limited number of reports", () => {
    const many = Array.from({ length: 500 }, (_, i) => report(i / 200, i / 10))
    expect(reports(...many).earlier.length).toBe(60)
  })
})

test("a status line shows the limits that have not been reset", () => {
  expect(limitsLine(report(1, 41.6), START)).toEqual([expect.stringMatching(/^5 h 42 % until \d\d:00$/)])
  expect(limitsLine(report(1, 41.6), END)).toEqual([])
  expect([300, 10_080, 90].map(windowName)).toEqual(["5 h", "7 days", "90 min"])
})
