import { describe, expect, test } from "vitest"
import type { Effect, Hunk, Part } from "../../../src/core/conversation.ts"
import { completeText } from "../../../src/learn/recover/file-state.ts"
import { recoverState, type Version } from "../../../src/learn/recover/replay.ts"
import { doubtsAfter, sightingsIn } from "../../../src/learn/recover/sightings.ts"

const FILE = "/w/shop/a.go"

type Turn = { number: number; at: number; parts: Part[]; effects: Effect[] }

/** Messages that read, write, edit or run something, one after the other. */
function turns(...steps: { tool: string; input: object; text?: string; hunks?: Hunk[] }[]): Turn[] {
  return steps.map(({ tool, input, text = "", hunks }, i) => {
    const call_id = `c${i}`
    const command = (input as { command?: string }).command
    const action = tool === "Read" ? "read" : "edited"
    return {
      number: i + 1,
      at: 1_000 * (i + 1),
      parts: [
        { type: "tool_call", text: JSON.stringify(input), origin: "agent", tool, call_id },
        { type: "tool_result", text, origin: "local_tool", tool, call_id, is_error: false, hunks },
      ],
      effects: [command === undefined ? { type: "file", path: FILE, action, call_id } : { type: "command", command }],
    }
  })
}

const file_path = FILE
const write = (content: string) => ({ tool: "Write", input: { file_path, content } })
const run = (command: string) => ({ tool: "Bash", input: { command } })
const read = (first: number, lines: string[], input: object = {}) => ({
  tool: "Read",
  input: { file_path, ...input },
  text: lines.map((line, i) => `${String(first + i).padStart(6)}→${line}`).join("\n"),
})
const edit = (old_string: string, new_string: string, start: number, lines: string[], more: object = {}) => ({
  tool: "Edit",
  input: { file_path, old_string, new_string, ...more },
  hunks: [
    {
      path: FILE,
      old_start: start,
      old_lines: lines.filter((line) => !line.startsWith("+")).length,
      new_start: start,
      new_lines: lines.filter((line) => !line.startsWith("-")).length,
      lines,
    },
  ],
})

function recovered(messages: Turn[], versions: Version[] = []) {
  const seen = sightingsIn(messages, (path) => path === FILE)
  const found = recoverState(seen, versions)
  const text = found.possible > 1 ? undefined : completeText(found.state)
  return { ...found, text, doubts: doubtsAfter(messages, seen, FILE).map(({ command }) => command) }
}

describe("from what messages show", () => {
  test("a written file is exactly what was written, with or without a last line break", () => {
    expect(recovered(turns(write("a\nb"))).text).toBe("a\nb")
    expect(recovered(turns(write("a\nb\n"))).text).toBe("a\nb\n")
  })

  test("edits are applied to what was written, with tabs that the hunk shows as spaces", () => {
    const messages = turns(
      write("func a() {\n\treturn 1\n}\n"),
      edit("\treturn 1", "\tx := 2\n\treturn x", 1, [" func a() {", "-  return 1", "+  x := 2", "+  return x", " }"]),
    )
    expect(recovered(messages).text).toBe("func a() {\n\tx := 2\n\treturn x\n}\n")
  })

  test("a file that was read in parts is complete once its end was shown and no line is missing", () => {
    const beginning = read(1, ["a", "b"], { offset: 1, limit: 2 })
    const end = read(3, ["c", ""], { offset: 3, limit: 50 })
    expect(recovered(turns(beginning)).text).toBeUndefined()
    expect(recovered(turns(beginning, end)).text).toBe("a\nb\nc\n")
  })

  test("a read that stops at its limit does not show the end", () => {
    expect(recovered(turns(read(1, ["a", "b"], { limit: 2 }))).text).toBeUndefined()
  })

  test("a line that the agent cut is missing", () => {
    expect(recovered(turns(read(1, ["a", "x".repeat(2_000), ""]))).text).toBeUndefined()
  })

  test("what contradicts the known lines makes them worthless", () => {
    const messages = turns(write("a\nb\nc\n"), read(2, ["B"], { offset: 2, limit: 1 }))
    expect(recovered(messages).text).toBeUndefined()
    expect(recovered(messages).state.lines).toEqual([undefined, "B"])
  })

  test("an edit that found something else than what is known is not applied to it", () => {
    const messages = turns(write("a\nb\n"), edit("z", "y", 1, ["-z", "+y"]))
    expect(recovered(messages).text).toBeUndefined()
  })

  test("every replacement counts if all are replaced, and a dollar sign means itself", () => {
    const messages = turns(write("a\na\n"), edit("a", "$&", 1, ["-a", "-a", "+$&", "+$&"], { replace_all: true }))
    expect(recovered(messages).text).toBe("$&\n$&\n")
  })

  test("a failed call changes nothing", () => {
    const messages = turns(write("a\n"), write("b\n"))
    for (const part of messages[1]!.parts) if (part.type === "tool_result") part.is_error = true
    expect(recovered(messages).text).toBe("a\n")
  })

  test("an edit of a patch without line numbers is applied at its only place", () => {
    const hunk = { path: FILE, old_start: 0, old_lines: 1, new_start: 0, new_lines: 1, lines: ["-b", "+B"] }
    const patch = { tool: "apply_patch", input: { patch: "…" }, hunks: [hunk] }
    expect(recovered(turns(write("a\nb\n"), patch)).text).toBe("a\nB\n")
    expect(recovered(turns(write("b\nb\n"), patch)).text).toBeUndefined()
  })
})

