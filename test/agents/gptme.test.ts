import { join } from "node:path"
import { expect, test } from "vitest"
import { gptmeConnector } from "../../packages/more-agents/src/gptme.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/gptme"
const RECORDED = join(FIXTURES, "0.35.1-recorded")
testConnector(gptmeConnector, FIXTURES)

test("reads calls from blocks of code, with their results, edits and exit codes", async () => {
  const [conversation] = [...(await conversationsOf(gptmeConnector, await homeOf(RECORDED))).values()]
  expect(conversation).toMatchObject({ cwds: ["/home/dev/proj"], title: { text: "Scripted title" } })
  expect(conversation!.messages.flatMap(({ effects = [] }) => effects)).toMatchObject([
    { type: "file", path: "tax.js", action: "edited", added: 1, removed: 1 },
    { type: "command", command: "node tax.js; false", exit_status: 1, failed: true },
    { type: "file", path: "note.txt", action: "edited", added: 1 },
    { type: "file", path: "b.txt", action: "edited", added: 1 },
  ])
})

test("what gptme says in the person's place is not the person's", async () => {
  const [conversation] = [...(await conversationsOf(gptmeConnector, await homeOf(RECORDED))).values()]
  const typed = conversation!.messages.flatMap(({ parts }) => parts.filter(({ origin }) => origin === "person"))
  expect(typed.map(({ text }) => text)).toEqual(["Please raise the tax rate to 19"])
})

test("stores nothing else of the settings", async () => {
  for (const unit of await unitsOf(gptmeConnector, await homeOf(RECORDED)))
    expect(JSON.stringify(await recordsOf(gptmeConnector, unit))).not.toContain("NOT-KEPT")
})
