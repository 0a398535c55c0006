import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import type { TestSpecification } from "vitest/node"
import { LONGEST_FILES, sortLongestFirst } from "./longest-first.ts"

const TESTS = join(import.meta.dirname, "..")

test("every file in the list exists", () => {
  expect(LONGEST_FILES.filter((file) => !existsSync(join(TESTS, file)))).toEqual([])
})

test("the longest files come first within their group, and the others keep their order", () => {
  const [first, second] = LONGEST_FILES as [string, string]
  const asked = [
    ["b.test.ts", 0],
    ["a.test.ts", 0],
    [second, 0],
    [first, 0],
    ["c.test.ts", 1],
    [second, 1],
  ] as const
  const files = asked.map(
    ([file, groupOrder]) =>
      // Only these properties are read.
      ({ moduleId: join(TESTS, file), project: { config: { sequence: { groupOrder } } } }) as TestSpecification,
  )
  const sorted = sortLongestFirst(files).map((file) => asked[files.indexOf(file)])
  expect(sorted).toEqual([
    [first, 0],
    [second, 0],
    ["b.test.ts", 0],
    ["a.test.ts", 0],
    [second, 1],
    ["c.test.ts", 1],
  ])
})