describe("a transcript that was made to harm", () => {
  test("cannot make a text grow without limit", () => {
    const grow = Array.from({ length: 12 }, () => edit("a", "a".repeat(20), 0, [], { replace_all: true })).map(
      (step) => ({ ...step, hunks: [] }),
    )
    expect(recovered(turns(write("a"), ...grow)).text).toBeUndefined()
  })

  test("cannot name a line that no file has", () => {
    for (const start of [1e15, 1e9, 1.5, Number.NaN, -5])
      expect(recovered(turns(edit("a", "b", start, ["-a", "+b"]))).state.lines.length).toBeLessThan(100)
    expect(recovered(turns(read(9_999_990, ["a", "b"]))).state.lines).toEqual([])
  })
})

describe("with the lines of a commit", () => {
  const change = edit("b", "B", 1, [" a", "-b", "+B", " c"])
  const version = (text: string, at: number, name = text): Version => ({ text, at, name })

  test("the lines that no message shows come from the commit before, if everything that was seen agrees", () => {
    const found = recovered(turns(change), [version("x\nb\nc\nd\n", 3), version("a\nb\nc\nd\n", 2)])
    expect(found.text).toBe("a\nB\nc\nd\n")
    expect(found.base?.name).toBe("a\nb\nc\nd\n")
  })

  test("a commit that was made later is never the base", () => {
    expect(recovered(turns(change), [version("a\nb\nc\nd\n", 1_001)]).text).toBeUndefined()
  })

  test("if several commits fit, none is chosen, unless a later one has exactly the result", () => {
    const both = [version("a\nb\nc\ne\n", 3), version("a\nb\nc\nd\n", 2)]
    expect(recovered(turns(change), both)).toMatchObject({ text: undefined, possible: 2 })
    const later = version("a\nB\nc\nd\n", 5_000, "later")
    expect(recovered(turns(change), [later, ...both])).toMatchObject({ text: later.text, confirmedBy: later })
  })
})

test("commands that may have changed the file are named, if not all of it was seen since", () => {
  const doubts = (...steps: Parameters<typeof turns>) => recovered(turns(...steps)).doubts
  const first = write("a\n")
  expect(doubts(first, run("go test ./..."))).toEqual([])
  expect(doubts(first, run("git log --format=%H"))).toEqual([])
  for (const command of [
    "gofmt -w .",
    "git checkout main",
    "npm run lint -- --fix",
    "sed -i s/a/b/ *.go",
    "echo x > a.go",
  ])
    expect(doubts(first, run(command))).toEqual([command])
  expect(doubts(first, run("gofmt -w ."), read(1, ["b", ""]))).toEqual([])
})
