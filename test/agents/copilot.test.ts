import { readdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { copilotConnector } from "../../packages/more-agents/src/copilot.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/copilot"
const EDITS = join(FIXTURES, "1.0.102-edits-commit")
testConnector(copilotConnector, FIXTURES)

const parsed = (...events: RawRecord[]) => copilotConnector.parse(events, { key: "s", path: "s/events.jsonl" })
const event = (type: string, data: RawRecord, id = type) => ({ type, id, timestamp: "2026-11-16T10:00:00Z", data })

test("searches COPILOT_HOME, otherwise the home", () => {
  const at = (env: Record<string, string>) => copilotConnector.roots({ home: "/h", env, platform: "linux" })
  expect(at({})).toEqual([join("/h", ".copilot", "session-state")])
  expect(at({ COPILOT_HOME: "/c" })).toEqual([join("/c", "session-state")])
})

test("a session keeps its key when a newer version moves it into a folder, which then wins", async () => {
  const home = await homeOf(EDITS)
  const root = join(home, ".copilot/session-state")
  const [id] = readdirSync(root)
  const keys = async () => (await unitsOf(copilotConnector, home)).map(({ key, path }) => [key, path])
  writeFileSync(join(root, `${id}.jsonl`), "")
  expect(await keys()).toEqual([[id, join(root, id!, "events.jsonl")]])
  renameSync(join(root, id!), join(home, "gone"))
  expect(await keys()).toEqual([[id, join(root, `${id}.jsonl`)]])
})

test("the person's name for a session is its title; a name that repeats the prompt is not", async () => {
  const home = await homeOf(EDITS)
  const [unit] = await unitsOf(copilotConnector, home)
  const titled = async () => [...(await conversationsOf(copilotConnector, home)).values()][0]!.title
  expect(await titled()).toBeUndefined()
  writeFileSync(join(unit!.path, "../workspace.yaml"), 'name: "Wombats: a census"\nuser_named: true\n')
  expect(await titled()).toEqual({ text: "Wombats: a census", from: "person" })
})

test("rewound messages are abandoned", () => {
  const { conversations } = parsed(
    event("user.message", { content: "keep" }, "a"),
    event("user.message", { content: "leave" }, "b"),
    event("session.snapshot_rewind", { upToEventId: "b", eventsRemoved: 1 }, "c"),
    event("user.message", { content: "instead" }, "d"),
  )
  expect(conversations[0]!.messages.map(({ abandoned = false }) => abandoned)).toEqual([false, true, false])
})

test("older sessions, which count only at their end, add each model's total to its last answer", () => {
  const usage = { inputTokens: 900, outputTokens: 50, cacheReadTokens: 600 }
  const { conversations } = parsed(
    event("assistant.message", { content: "one", model: "m" }, "a"),
    event("assistant.message", { content: "two", model: "m" }, "b"),
    event("session.shutdown", { modelMetrics: { m: { usage } } }, "c"),
  )
  expect(conversations[0]!.messages.map(({ usage }) => usage)).toEqual([
    undefined,
    { input: 300, output: 50, cache_read: 600, cache_write: 0 },
  ])
})

test("text from a schedule or a command in the prompt is not the person's", () => {
  const { conversations } = parsed(event("user.message", { content: "again", source: "schedule" }))
  expect(conversations[0]!.messages[0]!.parts[0]!.origin).toBe("injected")
})

const sample = sampleAt("copilot-cli")
test.skipIf(sample === undefined)("reads every message of other projects' samples, without unknown types", async () => {
  const counts = async (name: string) => {
    const { conversations, unknown } = await parsedAt(copilotConnector, join(sample!, name), name)
    return [conversations.map(({ messages }) => messages.length), unknown]
  }
  // Counted with a few lines of Python.
  expect(await counts("stage0/small.jsonl")).toEqual([[12, 2], {}])
  expect(await counts("stage0/large.jsonl")).toEqual([[8], {}])
  expect(await counts("stage0/schema_drift.jsonl")).toEqual([[4], {}])
  expect(await counts("ctx-v1/session-mcp/events.jsonl")).toEqual([[25], {}])
})
