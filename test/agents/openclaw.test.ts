import { copyFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, test } from "vitest"
import { openclawConnector } from "../../packages/more-agents/src/openclaw.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, readAll, testConnector, unitsOf } from "./contract.ts"

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

describe("the database", () => {
  const DATABASE = join(FIXTURES, "2026.9.6-database")
  const change = async (sql: string) => {
    const home = await homeOf(DATABASE)
    const path = join(home, ".openclaw/agents/main/agent/openclaw-agent.sqlite")
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
    return home
  }

  test("an entry that cannot be read is skipped, and the others are kept", async () => {
    const home = await change(`update transcript_events set event_json = '{"type":' where seq = 4;
      update transcript_events set event_json = null, event_zstd = x'28b52ffd00' where seq = 8`)
    const unit = (await unitsOf(openclawConnector, home)).find(({ key }) => key.includes("78143045"))!
    const reading = await openclawConnector.read(unit)
    expect([...reading.records]).toHaveLength(15)
    expect(reading.end().skipped).toEqual([
      { reason: "damaged JSON", where: "transcript_events 4" },
      { reason: expect.stringContaining("not readable as zstd"), where: "transcript_events 8" },
    ])
  })

  test.each([
    ["a new title", "update session_nodes set label = 'numbat den' where label is not null"],
    ["a rewritten transcript", "update transcript_rewrite_watermarks set generation = 'other'"],
    [
      "a new entry",
      `insert into transcript_events select session_id, 99, '{"type":"message"}', created_at, null, 2, null
      from transcript_events where seq = 0`,
    ],
  ])("%s is noticed", async (_, sql) => {
    const stampOf = async (home: string) =>
      (await unitsOf(openclawConnector, home)).find(({ key }) => key.includes("0c1a0000"))!.stamp
    expect(await stampOf(await change(sql))).not.toBe(await stampOf(await homeOf(DATABASE)))
  })

  test("has no sessions as long as OpenClaw keeps only its memory there, and need not have compressed entries", async () => {
    const unitsAfter = async (sql: string) => (await unitsOf(openclawConnector, await change(sql))).length
    expect(await unitsAfter("drop table transcript_events")).toBe(0)
    expect(await unitsAfter("alter table transcript_events drop column event_zstd")).toBe(2)
  })

  test("is preferred to the session's older file, and reads nothing but the list and the entries", async () => {
    const home = await homeOf(DATABASE)
    const folder = join(home, ".openclaw/agents/main/sessions")
    mkdirSync(folder)
    copyFileSync(join(DATABASE, "events.jsonl"), join(folder, "78143045-1c91-4632-a58e-7cb79be652f8.jsonl"))
    const read = await readAll(openclawConnector, home)
    const copies = read.flatMap(({ unit, conversations }) =>
      conversations.map(({ id, authority, messages }) => [
        unit.slice(0, 7),
        id.slice(0, 8),
        authority,
        messages.length,
      ]),
    )
    expect(copies).toEqual([
      ["db:main", "0c1a0000", 2, 2],
      ["db:main", "78143045", 2, 8],
      ["main/78", "78143045", 1, 8],
    ])
    expect(JSON.stringify(read)).not.toContain("MUST-NOT-BE-READ")
  })
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
