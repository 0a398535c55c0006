import { readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { antigravityConnector } from "../../packages/more-agents/src/antigravity.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/antigravity"
const TOOLS = join(FIXTURES, "agy-1.1-tools")
const EDITOR = join(FIXTURES, "editor-plain-arguments")
testConnector(antigravityConnector, FIXTURES)

const id = (end: string) => `00000000-0000-4000-8000-0000000000${end}`
const main = async () => (await conversationsOf(antigravityConnector, await homeOf(TOOLS))).get(id("d1"))!

test("reads the transcript with complete texts, and skips a folder without a transcript", async () => {
  expect((await unitsOf(antigravityConnector, await homeOf(TOOLS))).map(({ path }) => path)).toEqual([
    expect.stringMatching(/transcript_full\.jsonl$/),
  ])
  expect(await unitsOf(antigravityConnector, await homeOf(EDITOR))).toMatchObject([{ key: id("d2") }])
})

test("matches results to calls in order", async () => {
  const results = (await main()).messages.flatMap(({ parts }) => parts.filter(({ type }) => type === "tool_result"))
  expect(results).toMatchObject([
    { tool: "run_command", is_error: true },
    { tool: "view_file", is_error: false },
    { tool: "replace_file_content", hunks: [{ lines: [expect.any(String), "+export const songs = all().sort()"] }] },
    { tool: "write_to_file", is_error: false },
    { tool: "run_command", is_error: false },
    { tool: "replace_file_content", is_error: true },
    { tool: "search_web", origin: "web" },
  ])
})

test("separates the person's request from Antigravity's additions, which name the model", async () => {
  const { messages, cwds } = await main()
  expect(messages[0]!.parts.map(({ origin }) => origin)).toEqual(["person", "injected", "injected"])
  expect(messages[0]!.parts[0]!.text).toBe("Let the lyrebird sing in order")
  expect(messages[1]!.model).toBe("Gemini 3.5 Flash (Medium)")
  expect(cwds).toEqual(["/home/dev/proj"])
})

const stage = sampleAt("antigravity/stage0")
test.skipIf(stage === undefined)("reads all known steps of another project's samples", async () => {
  const small = await parsedAt(antigravityConnector, join(stage!, "cli_small.jsonl"), "small")
  expect(small.unknown).toEqual({})
  expect(small.conversations[0]!.messages).toHaveLength(18) // one of the 19 steps has no content
  const drift = await parsedAt(antigravityConnector, join(stage!, "cli_schema_drift.jsonl"), "drift")
  expect(drift.unknown).toEqual({ BROWSER_NAVIGATE: 1 })
})

const brain = sampleAt("antigravity/ctx-v1/brain")
test.skipIf(brain === undefined)(
  "reads a second project's samples: damaged lines, future types, a written file",
  async () => {
    const counts = await Promise.all(
      readdirSync(brain!).map(async (name) => {
        const path = join(brain!, name, ".system_generated/logs/transcript_full.jsonl")
        const { conversations, unknown } = await parsedAt(antigravityConnector, path, name)
        return [name, conversations[0]!.messages.length, unknown]
      }),
    )
    expect(counts.sort()).toEqual([
      ["agy-future", 1, { FUTURE_EVENT_KIND: 1 }],
      ["agy-malformed", 3, {}],
      ["agy-resume", 3, {}],
      ["agy-success", 4, {}],
    ])
  },
)
