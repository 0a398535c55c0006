import { expect, test } from "vitest"
import {
  compilePattern,
  createMatcher,
  findPattern,
  type PatternSearch,
  type TextPattern,
  wordsInEveryMatch,
} from "../../src/search/pattern.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { newHistory } from "../support/indexed.ts"

const pattern = (text: string, more: Partial<TextPattern> = {}): TextPattern => ({
  text,
  isFixed: false,
  wholeWords: false,
  ...more,
})
const finds = (given: TextPattern, text: string) => compilePattern(given).test(text)

test("a pattern in lower case also finds capitals, any other only what is written", () => {
  expect(finds(pattern("enoent"), "an ENOENT")).toBe(true)
  expect(finds(pattern("Enoent"), "an ENOENT")).toBe(false)
  expect(finds(pattern("enoent\\W\\S"), "ENOENT: no")).toBe(false)
  expect(finds(pattern("enoent\\W+\\S"), "ENOENT: no")).toBe(true)
})

test("^ and $ are the ends of a line, and a fixed text has no signs", () => {
  expect(finds(pattern("^b$"), "a\nb\nc")).toBe(true)
  expect(finds(pattern("a.b(", { isFixed: true }), "a.b(c)")).toBe(true)
  expect(finds(pattern("a.b(", { isFixed: true }), "axb(c)")).toBe(false)
  for (const sign of "\\^$.*+?()[]{}|/-&#~")
    expect(finds(pattern(`x${sign}y`, { isFixed: true, wholeWords: true }), `x${sign}y`)).toBe(true)
})

test("whole words end where letters of any language end", () => {
  const words = pattern("lock", { wholeWords: true })
  expect(finds(words, "a lock.")).toBe(true)
  for (const text of ["locked", "unlock", "élock", "lock_file", "lock2"]) expect(finds(words, text)).toBe(false)
  expect(finds(pattern("a|b", { wholeWords: true }), "xa")).toBe(false)
})

test("says what is wrong with a regular expression", () => {
  expect(() => compilePattern(pattern("(foo"))).toThrow(/no regular expression: Unterminated group\. -F searches/)
  expect(() => compilePattern(pattern("a)(b", { wholeWords: true }))).toThrow(/no regular expression/)
})

test("gives up on a text for which a pattern would need years, and goes on with the next", () => {
  const match = createMatcher(/(a+)+$/)
  const years = `${"a".repeat(60)}!`
  expect(match(["b", years, "aa", years])).toEqual([undefined, "too_slow", { index: 0, length: 2 }, "too_slow"])
  expect(match(["aaa"])).toEqual([{ index: 0, length: 3 }])
})

test("gives up on all texts that are left when the time of the whole search is over", () => {
  const years = `${"a".repeat(60)}!`
  expect(createMatcher(/(a+)+$/)([...Array(1_000).fill(years), "a"], 0)).toEqual(Array(1_001).fill("too_slow"))
})

test("gives up on a text for which a pattern would need too much memory", () => {
  expect(createMatcher(/(?:a|b|\n)*c/)(["ab".repeat(5_000_000), "c"])).toEqual(["too_slow", { index: 0, length: 1 }])
})

test("only words that every match has to contain narrow a search", () => {
  const words = (text: string, more: Partial<TextPattern> = {}) => wordsInEveryMatch(pattern(text, more))
  expect(words("cannot find module x", { isFixed: true })).toEqual(["find", "module"])
  expect(words("cannot find", { isFixed: true, wholeWords: true })).toEqual(["cannot", "find"])
  expect(words("ENOENT", { isFixed: true })).toEqual([])
  expect(words("cannot find module .*")).toEqual(["find", "module"])
  expect(words("a find\\.module b")).toEqual(["find", "module"])
  expect(words(" find ?x| find ", {})).toEqual([])
  for (const text of [
    " find *",
    " find ?",
    " find {0}",
    " fin?d ",
    " [ find ]",
    " (?! find )",
    "\\\\. find ",
    " \\x find",
  ])
    expect(words(text)).toEqual([])
})

const TEXTS = [
  "Error: cannot find module 'lodash'",
  "error: CANNOT FIND MODULE lodash-es",
  "we cannot findmodule",
  "cannot find modules of Zürich",
  "finding modules cannot fail",
  "a\ncannot find\nmodule",
  "find_module cannot find, module!",
  "éfindé cannot\u00a0find module",
]
const PATTERNS = [
  ...["find", "cannot find module", " find ", "module", "find, m", "find\nm", "t find m"].flatMap((text) => [
    pattern(text, { isFixed: true }),
    pattern(text, { isFixed: true, wholeWords: true }),
  ]),
  ...["cannot find module .*", "cannot +find +modul", ".find module.", "t find (m|x)", "t find\\smodules?"].flatMap(
    (text) => [pattern(text), pattern(text, { wholeWords: true })],
  ),
]

