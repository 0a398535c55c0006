import { describe, expect, test } from "vitest"
import { describeToolCall } from "../../src/core/call-words.ts"
import type { Message, Part } from "../../src/core/conversation.ts"
import { isChosen, readFields, withFields } from "../../src/render/fields.ts"
import { formatIndices, isInRanges, readIndices } from "../../src/render/indices.ts"
import { limitOf } from "../../src/render/limits.ts"
import { linesOf, lineText } from "../../src/render/line.ts"
import { changedLines, patchText } from "../../src/render/patch.ts"

const AT = new Date(2026, 10, 3, 10, 0, 5).getTime()
const person = (text: string): Part => ({ type: "text", text, origin: "person" })
const agent = (text: string): Part => ({ type: "text", text, origin: "agent" })
const calls = (tool: string, input: object, call_id = "c1"): Part => ({
  type: "tool_call",
  text: JSON.stringify(input),
  origin: "agent",
  tool,
  call_id,
})
const result = (tool: string, text: string, more: object = {}): Part =>
  ({ type: "tool_result", text, origin: "local_tool", tool, call_id: "c1", is_error: false, ...more }) as Part
const message = (role: Message["role"], parts: Part[], more: object = {}) => ({ role, at: AT, parts, ...more })

function lines(messages: ReturnType<typeof message>[], tokensPerMsg = 50): string[] {
  const entries = messages.map((one, i) => ({ message: one, label: String(i + 1), roots: ["/code/api"] }))
  return linesOf(entries, 10_000).map((line) => lineText(line, tokensPerMsg))
}

