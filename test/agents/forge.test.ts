import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { forgeConnector } from "../../packages/more-agents/src/forge.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/forge"
const TOOLS = join(FIXTURES, "2026-tools-image")
testConnector(forgeConnector, FIXTURES)

const ONE = "f0000000-0000-4000-8000-000000000001"

test("searches the present folder, the older one and the one that the variable names", () => {
  const at = (env: Record<string, string>) => forgeConnector.roots({ home: join("/home/dev"), env, platform: "linux" })
  expect(at({})).toEqual([join("/home/dev/.forge"), join("/home/dev/forge")])
  expect(at({ FORGE_CONFIG: "/forge" })).toEqual(["/forge"])
})

test("separates what the person typed from what ForgeCode adds to a prompt", async () => {
  const { messages } = (await conversationsOf(forgeConnector, await homeOf(TOOLS))).get(ONE)!
  const prompts = messages.filter(({ role }) => role === "user").flatMap(({ parts }) => parts)
  expect(prompts.map((part) => [part.origin, part.type === "text" ? part.text : part.type])).toEqual([
    ["person", "Raise the tax to 19"],
    ["injected", expect.stringContaining("file_content")],
    ["person", "image"],
    ["person", "Fix it"],
    ["injected", expect.stringContaining("system_date")],
  ])
})

test("reads edits in both forms, the folder, and the exit code of a command that contains >", async () => {
  const session = (await conversationsOf(forgeConnector, await homeOf(TOOLS))).get(ONE)!
  expect(session.cwds).toEqual(["/home/dev/proj"])
  expect(session.messages.flatMap(({ effects = [] }) => effects)).toMatchObject([
    { type: "file", path: "/home/dev/proj/src/tax.ts", action: "read" },
    { type: "file", path: "/home/dev/proj/src/tax.ts", action: "edited", added: 1, removed: 1 },
    { type: "file", path: "/home/dev/proj/src/cart.ts", action: "edited", added: 1, removed: 1 },
    { type: "command", command: "npm test 2>&1", exit_status: 1 },
  ])
})

test("does not store signatures, image bytes and descriptions of tools; reports damaged JSON", async () => {
  const reasons = []
  for (const unit of await unitsOf(forgeConnector, await homeOf(TOOLS))) {
    expect(JSON.stringify(await recordsOf(forgeConnector, unit))).not.toMatch(/NOT-KEPT|iVBORw0KGgo/)
    reasons.push(...(await forgeConnector.read(unit)).end().skipped)
  }
  expect(reasons).toMatchObject([{ reason: "damaged JSON in context" }])
})

test("what a compaction replaced stays in the conversation, once and before its summary", async () => {
  const home = await homeOf(TOOLS)
  const before = (await unitsOf(forgeConnector, home)).find(({ key }) => key === ONE)!
  const earlier = await recordsOf(forgeConnector, before)
  const db = new DatabaseSync(join(home, ".forge", ".forge.db"))
  const summary = { message: { text: { role: "User", content: "Use the following summary frames as the reference" } } }
  const last = { message: { text: { role: "Assistant", content: "Done." } } }
  db.prepare("update conversations set context = ? where conversation_id = ?").run(
    JSON.stringify({ messages: [summary, last] }),
    ONE,
  )
  db.close()
  const unit = (await unitsOf(forgeConnector, home)).find(({ key }) => key === ONE)!
  const current = await recordsOf(forgeConnector, unit)
  const joined = forgeConnector.rejoin!(earlier, current)!
  const [conversation] = forgeConnector.parse(joined, unit).conversations
  expect(conversation!.messages.at(-2)!.parts[0]!.type).toBe("summary")
  expect(conversation!.messages[0]!.parts[0]!.text).toBe("Raise the tax to 19")
  expect(forgeConnector.rejoin!(current, earlier)).toBeUndefined()
})
