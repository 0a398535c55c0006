import { expect, test } from "vitest"
import { projectNames, shortDate } from "../../src/render/words.ts"

const NOW = new Date(2026, 10, 16, 10).getTime()

test.each([
  [[2026, 10, 16, 10, 5], "now"],
  [[2026, 10, 16, 9, 59, 31], "now"],
  [[2026, 10, 16, 9, 55], "5m"],
  [[2026, 10, 16, 8], "2h"],
  [[2026, 10, 3, 10], "13d"],
  [[2026, 10, 2, 9], "Nov 2"],
  [[2026, 1, 4, 12], "Feb 4"],
  [[2026, 0, 4, 12], "Jan 4"],
  [[2025, 11, 31, 12], "Dec 2025"],
  [[2025, 1, 4, 12], "Feb 2025"],
  [[2024, 11, 31, 23], "Dec 2024"],
] as [number[], string][])("the time %j is shown as %s", (parts, shown) => {
  const [year = 0, month = 0, day, hour, minute, second] = parts
  const at = new Date(year, month, day, hour, minute ?? 0, second ?? 0)
  expect(shortDate(at.toISOString(), NOW)).toBe(shown)
})

test("a missing time is no date", () => {
  expect([shortDate("", NOW), shortDate(undefined, NOW)]).toEqual(["no date", "no date"])
})

test.each([
  [
    ["/code/api", "/code/web"],
    ["api", "web"],
  ],
  [
    ["/code/devenv/cli", "/code/workspace/cli", "/code/web"],
    ["devenv/cli", "workspace/cli", "web"],
  ],
  [
    ["/a/x/cli", "/b/x/cli"],
    ["a/…/cli", "b/…/cli"],
  ],
  [
    ["/cli", "/x/cli"],
    ["cli", "x/cli"],
  ],
  [
    ["C:\\code\\api", "C:\\old\\api"],
    ["code/api", "old/api"],
  ],
  [
    ["/code/api", "/code/api/", "/code/api"],
    ["api", "api", "api"],
  ],
  [
    ["", "/", "/code/api"],
    ["no project", "/", "api"],
  ],
])("the projects %j are named %j", (paths, names) => {
  expect(paths.map(projectNames(paths))).toEqual(names)
})
