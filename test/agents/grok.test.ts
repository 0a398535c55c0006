import { join } from "node:path"
import { expect, test } from "vitest"
import { grokConnector } from "../../packages/more-agents/src/grok.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector } from "./contract.ts"

const FIXTURES = "test/fixtures/grok"
const EDITS = join(FIXTURES, "1.0.41-edits-commit")
testConnector(grokConnector, FIXTURES)

test("searches GROK_HOME, otherwise the home", () => {
  const at = (env: Record<string, string>) => grokConnector.roots({ home: "/h", env, platform: "linux" })
  expect(at({})).toEqual([join("/h", ".grok", "sessions")])
  expect(at({ GROK_HOME: "/g" })).toEqual([join("/g", "sessions")])
})

test("a subagent is a session that its parent names, and its usage counts once, in its parent's total", async () => {
  const all = await conversationsOf(grokConnector, await homeOf(join(FIXTURES, "1.0.41-subagent-resumed")))
  const child = [...all.values()].find(({ kind }) => kind === "subagent")!
  const parent = all.get(child.parent!.id)!
  expect(child.title?.text).toBe("look into the burrow")
  expect(child.messages[0]!.parts[0]!.origin).toBe("agent")
  const spent = (messages: typeof child.messages) => messages.flatMap(({ usage }) => usage?.output ?? [])
  expect([spent(parent.messages), spent(child.messages)]).toEqual([[80, 20], []])
})

test("the pieces of one stream are one message", () => {
  const piece = (kind: string, text: string, streamStartMs: number): RawRecord => ({
    params: { update: { sessionUpdate: kind, content: { type: "text", text } }, _meta: { streamStartMs } },
  })
  const { conversations } = grokConnector.parse(
    [
      piece("agent_thought_chunk", "h", 1),
      piece("agent_thought_chunk", "m", 1),
      piece("agent_message_chunk", "so", 1),
      piece("agent_message_chunk", "then", 2),
    ],
    { key: "s", path: "updates.jsonl" },
  )
  expect(conversations[0]!.messages.map(({ parts }) => parts.map(({ text }) => text))).toEqual([["hm", "so"], ["then"]])
})

test("an edit has its line numbers", async () => {
  const [found] = (await conversationsOf(grokConnector, await homeOf(EDITS))).values()
  const hunks = found!.messages.flatMap(({ parts }) =>
    parts.flatMap((part) => ("hunks" in part ? (part.hunks ?? []) : [])),
  )
  expect(hunks.map(({ path, new_start }) => [path, new_start])).toEqual([
    ["/home/dev/proj/src/wombat.js", 1],
    ["/home/dev/proj/src/wombat.js", 2],
  ])
})

const sample = sampleAt("grok/stage0")
test.skipIf(sample === undefined)("reads every message of another project's sample of model input", async () => {
  const { conversations, unknown } = await parsedAt(grokConnector, join(sample!, "chat_history.jsonl"), "s")
  const messages = conversations.flatMap((one) => one.messages)
  // Its eleven lines without the program's own instructions.
  expect([messages.length, unknown]).toEqual([10, {}])
  expect(messages.filter(({ role }) => role === "user").map(({ parts }) => parts.map((part) => part.origin))).toEqual([
    ["injected"],
    ["person"],
    ["person", "person"],
  ])
  expect(messages.flatMap(({ effects = [] }) => effects.map(({ type }) => type))).toEqual(["file", "command"])
})
