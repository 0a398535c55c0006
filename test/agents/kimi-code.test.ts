import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { kimiCodeConnector } from "../../packages/more-agents/src/kimi-code.ts"
import { agentOf } from "../../src/agents/registry.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, readAll, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/kimi_code"
const EDITS = join(FIXTURES, "2.1.0-edits-commit")
const SUBAGENT = join(FIXTURES, "2.1.0-subagent-resumed")
testConnector(kimiCodeConnector, FIXTURES)

const parsed = (...lines: RawRecord[]) => kimiCodeConnector.parse(lines, { key: "s/main", path: "wire.jsonl" })
const event = (type: string, fields: RawRecord) => ({ type: "context.append_loop_event", event: { type, ...fields } })

test("searches KIMI_CODE_HOME and Kimi CLI's KIMI_SHARE_DIR, otherwise the home", () => {
  const at = (env: Record<string, string>) => kimiCodeConnector.roots({ home: "/h", env, platform: "linux" })
  expect(at({})).toEqual([join("/h", ".kimi-code", "sessions"), join("/h", ".kimi", "sessions")])
  expect(at({ KIMI_CODE_HOME: "/k", KIMI_SHARE_DIR: "/s" })).toEqual([join("/k", "sessions"), join("/s", "sessions")])
})

describe("Kimi CLI", () => {
  const CLI = join(FIXTURES, "cli-1.47-edits")
  const ID = "066ea9f0-2f9a-46be-a65f-022fe6dbde59"
  const cli = (...lines: RawRecord[]) =>
    kimiCodeConnector.parse(lines, { key: "cli/s", path: "wire.jsonl" }).conversations[0]!.messages
  const wire = (type: string, payload: RawRecord) => ({ timestamp: 1795124265, message: { type, payload } })

  test("a session that Kimi Code took over is the same conversation, and Kimi Code's copy is shown", async () => {
    const home = await homeOf(CLI)
    const folder = join(home, ".kimi-code/sessions/wd_proj_123456789abc", `ses_${ID}`, "agents/main")
    mkdirSync(folder, { recursive: true })
    const message = { role: "user", content: [{ type: "text", text: "Find out" }], origin: { kind: "user" } }
    writeFileSync(join(folder, "wire.jsonl"), `${JSON.stringify({ type: "context.append_message", message })}\n`)
    const read = await readAll(kimiCodeConnector, home)
    expect(read.flatMap(({ conversations }) => conversations.map(({ id, authority }) => [id, authority]))).toEqual([
      [`ses_${ID}`, 1],
      [`ses_${ID}`, 2],
    ])
  })

  test("is resumed by its own id", async () => {
    const [unit] = await unitsOf(kimiCodeConnector, await homeOf(CLI))
    expect(agentOf("kimi_code")!.resume!(`ses_${ID}`, unit!.path)).toEqual(["kimi", "-r", ID])
  })

  test("a call that arrives in pieces is one call, and several edits are one change each", () => {
    const input = JSON.stringify({
      path: "/a",
      edit: [
        { old: "1", new: "2" },
        { old: "3", new: "4" },
      ],
    })
    const messages = cli(
      wire("StepBegin", { n: 1 }),
      wire("ToolCall", { id: "c1", function: { name: "StrReplaceFile", arguments: input.slice(0, 9) } }),
      wire("ToolCallPart", { arguments_part: input.slice(9) }),
      wire("ToolResult", { tool_call_id: "c1", return_value: { is_error: false, output: "" } }),
    )
    expect(messages[0]!.parts.map(({ text }) => text)).toEqual([input])
    expect(messages[1]!.effects).toMatchObject([{ type: "file", path: "/a", added: 2, removed: 2 }])
  })

  test("what Kimi CLI writes in the person's name is injected", () => {
    const origins = cli({ role: "user", content: "<system>CHECKPOINT 1</system>" }, { role: "user", content: "Hello" })
    expect(origins.map(({ parts }) => parts[0]!.origin)).toEqual(["injected", "person"])
  })

  test("keeps no bytes of images, and no copies of files, also of a subagent", async () => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"QUJD".repeat(20)}` } }
    const call = {
      tool_call_id: "c",
      return_value: { is_error: false, output: [image], display: [{ new_text: "WHOLE" }] },
    }
    const events = [
      wire("TurnBegin", { user_input: [image] }),
      wire("ContentPart", image),
      wire("SubagentEvent", { event: { type: "ToolResult", payload: call } }),
      { role: "user", content: [image] },
      { role: "_system_prompt", content: "WHOLE" },
    ]
    const home = await homeOf(CLI)
    const [unit] = await unitsOf(kimiCodeConnector, home)
    writeFileSync(unit!.path, events.map((event) => `${JSON.stringify(event)}\n`).join(""))
    const stored = JSON.stringify([...(await kimiCodeConnector.read(unit!)).records])
    expect(stored).not.toMatch(/QUJD|WHOLE/)
    expect(stored.match(/"image":\{/g)).toHaveLength(4)
  })

  test("hostile records are counted, not thrown", () => {
    const odd = [
      wire("NewKind", {}),
      { message: null },
      { role: 7 },
      wire("ToolCall", { function: "x" }),
      wire("ToolResult", {}),
    ]
    const { unknown } = kimiCodeConnector.parse(odd as RawRecord[], { key: "cli/s", path: "wire.jsonl" })
    expect(unknown).toEqual({ NewKind: 1, "(no type)": 2 })
  })
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
