import { join } from "node:path"
import { expect, test } from "vitest"
import { continueConnector } from "../../packages/more-agents/src/continue.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector } from "./contract.ts"

const FIXTURES = "test/fixtures/continue"
const EDITS = join(FIXTURES, "1.5.47-edits-resumed")
testConnector(continueConnector, FIXTURES)

const messagesIn = (...turns: RawRecord[]) =>
  continueConnector.parse(
    turns.map((turn, place) => ({ type: "turn", place, ...turn })),
    { key: "s", path: "s.json" },
  ).conversations[0]!.messages

test("searches CONTINUE_GLOBAL_DIR, otherwise the home", () => {
  const at = (env: Record<string, string>) => continueConnector.roots({ home: "/h", env, platform: "linux" })
  expect(at({})).toEqual([join("/h", ".continue", "sessions")])
  expect(at({ CONTINUE_GLOBAL_DIR: "/c" })).toEqual([join("/c", "sessions")])
})

test("reads a session's start from the list, and gives an unnamed session no title", async () => {
  const [found] = (await conversationsOf(continueConnector, await homeOf(EDITS))).values()
  expect(found).toMatchObject({ started_at: 1_794_783_289_725, cwds: ["/home/dev/proj"] })
  expect(found!.title).toBeUndefined()
})

test("converts an editor's URIs to paths, and mentions files added to a prompt", () => {
  const uri = { type: "file", value: "file:///home/dev/proj/a%20b.ts" }
  const [prompt] = messagesIn({ message: { role: "user", content: "look" }, contextItems: [{ uri }] })
  expect(prompt!.effects).toEqual([{ type: "file", path: "/home/dev/proj/a b.ts", action: "mentioned" }])
})

test("reads thinking, summaries and unfinished calls", () => {
  const toolCall = { id: "c", function: { name: "Bash", arguments: '{"command":"ls"}' } }
  const messages = messagesIn(
    { message: { role: "thinking", content: "hm" } },
    {
      message: { role: "assistant", content: "so", toolCalls: [toolCall] },
      toolCallStates: [{ toolCallId: "c", toolCall, status: "generated" }],
      conversationSummary: "So far.",
    },
  )
  expect(messages.map(({ parts }) => parts.map(({ type }) => type))).toEqual([
    ["thinking"],
    ["text", "tool_call"],
    ["summary"],
  ])
})

const sample = sampleAt("continue/synthetic/sessions")
test.skipIf(sample === undefined)("reads a session written from Continue's own types", async () => {
  const { conversations, unknown } = await parsedAt(continueConnector, join(sample!, "s1.json"), "s1")
  expect(unknown).toEqual({})
  expect(conversations).toMatchObject([{ title: { text: "Fix test" }, cwds: ["/home/dev/app"] }])
  expect(conversations[0]!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"])
})