describe("a message on one line", () => {
  test("shows number, role, time, size and words, and the date if the day is new", () => {
    const next = AT + 24 * 3_600_000
    expect(
      lines([message("user", [person("Help me\nwith  this")]), message("assistant", [agent("Yes.")], { at: next })]),
    ).toEqual([
      '1\t[user] 2026-11-03 10:00:05 ~6 | "Help me with this"',
      "2\t[assistant] 2026-11-04 10:00:05 ~2 | Yes.",
    ])
  })

  test("names a call by its file or command, and a result by its outcome", () => {
    const shown = lines([
      message("assistant", [calls("Bash", { command: "cd /code/api && npm test", description: "Run tests" })]),
      message("tool", [result("Bash", "FAIL\nexpected 1", { is_error: true })]),
      message("assistant", [calls("Read", { file_path: "/code/api/src/auth.ts" })]),
      message("tool", [result("Read", "one\ntwo\nthree\n")]),
      message("assistant", [
        calls("Edit", { file_path: "/code/api/src/auth.ts", old_string: "func", new_string: "async func" }),
      ]),
      message("tool", [result("Edit", "The file was updated.")]),
    ]).map((line) => line.slice(line.indexOf("| ") + 2))
    expect(shown).toEqual([
      "[Bash: npm test]",
      "[Bash → failed, 2 lines] FAIL expected 1",
      "[Read: src/auth.ts]",
      "[Read → 3 lines]",
      '[Edit: src/auth.ts] old:"func" new:"async func"',
      "[Edit → ok]",
    ])
  })

  test("names the call again if the line above is another call's", () => {
    const shown = lines([
      message("assistant", [calls("Grep", { pattern: "one" }, "c1"), calls("Grep", { pattern: "two" }, "c2")]),
      message("tool", [result("Grep", "a.ts", { call_id: "c1" })]),
      message("tool", [result("Grep", "b.ts", { call_id: "c2" })]),
    ]).map((line) => line.slice(line.indexOf("| ") + 2))
    expect(shown.slice(1)).toEqual(["[Grep] a.ts", "[Grep: two] b.ts"])
  })

  test("shows an exit status, and an edit's line counts instead of its patch", () => {
    const hunks = [
      { path: "a.ts", old_start: 1, old_lines: 1, new_start: 1, new_lines: 2, lines: ["-a", "+b", "+SECRETLINE"] },
    ]
    const effects = [{ type: "command" as const, command: "npm test", call_id: "c1", exit_status: 3 }]
    const shown = lines([
      message("assistant", [calls("Bash", { command: "npm test" })], { effects }),
      message("tool", [result("Bash", "boom", { is_error: true })]),
      message("tool", [result("Edit", "The file was updated.", { hunks, call_id: "c9" })]),
    ])
    expect(shown[1]).toContain("[Bash → exit 3] boom")
    expect(shown[2]).toContain("[Edit → +2 -1]")
    expect(shown.join()).not.toContain("SECRETLINE")
  })

  test("cuts each kind of text at its own length, which scales with the tokens per message", () => {
    const long = "x".repeat(1000)
    const cut = (part: Part, role: Message["role"], tokensPerMsg: number) =>
      /x+/.exec(lines([message(role, [part])], tokensPerMsg)[0]!)![0].length
    const table: [Part, Message["role"], number][] = [
      [person(long), "user", 200],
      [result("Bash", long), "tool", 150],
      [result("Grep", long), "tool", 100],
      [result("Glob", long), "tool", 100],
      [result("WebFetch", long), "tool", 100],
      [result("Task", long), "tool", 100],
      [agent(long), "assistant", 80],
      [{ type: "thinking", text: long, origin: "agent" }, "assistant", 50],
      [calls("Bash", { command: long }), "assistant", 60],
      [agent(long), "system", 80],
    ]
    for (const [part, role, base] of table)
      expect([25, 50, 100].map((n) => cut(part, role, n))).toEqual([base / 2, base, base * 2])
    expect(limitOf("edited_text", 50)).toBe(80)
  })

  test("keeps the end of a long path, and marks every cut", () => {
    const path = `/code/api/${"deep/".repeat(30)}file.ts`
    expect(lines([message("assistant", [calls("Read", { file_path: path })])])[0]).toMatch(/\[Read: ….*\/file\.ts\]$/)
    expect(lines([message("user", [person("word ".repeat(100))])])[0]).toMatch(/word…"$/)
  })

  test("never splits a character, and stays on one line whatever a transcript contains", () => {
    const hostile = `\u001b[2J\u202e${"🎉".repeat(300)}\r\n\u0000tail`
    for (const n of [5, 6, 7, 50]) {
      const [line] = lines([message("user", [person(hostile)])], n)
      expect(line!.isWellFormed()).toBe(true)
      expect(line).not.toMatch(/[\u0000-\u0008\n\r\u001b\u202e]/)
    }
  })

  test("reads the words of other agents' calls", () => {
    expect(describeToolCall('{"command":["bash","-lc","ls -la"]}').what).toBe("ls -la")
    expect(describeToolCall("*** Begin Patch\n*** Update File: src/a.ts\n@@\n*** Add File: b.ts\n").what).toBe(
      "src/a.ts, b.ts",
    )
    expect(describeToolCall("{not json").what).toBe("{not json")
    expect(describeToolCall("{}").what).toBe("")
  })
})

describe("show and hide", () => {
  const parts = [
    person("p"),
    { type: "thinking", text: "t", origin: "agent" } as Part,
    calls("Bash", {}),
    result("Bash", "b"),
    result("Read", "r"),
    { type: "text", text: "i", origin: "injected" } as Part,
  ]
  const kept = (show: string[], hide: string[] = []) =>
    withFields([{ parts }], readFields({ show, hide })).messages.flatMap((one) => one.parts.map((part) => part.text))

  test("name parts by kind, by tool, and by side of a tool", () => {
    expect(kept([])).toEqual(["p", "t", "{}", "b", "r", "i"])
    expect(kept(["thinking"])).toEqual(["t"])
    expect(kept(["tool:bash"])).toEqual(["{}", "b"])
    expect(kept(["tool:Bash:result"])).toEqual(["b"])
    expect(kept(["tool:Bash:call", "text"])).toEqual(["p", "{}", "i"])
    expect(kept(["tool:result"])).toEqual(["b", "r"])
    expect(kept([], ["tool_result", "injected"])).toEqual(["p", "t", "{}"])
  })

  test("hide is stronger than show", () => {
    expect(kept(["tool:Bash"], ["tool:Bash:result"])).toEqual(["{}"])
  })

  test("a message with no parts left is not shown, and hidden parts are counted", () => {
    expect(withFields([{ parts }, { parts: [person("x")] }], readFields({ hide: ["text"] }))).toMatchObject({
      messages: [{ parts: [{ text: "t" }, {}, {}, {}] }],
      hidden: 3,
    })
    expect(isChosen(person("x"), readFields({}))).toBe(false)
  })

  test("list the known names if a name is unknown", () => {
    expect(() => readFields({ show: ["thoughts"] })).toThrow(
      /"thoughts" is not a part of a message. The parts are text, thinking/,
    )
  })
})

describe("which messages", () => {
  test.each([
    ["5", [5]],
    ["5-7", [5, 6, 7]],
    ["1, 5,9-", [1, 5, 9, 10]],
    ["#3", [3]],
  ])("%s", (text, expected) => {
    const ranges = readIndices(text)
    expect([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].filter((n) => isInRanges(ranges, n))).toEqual(expected)
  })

  test.each(["x", "0", "7-5", "1-2-3", "-4", "1.5"])("%s is refused, and the error says how to write it", (text) => {
    expect(() => readIndices(text)).toThrow(/Write 5, 5-10 or 1,5,10-15/)
  })

  test("are written in the shortest form", () => {
    expect(formatIndices([3, 1, 2, 7, 9, 10])).toBe("1-3,7,9-10")
  })
})

test("a change is shown as a unified diff", () => {
  const hunks = [
    { path: "a.ts", old_start: 1, old_lines: 2, new_start: 1, new_lines: 2, lines: [" x", "-y", "+z"] },
    { path: "a.ts", old_start: 9, old_lines: 0, new_start: 9, new_lines: 1, lines: ["+w"] },
  ]
  expect(patchText(hunks)).toBe("--- a.ts\n+++ a.ts\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n@@ -9,0 +9,1 @@\n+w")
  expect(changedLines(hunks)).toEqual({ added: 2, removed: 1 })
})
