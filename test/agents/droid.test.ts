import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { droidConnector } from "../../packages/more-agents/src/droid.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/droid"
const STORE = join(FIXTURES, "0.81-store-branch-subagent")
const STREAMS = join(FIXTURES, "0.70-streams")
testConnector(droidConnector, FIXTURES)

const id = (n: number) => `d0000000-0000-4000-8000-00000000000${n}`

test("searches .factory in the home, on every system", () => {
  for (const platform of ["linux", "darwin", "win32"] as const)
    expect(droidConnector.roots({ home: join("/home/dev"), env: {}, platform })).toEqual([
      join("/home/dev/.factory/sessions"),
      join("/home/dev/.factory/projects"),
    ])
})

test("branches off the path to the last message are abandoned", async () => {
  const session = (await conversationsOf(droidConnector, await homeOf(STORE))).get(id(1))!
  expect(session.messages.filter(({ abandoned }) => abandoned).map(({ key }) => key)).toEqual(["m4"])
})

test("a subagent names the session and the call that started it", async () => {
  const child = (await conversationsOf(droidConnector, await homeOf(STORE))).get(id(2))!
  expect(child).toMatchObject({ kind: "subagent", parent: { id: id(1), call_id: "t4" } })
  expect([child.title, child.messages[0]!.parts[0]!.origin]).toEqual([undefined, "agent"])
})

test("changed settings are read again, but only the model and the tokens", async () => {
  const home = await homeOf(STORE)
  const unitOf = async () => (await unitsOf(droidConnector, home)).find(({ key }) => key.includes(id(1)))!
  const before = await unitOf()
  const first = await droidConnector.read(before)
  const records = [...first.records]
  expect(JSON.stringify(records)).not.toMatch(/NOT-KEPT|iVBORw0KGgo/)
  writeFileSync(before.path.replace(".jsonl", ".settings.json"), '{"tokenUsage":{"inputTokens":9,"outputTokens":1}}')
  const after = await unitOf()
  expect(after.stamp).not.toBe(before.stamp)
  const second = await droidConnector.read(after, first.end().cursor)
  expect(second.mode).toBe("append")
  const [session] = droidConnector.parse([...records, ...second.records], after).conversations
  expect(session!.messages.at(-1)!.usage).toMatchObject({ input: 9, output: 1 })
})

test("a stream's last line counts tokens, and does not repeat the answer", async () => {
  const run = [...(await conversationsOf(droidConnector, await homeOf(STREAMS))).values()][0]!
  const answers = run.messages.filter(({ parts }) => parts.some(({ text }) => text === "There is one file."))
  expect(answers).toMatchObject([{ key: "m2", usage: { input: 120, output: 30, cache_read: 7 } }])
})

const sample = sampleAt("factory-droid/stage0")
test.skipIf(sample === undefined)("reads every message of another project's samples, stored and streamed", async () => {
  const summary = async (name: string) => {
    const { conversations, unknown } = await parsedAt(droidConnector, join(sample!, name), name)
    const messages = conversations.flatMap((one) => one.messages)
    const commands = messages.flatMap(({ effects = [] }) => effects).filter(({ type }) => type === "command")
    return { roles: messages.map(({ role }) => role[0]).join(""), unknown, commands }
  }
  expect(await summary("session_store_small.jsonl")).toMatchObject({
    roles: "uat",
    unknown: {},
    commands: [{ exit_status: 1 }],
  })
  expect(await summary("session_store_large.jsonl")).toMatchObject({ roles: "uaataua", unknown: {} })
  expect(await summary("session_store_schema_drift.jsonl")).toMatchObject({ roles: "ua", unknown: {} })
  expect(await summary("stream_json_small.jsonl")).toMatchObject({
    roles: "uata",
    unknown: {},
    commands: [{ exit_status: 0 }],
  })
  expect(await summary("stream_json_large.jsonl")).toMatchObject({ roles: "uaata", unknown: {} })
  expect(await summary("stream_json_schema_drift.jsonl")).toMatchObject({
    roles: "uatas",
    unknown: {},
    commands: [{ failed: true }],
  })
})

test("a record without its file's first line still has a session", async () => {
  const home = await homeOf(STREAMS)
  const [unit] = await unitsOf(droidConnector, home)
  const [, ...rest] = await recordsOf(droidConnector, unit!)
  expect(droidConnector.parse(rest, unit!).conversations[0]!.id).toBe(id(5))
})
