import { expect, test } from "vitest"
import { time } from "../../src/core/record.ts"

test.each([
  ["2026-11-03T09:00:00Z", 1_793_696_400_000],
  [1_793_696_400, 1_793_696_400_000],
  [1_793_696_400_000, 1_793_696_400_000],
  [1e308, undefined],
  [8.64e15 + 2, undefined],
  [-1, undefined],
  [Number.NaN, undefined],
  ["soon", undefined],
  [null, undefined],
])("a time of %j is read as %j", (value, expected) => {
  expect(time(value)).toBe(expected)
})
