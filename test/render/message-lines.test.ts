import { describe, expect, test } from "vitest"
import type { Effect, Part } from "../../src/core/conversation.ts"
import { type ReadMessage, type ReadOptions, readMessages } from "../../src/render/message-lines.ts"
import { glyphsOf } from "../../src/render/screen.ts"
import { widthOf, wordPattern } from "../../src/render/terminal.ts"

const OPTIONS: ReadOptions = {
  screen: { columns: 60, color: false, glyphs: glyphsOf({}) },
  agent: "Claude Code",
  root: "/code/api",
  unfolds: () => false,
}
const read = (messages: ReadMessage[], options: Partial<ReadOptions> = {}) =>
  [...readMessages(messages, { ...OPTIONS, ...options })].flat()

const said = (text: string, origin: "person" | "agent" | "injected" = "agent"): Part => ({ type: "text", text, origin })
const call = (tool: string, input: object, id: string): Part => ({
  type: "tool_call",
  text: JSON.stringify(input),
  origin: "agent",
  tool,
  call_id: id,
})
const result = (text: string, id: string, is_error = false): Part & { type: "tool_result" } => ({
  type: "tool_result",
  text,
  origin: "local_tool",
  call_id: id,
  is_error,
})
const message = (number: number, role: ReadMessage["role"], parts: Part[], effects: Effect[] = []): ReadMessage => ({
  number,
  role,
  parts,
  effects,
  facts: ["09:12"],
})

const TESTED = [
  message(1, "user", [said("Why does **it** fail?", "person")]),
  message(2, "assistant", [
    { type: "thinking", text: "Let me see.\nFirst the tests.", origin: "agent" },
    said("I run the tests."),
    call("Bash", { command: "cd /code/api && go test ./..." }, "a"),
    call("Read", { file_path: "/code/api/src/auth.go" }, "b"),
  ]),
  message(
    3,
    "tool",
    [result("FAIL\nexit status 1\n", "a", true)],
    [{ type: "command", command: "go test ./...", call_id: "a", exit_status: 1 }],
  ),
  message(4, "tool", [result("one\ntwo\nthree\n", "b")]),
]