const search = (given: TextPattern, more: Partial<PatternSearch> = {}): PatternSearch => ({
  pattern: given,
  by: "message",
  countsAll: false,
  limit: 100,
  offset: 0,
  ...more,
})

test("the index loses no match", async () => {
  const { store, index } = newHistory()
  for (const [i, text] of TEXTS.entries())
    await store.writeUnit(unit(`u${i}`, [conversation(`c${i}`, [textMessage(`m${i}`, text)])]))
  await index.follow(store)
  let narrowed = 0
  const counting: HistoryReader = {
    ...store,
    messages: (ref) => {
      narrowed--
      return store.messages(ref)
    },
  }
  for (const given of PATTERNS) {
    narrowed += TEXTS.length
    const expected = TEXTS.flatMap((text, i) => (finds(given, text) ? [`c${i}`] : [])).sort()
    const { hits, messages } = await findPattern(counting, index, search(given))
    expect({ given, found: hits.map(({ row }) => row.ref.id).sort() }).toEqual({ given, found: expected })
    expect(messages).toBe(expected.length)
  }
  expect(narrowed).toBeGreaterThan(8)
})

test("an index that is behind narrows nothing", async () => {
  const { store, index } = newHistory()
  await store.writeUnit(unit("a", [conversation("a", [textMessage("ma", "the old find here")])]))
  await index.follow(store)
  await store.writeUnit(unit("b", [conversation("b", [textMessage("mb", "the new find here")])]))
  const { hits } = await findPattern(store, index, search(pattern("w find h", { isFixed: true })))
  expect(hits.map(({ row }) => row.ref.id)).toEqual(["b"])
})

test("stops when there are enough rows and says how far it came; a count goes on", async () => {
  const { store, index } = newHistory()
  for (let i = 0; i < 9; i++)
    await store.writeUnit(
      unit(`u${i}`, [conversation(`c${i}`, [textMessage(`m${i}`, `quokka ${i}`, { at: 1_000_000 * (i + 1) })])]),
    )
  const some = await findPattern(store, index, search(pattern("quokka"), { limit: 2, offset: 1 }))
  expect(some.hits.map(({ row }) => row.ref.id)).toEqual(["c7", "c6"])
  expect(some).toMatchObject({ isComplete: false, read: 3, of: 9, messages: 3 })
  const all = await findPattern(store, index, search(pattern("quokka"), { limit: 2, countsAll: true }))
  expect(all).toMatchObject({ isComplete: true, read: 9, messages: 9, conversations: 9 })
})

test("finds nothing in private projects", async () => {
  const { store, index } = newHistory()
  await store.writeUnit(
    unit("u", [conversation("c", [textMessage("m", "the quokka sleeps")], { project: "/code/secret", cwds: [] })]),
  )
  await store.setPrivate("/code/secret", true)
  for (const text of ["quokka", "the quokka s"]) {
    const given = pattern(text, { isFixed: true })
    expect(await findPattern(store, index, search(given))).toMatchObject({ hits: [], messages: 0, of: 0 })
    expect(await findPattern(store, index, search(given, { inside: "/code/secret" }))).toMatchObject({ messages: 1 })
  }
})

test("shows the line of the match, and as many lines around it as wanted", async () => {
  const { store, index } = newHistory()
  const text = `one\ntwo\n  three ** f${"o".repeat(400)} four\nfive\nsix`
  await store.writeUnit(unit("u", [conversation("c", [textMessage("m", text)])]))
  const shown = async (source: string, contextLines?: number) =>
    (await findPattern(store, index, search(pattern(source), { contextLines }))).hits[0]
  expect((await shown("tw"))?.snippet).toBe("**tw**o")
  expect((await shown("tw"))?.lines).toBeUndefined()
  expect((await shown("tw", 0))?.lines).toEqual(["**tw**o"])
  expect((await shown("three", 1))?.lines).toEqual([
    "two",
    expect.stringMatching(/^ {2}\*\*three\*\* {2}fo{295}$/),
    "five",
  ])
  expect((await shown("fou", 1))?.snippet).toMatch(/^…o{59} \*\*fou\*\*r$/)
  expect((await shown("^", 1))?.lines).toEqual(["one", "two"])
  expect((await shown("x$", 9))?.lines).toHaveLength(5)
})
