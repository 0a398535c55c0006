import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { codebuffConnector } from "../../packages/more-agents/src/codebuff.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/codebuff"
const BLOCKS = join(FIXTURES, "1.0-blocks")
testConnector(codebuffConnector, FIXTURES)

test("reads edits and exit codes; what is only a sketch of a file has no lines", async () => {
  const [chat] = [...(await conversationsOf(codebuffConnector, await homeOf(BLOCKS))).values()]
  expect(chat!.cwds).toEqual(["/home/dev/proj"])
  expect(chat!.messages.flatMap(({ effects = [] }) => effects)).toMatchObject([
    { type: "file", path: "src/tax.ts", action: "read" },
    { type: "file", path: "src/tax.ts", action: "edited", added: 1, removed: 1 },
    { type: "file", path: "src/new.ts", action: "edited", added: 1 },
    { type: "command", command: "npm test", exit_status: 1 },
  ])
})

test("of the state only the folder is stored", async () => {
  for (const unit of await unitsOf(codebuffConnector, await homeOf(BLOCKS)))
    expect(JSON.stringify(await recordsOf(codebuffConnector, unit))).not.toContain("NOT-KEPT")
})

test("a damaged file is reported", async () => {
  const [unit] = await unitsOf(codebuffConnector, await homeOf(BLOCKS))
  writeFileSync(unit!.path, "[{")
  const reading = await codebuffConnector.read(unit!)
  expect(reading.end().skipped).toMatchObject([{ reason: "not a complete JSON list" }])
})
