import { join } from "node:path"
import { expect, test } from "vitest"
import type { Moment } from "../../src/core/suggestion.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { findDocument } from "../../src/suggest/finders/code.ts"
import { NEW_SESSION } from "../../src/suggest/finders/finder.ts"
import { findConversationNaming } from "../../src/suggest/finders/related.ts"
import { tempDir } from "../support/temp.ts"

const emptyKnowledge = () => openKnowledge(join(tempDir(), "knowledge.db"))
const about = (named: Pick<Moment, "symbol" | "file">): Moment => ({
  event: "asked",
  project: "/home/dev/shop",
  at: Date.UTC(2026, 9, 20),
  ...named,
})
const quotes = (text: string, named: Pick<Moment, "symbol" | "file">) => {
  const section = { ref: "docs:a.md§A", document: "a.md", headings: ["A"], text }
  return findDocument({ knowledge: emptyKnowledge(), documents: [section] }, about(named), NEW_SESSION).map(
    ({ summary }) => summary,
  )
}

test("a document is quoted by the sentence that names the symbol, as prose", () => {
  const text = `# Charging

An order is paid once. **Call** [chargeCard](pay.md) before
shipping, never after. Then wait.

| function | use |
|---|---|
| refundCard | gives it back |

- see voidCard for a test
`
  expect(quotes(text, { symbol: "chargeCard" })).toEqual(['"Call chargeCard before shipping, never after."'])
  expect(quotes(text, { symbol: "refundCard" })).toEqual(['"refundCard · gives it back"'])
  expect(quotes(text, { symbol: "voidCard" })).toEqual(['"see voidCard for a test"'])
  expect(quotes(text, { symbol: "card" })).toEqual([])
})

test("the name of an ordinary word counts only as code, and a longer name is not the symbol", () => {
  expect(quotes("Then parse the file. It is quick.", { symbol: "parse" })).toEqual([])
  expect(quotes("It is quick. Then `parse` reads the file.", { symbol: "parse" })).toEqual([
    '"Then `parse` reads the file."',
  ])
  expect(quotes("It is quick. Call parse() first.", { symbol: "parse" })).toEqual(['"Call parse() first."'])
  expect(quotes("Use `parser` or reparse().", { symbol: "parse" })).toEqual([])
  expect(quotes("Use readTokens or unreadToken.", { symbol: "readToken" })).toEqual([])
})

test("a heading that names the symbol leads to the first sentence below it, and code is quoted only for lack of words", () => {
  expect(quotes("## readToken\n\nReturns the token. Never waits.", { symbol: "readToken" })).toEqual([
    '"Returns the token."',
  ])
  expect(quotes("Like this:\n\n```ts\nconst t = readToken()\n```\n", { symbol: "readToken" })).toEqual([
    '"const t = readToken()"',
  ])
})

test("a file is found by its name, or by its name without the ending if that is no ordinary word", () => {
  const text = "The AuthService signs in. The token is short."
  expect(quotes(text, { file: "src/AuthService.ts" })).toEqual(['"The AuthService signs in."'])
  expect(quotes(text, { file: "src/token.ts" })).toEqual([])
  expect(quotes("See token.ts for more.", { file: "src/token.ts" })).toEqual(['"See token.ts for more."'])
})

test("a long sentence is cut around the name, and no text takes long", () => {
  const long = `${"word ".repeat(2_000)}readToken ${"word ".repeat(2_000)}`
  const [quote] = quotes(long, { symbol: "readToken" })
  expect(quote).toMatch(/^"….*readToken.*…"$/)
  expect(quote!.length).toBeLessThan(250)
  for (const part of ["[", "`", "**", "![", "| "]) expect(quotes(part.repeat(50_000), { symbol: "parse" })).toEqual([])
})

test("a conversation that says the name comes before one in which only a tool's input contains it", () => {
  const conversation = { at: Date.UTC(2026, 0, 2), by: "person" as const, title: "Tokens" }
  const conversations = [
    { ...conversation, ref: "claude_code:a#2", key: "a", text: "" },
    {
      ...conversation,
      ref: "claude_code:b#1",
      key: "b",
      text: "Sure. readToken must never wait.",
      imported_from: "<b>Al",
    },
  ]
  const named = about({ symbol: "readToken" })
  expect(findConversationNaming({ knowledge: emptyKnowledge(), conversations }, named, NEW_SESSION)).toMatchObject([
    {
      title: '"Tokens" named readToken on 2026-01-02',
      summary: 'Somebody else: "readToken must never wait."',
      ref: "claude_code:b#1",
    },
  ])
})
