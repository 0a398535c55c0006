import { join } from "node:path"
import { expect, test } from "vitest"
import { clineConnector } from "../../packages/more-agents/src/cline.ts"
import type { Unit } from "../../src/agents/kit/connector.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, recordsOf, testConnector } from "./contract.ts"

const FIXTURES = "test/fixtures/cline"
testConnector(clineConnector, FIXTURES)

const messagesIn = (...messages: RawRecord[]) =>
  clineConnector.parse(
    messages.map((message, id) => ({ type: "message", id: `m${id}`, ...message })),
    { key: "s/s", path: "s.messages.json" },
  ).conversations[0]!.messages

test("searches the folders that its variables name", () => {
  const at = (env: Record<string, string>) => clineConnector.roots({ home: "/h", env, platform: "linux" })
  expect(at({}).slice(0, 3)).toEqual([
    join("/h", ".cline", "data", "sessions"),
    join("/h", ".cline", "data", "tasks"),
    join("/h", ".config", "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "tasks"),
  ])
  expect(at({ CLINE_DIR: "/c" })[0]).toBe(join("/c", "data", "sessions"))
  expect(at({ CLINE_DIR: "/c", CLINE_DATA_DIR: "/d" })[0]).toBe(join("/d", "sessions"))
})

test("a subagent names its parent, and its prompt is the agent's", async () => {
  const all = await conversationsOf(clineConnector, await homeOf(join(FIXTURES, "3.0.65-subagent")))
  const child = [...all.values()].find(({ kind }) => kind === "subagent")!
  expect(all.get(child.parent!.id)?.kind).toBe("person")
  expect(child.messages[0]!.parts[0]!.origin).toBe("agent")
})

test("Cline's additions to a prompt are not the person's", () => {
  const text = '<user_input mode="act">count wombats</user_input>\n<environment>late</environment>'
  expect(messagesIn({ role: "user", content: [{ type: "text", text }] })[0]!.parts).toEqual([
    { type: "text", text: "count wombats", origin: "person" },
    { type: "text", text: "<environment>late</environment>", origin: "injected" },
  ])
})

test("each command of a call has its own outcome", () => {
  const messages = messagesIn(
    {
      role: "assistant",
      content: [{ type: "tool_use", id: "c", name: "run_commands", input: { commands: ["a", "b"] } }],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "c",
          name: "run_commands",
          content: [
            { query: "a", result: "fine", success: true },
            { query: "b", result: "", error: "Command exited with code 3", success: false },
          ],
        },
        { type: "text", text: "and now?" },
      ],
    },
  )
  expect(messages.map(({ role }) => role)).toEqual(["assistant", "tool", "user"])
  expect(messages[1]!.effects).toMatchObject([
    { command: "a", failed: false },
    { command: "b", failed: true, exit_status: 3 },
  ])
})

test("reads a task of an older version, with its folder from the list of tasks", async () => {
  const all = await conversationsOf(clineConnector, await homeOf(join(FIXTURES, "2.0-task")))
  const task = all.get("1794300000000")!
  expect(task.cwds).toEqual(["/home/dev/proj"])
  expect(task.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"])
  expect(task.messages.flatMap(({ usage }) => usage?.output ?? [])).toEqual([30])
})

const sample = sampleAt("cline/ctx-cline/data")
test.skipIf(sample === undefined)("reads another project's sample of a task", async () => {
  const [unit] = clineConnector.discover(join(sample!, "tasks"), () => false)
  const { conversations, unknown } = clineConnector.parse(await recordsOf(clineConnector, unit as Unit), unit as Unit)
  expect(unknown).toEqual({})
  expect(conversations).toMatchObject([{ id: "cline-task-1", cwds: ["/workspace/cline-fixture"] }])
  expect(conversations[0]!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"])
})
