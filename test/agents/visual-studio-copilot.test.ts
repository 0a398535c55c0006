import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { visualStudioCopilotConnector } from "../../packages/more-agents/src/visual-studio-copilot.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { homeOf, readAll, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/visual_studio_copilot"
const CHAT = join(FIXTURES, "18.6-tools-chat")
testConnector(visualStudioCopilotConnector, FIXTURES)

test("a prompt that several requests repeat is one message, and the spans are in the order of time", async () => {
  const [first] = await readAll(visualStudioCopilotConnector, await homeOf(CHAT))
  const [conversation] = first!.conversations
  expect(conversation!.messages.map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "assistant",
    "tool",
    "assistant",
    "tool",
    "assistant",
  ])
  expect(conversation!.messages.flatMap(({ effects = [] }) => effects)).toMatchObject([
    { type: "file", path: "src/Tax.cs", action: "read" },
    { type: "file", path: "src/Tax.cs", action: "edited", added: 1, removed: 1 },
  ])
})

test("a conversation may be in two files, and a file may have two conversations", async () => {
  const units = await readAll(visualStudioCopilotConnector, await homeOf(CHAT))
  expect(units.map(({ conversations }) => conversations.map(({ id }) => id.slice(-1)))).toEqual([["1"], ["1", "2"]])
})

test("does not store what requests repeat, system prompts and descriptions of tools", async () => {
  for (const unit of await unitsOf(visualStudioCopilotConnector, await homeOf(CHAT)))
    expect(JSON.stringify(await recordsOf(visualStudioCopilotConnector, unit))).not.toContain("NOT-KEPT")
})

const sample = sampleAt("copilot-vs")
test.skipIf(sample === undefined)("reads another project's samples", async () => {
  const home = tempDir()
  const folder = join(home, "AppData/Local/Temp/VSGitHubCopilotLogs/traces")
  mkdirSync(folder, { recursive: true })
  for (const name of ["sample-1", "sample-2"])
    cpSync(join(sample!, `${name}.jsonl`), join(folder, `${name}_VSGitHubCopilot_traces.jsonl`))
  const units = await readAll(visualStudioCopilotConnector, home)
  expect(units.map(({ conversations }) => conversations[0]!.messages.length)).toEqual([6, 6])
})