describe("a conversation on a screen", () => {
  test("distinguishes people from agents, and folds thinking and calls to a line with the outcome", () => {
    expect(read(TESTED)).toEqual([
      "",
      "You · #1 · 09:12",
      "│ Why does **it** fail?",
      "",
      "Claude Code · #2 · 09:12",
      "▸ thinking Let me see. First the tests. · 8 tokens  #2",
      "",
      "I run the tests.",
      "",
      "▸ Bash go test ./... ✗ exit 1 · 2 lines  #2",
      "▸ Read src/auth.go · 3 lines  #2",
    ])
  })

  test("unfolds the requested parts", () => {
    const all = read(TESTED, { unfolds: () => true })
    expect(all).toContain("  First the tests.")
    expect(all).toContain("  command: cd /code/api && go test ./...")
    expect(all).toContain("  exit status 1")
    const results = read(TESTED, { unfolds: (part) => part.type === "tool_result" })
    expect(results).toContain("  two")
    expect(results.join("\n")).not.toContain("command:")
  })

  test("shows a result whose call is not shown", () => {
    expect(read([TESTED[3]!])).toEqual(["", "▸ tool · 3 lines  #4"])
  })

  test("a folded output shows the lines with searched words, and how many more there are", () => {
    const output = [
      "first",
      `${"far ".repeat(40)}the Quokka`,
      "quokkas",
      ...Array(4).fill("a quokka \x1b[31mhere"),
    ].join("\n")
    const messages = [
      message(1, "assistant", [call("Bash", { command: "make" }, "a")]),
      message(2, "tool", [result(output, "a")]),
    ]
    const words = wordPattern(["quokka"])
    expect(read(messages, { words }).map((line) => line.replace(/\x1b\[\d+m/g, ""))).toEqual([
      "",
      "\u25b8 Bash make \u00b7 7 lines  #1",
      "  \u2026far far far far the Quokka",
      "  a quokka here",
      "  a quokka here",
      "  \u2026 2 more such lines",
    ])
    expect(read(messages)).toHaveLength(2)
  })

  test("a result whose call is not shown names the call", () => {
    const calls = new Map([["b", JSON.stringify({ file_path: "/code/api/src/auth.go" })]])
    expect(read([message(4, "tool", [{ ...result("one\ntwo\n", "b"), tool: "Read" }])], { calls })).toEqual([
      "",
      "\u25b8 Read src/auth.go \u00b7 2 lines  #4",
    ])
  })

  test("only the first line of a wrapped diff line has the sign", () => {
    const lines = [`+    ${"added words ".repeat(8)}`, `-${"x".repeat(100)}`, "same"]
    const hunk = { path: "/a", old_start: 1, old_lines: 2, new_start: 1, new_lines: 2, lines }
    const shown = read([message(2, "tool", [{ ...result("ok", "a"), hunks: [hunk] }])])
    expect(shown.filter((line) => line.startsWith("  +"))).toHaveLength(1)
    expect(shown.filter((line) => line.startsWith("  -"))).toHaveLength(1)
    expect(shown.filter((line) => /^ {7}\S/.test(line))).toEqual(["       words added words added words added words "])
    expect(shown.filter((line) => widthOf(line) > 60)).toEqual([])
  })

  test("shows an edit as a diff, and says how much of a long one is left out", () => {
    const lines = ["-old line", ...Array.from({ length: 40 }, (_, i) => `+new line ${i}`)]
    const hunk = { path: "a.ts", old_start: 3, old_lines: 1, new_start: 3, new_lines: 40, lines }
    const edit = [
      message(1, "assistant", [call("Edit", { file_path: "/code/api/a.ts" }, "a")]),
      message(2, "tool", [{ ...result("ok", "a"), hunks: [hunk] }]),
    ]
    const shown = read(edit, { screen: { ...OPTIONS.screen, color: true } })
    expect(shown[1]).toContain("+40 -1")
    expect(shown.slice(2, 5)).toEqual([
      "  \x1b[2m@@ -3,1 +3,40 @@\x1b[0m",
      "  \x1b[31m-old line\x1b[0m",
      "  \x1b[32m+new line 0\x1b[0m",
    ])
    expect(shown.at(-1)).toContain("… 18 more lines")
    expect(read(edit, { unfolds: () => true }).at(-1)).toBe("  +new line 39")
  })

  test("folds text that nobody typed, and marks a prompt by an agent", () => {
    const shown = read([
      message(1, "user", [said("<reminder>do this</reminder>", "injected")]),
      message(2, "user", [said("Implement the following plan:\n\n# Plan", "agent")]),
      message(3, "user", [said("Look into it.", "agent")]),
    ])
    expect(shown).toContain("▸ injected <reminder>do this</reminder> · 8 tokens  #1")
    expect(shown).toContain("Approved plan · #2 · 09:12")
    expect(shown).toContain("Prompt by an agent · #3 · 09:12")
  })

  test("is drawn in ASCII if the locale has no more", () => {
    const shown = read(TESTED, { screen: { ...OPTIONS.screen, glyphs: glyphsOf({ LANG: "C" }) } })
    expect(shown).toContain("| Why does **it** fail?")
    expect(shown).toContain("> Bash go test ./... x exit 1 - 2 lines  #2")
    expect(shown.join("\n")).toMatch(/^[\x20-\x7e\n]*$/)
  })

  test.each([{ LANG: "C" }, { LC_ALL: "POSIX", LANG: "en_US.UTF-8" }, { LANG: "de_DE.ISO-8859-1" }])(
    "the locale %o is ASCII",
    (env) => expect(glyphsOf(env).bar).toBe("|"),
  )
  test.each([{}, { LANG: "C.UTF-8" }, { LC_CTYPE: "en_US.utf8", LANG: "C" }])("the locale %o is not", (env) =>
    expect(glyphsOf(env).bar).toBe("│"),
  )

  test.each([40, 80, 200])("at %i columns no line is wider", (columns) => {
    const wide = "日本語の長い文 and ✅ words that go on and on ".repeat(20)
    const all = [
      message(1234, "user", [said(wide, "person"), said(wide, "injected")]),
      message(1235, "assistant", [
        said(`${wide}\n\n- ${wide}\n\n    ${wide}`),
        { type: "thinking", text: wide, origin: "agent" },
        call("mcp__server__a_tool_with_a_long_name", { query: wide }, "a"),
      ]),
      message(1236, "tool", [result(wide.repeat(3), "a", true)]),
    ]
    for (const unfolds of [() => true, () => false])
      for (const line of read(all, { unfolds, screen: { ...OPTIONS.screen, columns } }))
        expect([line, widthOf(line) <= columns]).toEqual([line, true])
  })

  test("nothing in a name, a path or an output controls the terminal", () => {
    const bad = "\x1b]0;x\x07\x1b[2J\x9b1m\u202e"
    const all = [
      message(1, "assistant", [
        call(`Ba${bad}sh`, { command: `ls ${bad}`, [`key${bad}`]: bad }, "a"),
        { type: "thinking", text: bad, origin: "agent" },
        { type: "image", text: "", origin: "agent", mime: `image/${bad}` },
      ]),
      message(2, "tool", [
        {
          ...result(bad, "a"),
          hunks: [{ path: bad, old_start: 1, old_lines: 1, new_start: 1, new_lines: 1, lines: [`+${bad}\x1b[31m`] }],
        },
      ]),
      message(3, "tool", [{ ...result(`text ${bad}`, "z"), tool: bad }]),
    ]
    for (const unfolds of [() => true, () => false])
      expect(read(all, { unfolds }).join("")).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
  })

  test("messages are drawn one by one: the first is ready before the last is read", () => {
    const broken = message(2, "assistant", [])
    Object.defineProperty(broken, "facts", { get: () => expect.unreachable() })
    broken.parts = [said("later")]
    const lines = readMessages([message(1, "user", [said("now", "person")]), broken], OPTIONS)
    expect(lines.next().value).toContain("│ now")
  })
})
