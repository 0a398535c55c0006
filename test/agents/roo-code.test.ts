import { cpSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { rooCodeConnector } from "../../packages/more-agents/src/roo-code/connector.ts"
import { findWrittenCalls } from "../../packages/more-agents/src/roo-code/parse.ts"
import type { Conversation } from "../../src/core/conversation.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/roo_code"
const NATIVE = join(FIXTURES, "3.52-native-tools-subtask")
const WRITTEN = join(FIXTURES, "3.20-written-tools")
testConnector(rooCodeConnector, FIXTURES)

const id = (n: number) => `0e000000-0000-4000-8000-00000000000${n}`
const TASKS = join(".config", "Code", "User", "globalStorage", "rooveterinaryinc.roo-cline", "tasks")
const effectsOf = ({ messages }: Conversation) => messages.flatMap(({ effects = [] }) => effects)

test("searches every editor that may have the extension, and editors' servers", () => {
  const at = (platform: NodeJS.Platform, env = {}) => rooCodeConnector.roots({ home: join("/home/dev"), env, platform })
  expect(at("linux")[0]).toBe(join("/home/dev", TASKS))
  expect(at("linux").some((root) => root.includes(join(".vscode-server", "data", "User", "globalStorage")))).toBe(true)
  expect(at("win32", { APPDATA: "/roaming" })[3]).toContain(join("/roaming", "Cursor", "User"))
})

test("a request's tokens are on the answer that follows it, without cached ones", async () => {
  const all = await conversationsOf(rooCodeConnector, await homeOf(NATIVE))
  const usages = all.get(id(1))!.messages.map(({ usage }) => usage)
  expect(usages.filter((usage) => usage !== undefined)).toEqual([
    { input: 1000, output: 150, cache_read: 2000, cache_write: 1000, cost: 0.02 },
    { input: 2000, output: 250, cache_read: 3000, cache_write: 0, cost: 0.03 },
  ])
  expect(all.get(id(2))!.messages[1]!.usage).toMatchObject({ input: 300, output: 20 }) // the total from the history
  const old = [...(await conversationsOf(rooCodeConnector, await homeOf(WRITTEN))).values()][0]!
  expect(old.messages[1]!.usage).toMatchObject({ input: 12, cache_read: 4000 }) // which did not include the cache
})

test("a subtask names its parent, and its prompt is not a person's", async () => {
  const child = (await conversationsOf(rooCodeConnector, await homeOf(NATIVE))).get(id(2))!
  expect([child.kind, child.parent?.id, child.messages[0]!.parts[0]!.origin]).toEqual(["subagent", id(1), "agent"])
})

test("calls written into the text are calls with effects", async () => {
  const old = [...(await conversationsOf(rooCodeConnector, await homeOf(WRITTEN))).values()][0]!
  expect(effectsOf(old)).toMatchObject([
    { type: "file", path: "names.py", action: "read" },
    { type: "file", path: "names.py", action: "edited", added: 1, removed: 1 },
    { type: "command", command: "python names.py", exit_status: 2, error: "SyntaxError: invalid syntax" },
  ])
  expect(old.messages.at(-1)!.parts).toEqual([
    { type: "text", text: "Sorted, but Python is too old.", origin: "agent" },
  ])
})

test("a text of a million unclosed tags takes little time", () => {
  expect(findWrittenCalls("<read_file>".repeat(20_000))).toEqual([])
  expect(findWrittenCalls("<".repeat(200_000))).toEqual([])
})

test("a denied call has no effect", async () => {
  const task = (await conversationsOf(rooCodeConnector, await homeOf(NATIVE))).get(id(1))!
  expect(effectsOf(task).filter((effect) => effect.type === "file" && effect.path.endsWith("NOTES.md"))).toEqual([])
})

test("does not store signatures and image bytes; counts a damaged file and reads the others of its task", async () => {
  const home = await homeOf(NATIVE)
  writeFileSync(join(home, TASKS, id(1), "ui_messages.json"), '[{"ts":1')
  const unit = (await unitsOf(rooCodeConnector, home)).find(({ key }) => key === id(1))!
  expect(JSON.stringify(await recordsOf(rooCodeConnector, unit))).not.toMatch(/NOT-KEPT|iVBORw0KGgo/)
  const reading = await rooCodeConnector.read(unit)
  expect([...reading.records]).toHaveLength(13)
  expect(reading.end().skipped).toEqual([{ reason: "damaged JSON", where: "ui_messages.json" }])
})

const sample = sampleAt("roo-code/ctx-roo/storage/tasks")
test.skipIf(sample === undefined)(
  "another project's sample: a task with an edit, and one in an older file",
  async () => {
    const home = tempDir()
    mkdirSync(join(home, TASKS), { recursive: true })
    cpSync(sample!, join(home, TASKS), { recursive: true })
    const all = await conversationsOf(rooCodeConnector, home)
    const task = all.get("roo-task-1")!
    expect(task.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"])
    expect(task.messages[1]).toMatchObject({ model: "claude-sonnet-4", usage: { input: 90, output: 70 } })
    expect(effectsOf(task)).toMatchObject([
      { path: "/workspace/roo-fixture/tests/roo-task-json.txt", action: "edited" },
    ])
    expect(all.get("roo-fallback-task")!.messages.map(({ role }) => role)).toEqual(["user", "assistant"])
  },
)
