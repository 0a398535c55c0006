import { expect, test } from "vitest"
import { chatgptConnector } from "../../packages/more-agents/src/chatgpt.ts"
import { onFixtures } from "../support/exports.ts"
import { sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector } from "./contract.ts"

const connector = onFixtures(chatgptConnector)
const FIXTURES = "test/fixtures/chatgpt"
testConnector(connector, FIXTURES)

test("the branch that was left is abandoned, hidden text is injected, and only the sandbox's output is local", async () => {
  const conversations = await conversationsOf(connector, await homeOf(`${FIXTURES}/2026-branches-tools`))
  const { messages } = conversations.get("6a0c1f2e-0000-4000-8000-000000000001")!
  const parts = messages.flatMap(({ parts }) => parts)
  expect(messages.filter(({ abandoned }) => abandoned).flatMap(({ parts }) => parts.map(({ text }) => text))).toEqual([
    "An answer that was regenerated",
  ])
  expect(parts.filter((part) => part.origin === "injected").map(({ text }) => text)).toEqual([
    "I write Rust.",
    "Answer briefly.",
  ])
  expect(parts.flatMap((part) => (part.type === "tool_result" ? [[part.tool, part.origin]] : []))).toEqual([
    ["python", "local_tool"],
    ["web", "web"],
  ])
})

const sample = sampleAt("chatgpt/synthetic")
test.skipIf(sample === undefined)("reads a sample written from a description: a branch that was left", async () => {
  const read = await conversationsOf(Object.assign(Object.create(connector), { roots: () => [sample!] }), "/none")
  expect([...read.values()]).toMatchObject([
    { title: { text: "Sort in Rust" }, messages: [{ role: "user" }, { abandoned: true }, { model: "gpt-5-5" }] },
  ])
})
