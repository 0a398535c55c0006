import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { kimiCodeConnector } from "../../packages/more-agents/src/kimi-code/connector.ts"
import { agentOf } from "../../src/agents/registry.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/kimi_code"
const EDITS = join(FIXTURES, "2.1.0-edits-commit")
const SUBAGENT = join(FIXTURES, "2.1.0-subagent-resumed")
testConnector(kimiCodeConnector, FIXTURES)

const parsed = (...lines: RawRecord[]) => kimiCodeConnector.parse(lines, { key: "s/main", path: "wire.jsonl" })
const event = (type: string, fields: RawRecord) => ({ type: "context.append_loop_event", event: { type, ...fields } })

test("searches KIMI_CODE_HOME, otherwise the home", () => {
  const at = (env: Record<string, string>) => kimiCodeConnector.roots({ home: "/h", env, platform: "linux" })
  expect(at({})).toEqual([join("/h", ".kimi-code", "sessions")])
  expect(at({ KIMI_CODE_HOME: "/k" })).toEqual([join("/k", "sessions")])
})

test("a subagent names its parent, and only typed text is the person's", async () => {
  const all = await conversationsOf(kimiCodeConnector, await homeOf(SUBAGENT))
  const origins = (id: string) =>
    all
      .get(id)!
      .messages.filter(({ role }) => role === "user")
      .map(({ parts }) => parts[0]!.origin)
  const main = "7587457d-70ef-4a6a-8c62-4d870a433fb7"
  expect(all.get(`${main}-agent-0`)).toMatchObject({ kind: "subagent", parent: { id: main } })
  expect(origins(`${main}-agent-0`)).toEqual(["agent", "injected", "injected"])
  expect(origins(main).filter((origin) => origin === "person")).toHaveLength(2)
})

test("is resumed by its folder's name, which contains its id", async () => {
  const home = await homeOf(EDITS)
  const [unit] = await unitsOf(kimiCodeConnector, home)
  const [id] = (await conversationsOf(kimiCodeConnector, home)).keys()
  expect(agentOf("kimi_code")!.resume!(id!, unit!.path)).toEqual(["kimi", "-r", `session_${id}`])
})

test("finds the person's title, and notices changes outside the log", async () => {
  const home = await homeOf(EDITS)
  const [before] = await unitsOf(kimiCodeConnector, home)
  const state = join(before!.path, "../../../state.json")
  writeFileSync(
    state,
    JSON.stringify({ ...JSON.parse(readFileSync(state, "utf8")), title: "Wombats", isCustomTitle: true }),
  )
  const [after] = await unitsOf(kimiCodeConnector, home)
  expect(after!.stamp).not.toBe(before!.stamp)
  const [found] = (await conversationsOf(kimiCodeConnector, home)).values()
  expect(found!.title).toEqual({ text: "Wombats", from: "person" })
})

test("the pieces of a step are one message, with the usage of its requests", () => {
  const usage = { inputOther: 10, output: 5, inputCacheRead: 2 }
  const { conversations } = parsed(
    event("step.begin", { uuid: "a" }),
    { type: "llm.request", model: "kimi-k2" },
    { type: "usage.record", usage },
    { type: "usage.record", usage },
    event("content.part", { uuid: "p", stepUuid: "a", part: { type: "think", think: "hm" } }),
    event("content.part", { uuid: "q", stepUuid: "a", part: { type: "text", text: "so" } }),
    event("step.end", { uuid: "a", usage }),
  )
  expect(conversations[0]!.messages).toMatchObject([
    {
      model: "kimi-k2",
      parts: [{ type: "thinking" }, { type: "text" }],
      usage: { input: 20, output: 10, cache_read: 4 },
    },
  ])
})

test("a summary has its usage, which belongs to no step", () => {
  const { conversations } = parsed(
    { type: "usage.record", usage: { inputOther: 7, output: 3 } },
    { type: "context.apply_compaction", summary: "So far." },
  )
  expect(conversations[0]!.messages).toMatchObject([{ parts: [{ type: "summary" }], usage: { input: 7, output: 3 } }])
})

const sample = sampleAt("kimi/stage0")
test.skipIf(sample === undefined)(
  "reads every message of another project's samples, without unknown types",
  async () => {
    const counts = async (name: string, key: string) => {
      const { conversations, unknown } = await parsedAt(kimiCodeConnector, join(sample!, name), key)
      const messages = conversations.flatMap((one) => one.messages)
      return [messages.length, messages.reduce((sum, { usage }) => sum + (usage?.output ?? 0), 0), unknown]
    }
    // Counted with a few lines of Python: messages, and tokens that the model wrote.
    expect(await counts("small.jsonl", "s/main")).toEqual([3, 0, {}])
    expect(await counts("assistant_tools.jsonl", "s/main")).toEqual([55, 5515, {}])
    expect(await counts("subagent_agent-0.jsonl", "s/agent-0")).toEqual([6, 330, {}])
  },
)
