import { expect, test } from "vitest"
import { parseDocument } from "../../src/documents/document.ts"

test("plain text is cut at blank lines into pieces of about 2,000 characters", async () => {
  const text = `\n\n${Array.from({ length: 30 }, (_, i) => `${`word${i} `.repeat(60)}\nsecond line\n`).join("\n")}`
  const { sections, title } = await parseDocument(text, "text")
  const lines = text.split("\n").slice(0, -1)
  expect(title).toBe("")
  expect(sections.length).toBeGreaterThan(5)
  expect(sections[0]).toMatchObject({ anchor: "", first_line: 3 })
  expect(sections.map(({ text }) => text).join("\n")).toBe(lines.slice(2).join("\n"))
  for (const { text } of sections) {
    expect(text.length).toBeLessThanOrEqual(2_000)
    expect(text.startsWith("word")).toBe(true)
  }
})

test("underlined titles are headings, with levels in the order in which their marks appear", async () => {
  const text =
    "=====\nTitle\n=====\n\nintro\n\nPart one\n--------\n\ntext\n\nDeeper\n~~~~~~\n\nPart two\n--------\n\nlist::\n\n  a\n  --\n"
  const { title, sections } = await parseDocument(text, "text")
  expect(title).toBe("Title")
  expect(sections.map(({ anchor, level, first_line, last_line }) => [anchor, level, first_line, last_line])).toEqual([
    ["title", 1, 1, 6],
    ["part-one", 2, 7, 11],
    ["deeper", 3, 12, 14],
    ["part-two", 2, 15, 21],
  ])
})

test("an endless paragraph is cut between lines", async () => {
  const { sections } = await parseDocument("a line of text\n".repeat(1_000), "text")
  expect(sections.length).toBeGreaterThan(6)
  expect(sections.at(-1)?.last_line).toBe(1_000)
})
