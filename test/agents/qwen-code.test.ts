import { join } from "node:path"
import { expect, test } from "vitest"
import { qwenCodeConnector } from "../../packages/more-agents/src/qwen-code/connector.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector } from "./contract.ts"

const FIXTURES = "test/fixtures/qwen_code"
testConnector(qwenCodeConnector, FIXTURES)

const conversationIn = (...records: RawRecord[]) =>
  qwenCodeConnector.parse(records, { key: "p/s.jsonl", path: "p/s.jsonl" }).conversations[0]!
const said = (uuid: string, parentUuid: string | null, text: string, more: RawRecord = {}) => ({
  uuid,
  parentUuid,
  sessionId: "s",
  type: "user",
  message: { role: "user", parts: [{ text }] },
  ...more,
})

test("looks where its variables say, and for settings that stayed behind", () => {
  const at = (env: Record<string, string>) => qwenCodeConnector.roots({ home: "/h", env, platform: "linux" })
  expect(at({})).toEqual([join("/h", ".qwen")])
  expect(at({ QWEN_HOME: "/q" })).toEqual(["/q"])
  expect(at({ QWEN_RUNTIME_DIR: "/r" })).toEqual(["/r", join("/h", ".qwen")])
})

test("a subagent names its parent, the call that started it and what it was for; its prompt is the agent's", async () => {
  const all = await conversationsOf(qwenCodeConnector, await homeOf(join(FIXTURES, "0.24.4-subagent-resumed")))
  const child = [...all.values()].find(({ kind }) => kind === "subagent")!
  expect(child).toMatchObject({
    title: { text: "look into the burrow" },
    parent: { id: "6d9a4d42-59b7-404c-b360-b10a2e4e4763", call_id: "call_2005dabbdaca45524a17" },
  })
  expect(child.messages[0]!.parts[0]!.origin).toBe("agent")
  // Each of its two answers has a record of its own for what it cost, the first one without words.
  expect(child.messages.flatMap(({ usage }) => usage?.output ?? [])).toEqual([20, 20])
  const parent = all.get(child.parent!.id)!
  const origins = parent.messages.filter(({ role }) => role === "user").map(({ parts }) => parts.map((p) => p.origin))
  expect(origins).toEqual([["person"], ["injected"], ["injected", "person"]])
})

test("what was gone back behind is abandoned, unless a record on the way is lost", () => {
  const records = [said("a", null, "one"), said("b", "a", "two"), said("c", "a", "instead")]
  const left = (all: RawRecord[]) => conversationIn(...all).messages.map(({ abandoned = false }) => abandoned)
  expect(left(records)).toEqual([false, true, false])
  expect(left([...records, said("e", "lost", "later")])).toEqual([false, false, false, false])
})

test("a title counts as long as its branch does, and the person's and the agent's are told apart", () => {
  const title = (uuid: string, parentUuid: string, customTitle: string, titleSource: string) => ({
    uuid,
    parentUuid,
    type: "system",
    subtype: "custom_title",
    systemPayload: { customTitle, titleSource },
  })
  const before = [said("a", null, "one"), title("t", "a", "Kept", "manual"), said("b", "t", "two")]
  const left = title("x", "b", "Left behind", "auto")
  expect(conversationIn(...before, left, said("c", "b", "on")).title).toEqual({ text: "Kept", from: "person" })
  expect(conversationIn(...before, left, said("c", "x", "on")).title).toEqual({ text: "Left behind", from: "agent" })
})

const sample = sampleAt("qwen-code/stage0")
test.skipIf(sample === undefined)("another project's samples: every message, and no type that is unknown", async () => {
  const counts = async (name: string) => {
    const { conversations, unknown } = await parsedAt(qwenCodeConnector, join(sample!, name), `p/${name}`)
    return [conversations.map(({ messages }) => messages.length), unknown]
  }
  const session = (n: number) => `019f0000-0000-7000-8000-00000000000${n}.jsonl`
  // Counted with a few lines of Python.
  expect(await counts(session(1))).toEqual([[5], {}])
  expect(await counts(session(4))).toEqual([[5], {}])
  expect(await counts("system_telemetry.jsonl")).toEqual([[2], {}])
})
