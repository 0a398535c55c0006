import { expect, test } from "vitest"
import { parseDate } from "../../src/core/dates.ts"

const NOW = Date.UTC(2026, 5, 15, 12)

test.each([
  "2026-02-31",
  "2025-02-29",
  "2026-04-31",
  "2026-11-00",
  "2026-11-32",
  "2026-00",
  "2026-13",
  "2026-02-31T10:00",
])("%s is not a date", (typed) => {
  expect(() => parseDate(typed, "from", NOW)).toThrow(expect.objectContaining({ code: "bad_date" }))
})

test("the last day of a month is a date, as is the month itself", () => {
  const start = new Date(2024, 1, 29).getTime()
  const end = new Date(2024, 2, 1).getTime() - 1
  expect(["from", "to"].map((edge) => parseDate("2024-02-29", edge as "from", NOW))).toEqual([start, end])
  expect(parseDate("2024-02", "to", NOW)).toBe(end)
  expect(parseDate("2024-02-29T10:00", "from", NOW)).toBe(new Date(2024, 1, 29, 10).getTime())
  expect(parseDate("2024-02-29T10:00:00Z", "from", NOW)).toBe(Date.UTC(2024, 1, 29, 10))
})
