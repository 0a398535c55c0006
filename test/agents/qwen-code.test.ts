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
const message = (uuid: string, parentUuid: string | null, text: string, more: RawRecord = {}) => ({
  uuid,
  parentUuid,
  sessionId: "s",
  type: "user",
  message: { role: "user", parts: [{ text }] },
  ...more,
})

test("searches the folders that its variables name, and the default folder if only the sessions were moved", () => {
  const at = (env: Record<string, string>) => qwenCodeConnector.roots({ home: "/h", env, platform: "linux" })
  expect(at({})).toEqual([join("/h", ".qwen")])
  expect(at({ QWEN_HOME: "/q" })).toEqual(["/q"])
  expect(at({ QWEN_RUNTIME_DIR: "/r" })).toEqual(["/r", join("/h", ".qwen")])
})

test("a subagent has its parent, its call and its purpose; its prompt is the agent's", async () => {
  const all = await conversationsOf(qwenCodeConnector, await homeOf(join(FIXTURES, "0.24.4-subagent-resumed")))
  const child = [...all.values()].find(({ kind }) => kind === "subagent")!
  expect(child).toMatchObject({
    title: { text: "look into the burrow" },
    parent: { id: "6d9a4d42-59b7-404c-b360-b10a2e4e4763", call_id: "call_2005dabbdaca45524a17" },
  })
  expect(child.messages[0]!.parts[0]!.origin).toBe("agent")
  // Each of its two answers has a separate record for its usage; the first one has no text.
  expect(child.messages.flatMap(({ usage }) => usage?.output ?? [])).toEqual([20, 20])
  const parent = all.get(child.parent!.id)!
  const origins = parent.messages.filter(({ role }) => role === "user").map(({ parts }) => parts.map((p) => p.origin))
  expect(origins).toEqual([["person"], ["injected"], ["injected", "person"]])
})

test("rewound messages are abandoned, unless a record on the path is missing", () => {
  const records = [message("a", null, "one"), message("b", "a", "two"), message("c", "a", "instead")]
  const left = (all: RawRecord[]) => conversationIn(...all).messages.map(({ abandoned = false }) => abandoned)
  expect(left(records)).toEqual([false, true, false])
  expect(left([...records, message("e", "lost", "later")])).toEqual([false, false, false, false])
})

test("a title counts while its branch does, and the person's and the agent's are distinguished", () => {
  const title = (uuid: string, parentUuid: string, customTitle: string, titleSource: string) => ({
    uuid,
    parentUuid,
    type: "system",
    subtype: "custom_title",
    systemPayload: { customTitle, titleSource },
  })
  const before = [message("a", null, "one"), title("t", "a", "Kept", "manual"), message("b", "t", "two")]
  const left = title("x", "b", "Left behind", "auto")
  expect(conversationIn(...before, left, message("c", "b", "on")).title).toEqual({ text: "Kept", from: "person" })
  expect(conversationIn(...before, left, message("c", "x", "on")).title).toEqual({ text: "Left behind", from: "agent" })
})

const sample = sampleAt("qwen-code/stage0")
test.skipIf(sample === undefined)(
  "reads every message of another project's samples, without unknown types",
  async () => {
    const counts = async (name: string) => {
      const { conversations, unknown } = await parsedAt(qwenCodeConnector, join(sample!, name), `p/${name}`)
      return [conversations.map(({ messages }) => messages.length), unknown]
    }
    const session = (n: number) => `019f0000-0000-7000-8000-00000000000${n}.jsonl`
    // Counted with a few lines of Python.
    expect(await counts(session(1))).toEqual([[5], {}])
    expect(await counts(session(4))).toEqual([[5], {}])
    expect(await counts("system_telemetry.jsonl")).toEqual([[2], {}])
  },
)
