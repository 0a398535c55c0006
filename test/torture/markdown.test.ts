import { expect, test } from "vitest"
import { parseDocument } from "../../src/documents/document.ts"

test("lists that are nested or long without limit are read in bounded time", async () => {
  const deep = await parseDocument(">".repeat(50_000), "markdown")
  expect(deep.problems.join()).toMatch(/more than 100 deep/)
  const long = await parseDocument("- - - - - a\n".repeat(1_500), "markdown")
  expect(long.problems).toEqual([])
  expect(long.sections.at(-1)?.last_line).toBe(1_500)
  const item = await parseDocument(`- x\n${"  - - - a\n".repeat(6_000)}`, "markdown")
  expect(item.problems.join()).toMatch(/takes too long/)
  expect(item.sections.at(-1)?.last_line).toBe(6_001)
})

test("a script that would be parsed again at every line is abandoned", async () => {
  const parsed = await parseDocument(`export const a = \`${"x\n\n".repeat(20_000)}`, "mdx")
  expect(parsed.problems.join()).toMatch(/does not parse as MDX/)
})
