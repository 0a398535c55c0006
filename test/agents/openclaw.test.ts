import { renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { openclawConnector } from "../../packages/more-agents/src/openclaw.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/openclaw"
const INDEX = join(FIXTURES, "2026.5-index-archive")
testConnector(openclawConnector, FIXTURES)

const id = (n: number) => `0c1a0000-0000-4000-8000-0000000000${n}`

test("searches OpenClaw's folder under its current and former names, and those that its variables name", () => {
  const rootsOf = (env: Record<string, string>) =>
    openclawConnector.roots({ home: join("/home", "dev"), env, platform: "linux" })
  expect(rootsOf({})).toEqual(
    [".openclaw", ".clawdbot", ".moldbot", ".moltbot"].map((name) => join("/home", "dev", name, "agents")),
  )
  expect(rootsOf({ OPENCLAW_STATE_DIR: "~/claw" })).toEqual([join("/home", "dev", "claw", "agents")])
  expect(rootsOf({ OPENCLAW_HOME: join("/srv") })[0]).toBe(join("/srv", ".openclaw", "agents"))
})

describe("the index of the transcripts", () => {
  test("distinguishes subagents and scheduled runs, and names the parent", async () => {
    const all = await conversationsOf(openclawConnector, await homeOf(INDEX))
    expect(all.get(id(11))?.kind).toBe("person")
    expect(all.get(id(12))).toMatchObject({ kind: "subagent", parent: { id: id(11) }, title: { text: "quoll den" } })
    expect(all.get(id(13))?.kind).toBe("automation")
  })

  test("a session that is missing in the index, or has a broken index, is a person's", async () => {
    const home = await homeOf(INDEX)
    writeFileSync(join(home, ".openclaw/agents/main/sessions/sessions.json"), '{"agent:main:main":')
    const all = await conversationsOf(openclawConnector, home)
    expect([...all.values()].map(({ kind }) => kind)).toEqual(["person", "person", "person", "person"])
  })
})

test("a session remains the same unit after a reset", async () => {
  const home = await homeOf(INDEX)
  const keys = async () => (await unitsOf(openclawConnector, home)).map(({ key }) => key)
  const before = await keys()
  const path = join(home, ".openclaw/agents/main/sessions", `${id(13)}.jsonl`)
  renameSync(path, `${path}.deleted.2026-11-13T00-00-00.000Z`)
  expect(await keys()).toEqual(before)
})

test("a result that names its call as its parent creates no abandoned branch", async () => {
  const all = await conversationsOf(openclawConnector, await homeOf(INDEX))
  expect(all.get(id(11))!.messages.filter(({ abandoned }) => abandoned)).toEqual([])
})

const sample = sampleAt("openclaw/stage0")
test.skipIf(sample === undefined)(
  "another project's sample: every message, and one type that nobody knows",
  async () => {
    const counts = async (name: string) => {
      const { conversations, unknown } = await parsedAt(openclawConnector, join(sample!, name), name)
      return { messages: conversations.flatMap(({ messages }) => messages).length, unknown }
    }
    expect(await counts("small.jsonl")).toEqual({ messages: 3, unknown: {} })
    expect(await counts("large.jsonl")).toEqual({ messages: 7, unknown: {} })
    expect(await counts("schema_drift.jsonl")).toEqual({ messages: 4, unknown: { compact: 1 } })
    const { conversations } = await parsedAt(openclawConnector, join(sample!, "large.jsonl"), "large.jsonl")
    expect(conversations[0]!.messages.flatMap(({ effects = [] }) => effects)).toMatchObject([
      { type: "command", command: "git status --short" },
    ])
  },
)
