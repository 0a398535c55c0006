import { expect, test } from "vitest"
import { snippetLine } from "../../src/cli/print/search.ts"
import { widthOf } from "../../src/render/terminal.ts"
import { matchTexts } from "../../src/store/index/snippets.ts"

const snippetOf = (text: string, word = "token") => matchTexts([text], [{ words: word }], [word])[0]!.snippet

test.each([
  ["## The token race\n\nIt is rotated.", "The **token** race It is rotated."],
  ["> the token\n> is used", "the **token** is used"],
  ["| name | token |\n|---|:--:|\n| a | b |", "name · **token** a · b"],
  ["Run:\n```ts\nuse(token)\n```\n---\nThen wait.", "Run: use(**token**) Then wait."],
  ["cat token | grep x || true", "cat **token** | grep x || true"],
  ["#12 is the token of C#", "#12 is the **token** of C#"],
])("the snippet of %j is %j", (text, snippet) => {
  expect(snippetOf(text)).toBe(snippet)
})

test("a text in which nothing matches is cut after a word", () => {
  const snippet = snippetOf("some words ".repeat(60), "zebra")
  expect(snippet).toMatch(/^(?:some words )+(?:some|some words)…$/)
  expect(snippet.length).toBeLessThanOrEqual(301)
})

const LONG = `${"some words before it ".repeat(9)}the **refresh** **token** is rotated${" and more".repeat(20)}`

test.each([20, 40, 80, 140])("in %i columns it begins and ends at words and shows the match", (columns) => {
  const line = snippetLine(LONG, columns, { color: false })
  expect(widthOf(line)).toBeLessThanOrEqual(columns)
  expect(line).toContain("**refresh**")
  const words = new Set(LONG.split(" "))
  expect(
    line
      .replaceAll("…", "")
      .split(" ")
      .filter((word) => !words.has(word)),
  ).toEqual([])
})

test("colours replace the asterisks, and take no room", () => {
  const line = snippetLine(LONG, 40, { color: true }, "dim")
  expect(line).toContain("\x1b[33mrefresh\x1b[0m")
  expect(line).not.toContain("*")
  expect(widthOf(line.replaceAll(/\x1b\[\d+m/g, ""))).toBeLessThanOrEqual(40)
})

test("in a text without spaces the match is shown too", () => {
  const text = `${"\u5728\u4e24\u4e2a\u8bf7\u6c42\u4e2d".repeat(30)}**\u4ee4\u724c**${"\u8bf7\u6c42".repeat(30)}`
  for (const columns of [20, 80]) {
    const line = snippetLine(text, columns, { color: false })
    expect(line).toContain("**\u4ee4\u724c**")
    expect(widthOf(line)).toBeLessThanOrEqual(columns)
  }
})
