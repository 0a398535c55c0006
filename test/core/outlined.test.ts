import { expect, test } from "vitest"
import { outlineLines } from "../../src/core/prose.ts"

const kinds = (text: string) => [...outlineLines(text)].map(({ kind }) => kind)

test("each line has its kind, its offset and the headings above it", () => {
  const text = "# A\none\n## B ##\n```sh\n# no heading\n```\ntwo\n# C"
  const lines = [...outlineLines(text)]
  expect(lines.map(({ kind, headings }) => [kind, headings.join(">")])).toEqual([
    ["heading", "A"],
    ["text", "A"],
    ["heading", "A>B"],
    ["fence", "A>B"],
    ["code", "A>B"],
    ["fence", "A>B"],
    ["text", "A>B"],
    ["heading", "C"],
  ])
  for (const { text: line, start } of lines) expect(text.startsWith(line, start)).toBe(true)
})

test("a fence ends at its own mark, at least as long", () => {
  expect(kinds("````\n```\n~~~\n`````\nx")).toEqual(["fence", "code", "code", "fence", "text"])
})

test("a line of a megabyte that begins like a heading is not one, and costs nothing", () => {
  expect(kinds(`# ${" ".repeat(1_000_000)}x`)).toEqual(["text"])
})
