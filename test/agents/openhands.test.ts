import { globSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { openhandsConnector, stripOpenhandsEvent } from "../../packages/more-agents/src/openhands.ts"
import { openhandsRoots } from "../../packages/more-agents/src/records.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { hostileCopies } from "../support/hostile.ts"
import { conversationsOf, homeOf, readAll, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/openhands"
const TOOLS = join(FIXTURES, "1.x-tools")
const ERRORS = join(FIXTURES, "1.x-errors")
testConnector(openhandsConnector, FIXTURES)

const main = async () => (await conversationsOf(openhandsConnector, await homeOf(TOOLS))).values().next().value!

test("searches OpenHands' own folder, or those that its variables name", () => {
  const rootsOf = (env: Record<string, string>) => openhandsRoots({ home: "/h", env, platform: "linux" })
  expect(rootsOf({})).toEqual([join("/h/.openhands/conversations")])
  expect(rootsOf({ OPENHANDS_PERSISTENCE_DIR: "/p" })).toEqual([join("/p/conversations")])
  expect(rootsOf({ OPENHANDS_CONVERSATIONS_DIR: "/c" })).toEqual(["/c"])
})

describe("events", () => {
  test("continue where reading stopped, and are read again from the first if one is gone", async () => {
    const [unit] = await unitsOf(openhandsConnector, await homeOf(TOOLS))
    const all = await recordsOf(openhandsConnector, unit!)
    const events = join(unit!.path, "../events")
    const name = "event-00018-00e1-18.json"
    const last = readFileSync(join(events, name))
    rmSync(join(events, name))
    const before = await openhandsConnector.read(unit!)
    const first = [...before.records]
    const { cursor } = before.end()
    writeFileSync(join(events, name), last)
    const after = await openhandsConnector.read(unit!, cursor)
    expect(after.mode).toBe("append")
    expect([...first, ...after.records]).toEqual(all)
    rmSync(join(events, "event-00001-00e1-1.json"))
    expect((await openhandsConnector.read(unit!, cursor)).mode).toBe("replace")
  })

  test("waits for an event that is being written, and skips one that stays torn", async () => {
    const [unit] = await unitsOf(openhandsConnector, await homeOf(ERRORS))
    const torn = join(unit!.path, "../events/event-00003-00e2-3.json")
    const now = Date.now() / 1000
    utimesSync(torn, now, now)
    const waiting = await openhandsConnector.read(unit!)
    expect([...waiting.records]).toHaveLength(4) // the facts about the conversation, and three events
    expect(waiting.end()).toMatchObject({ pending: true, skipped: [] })
    utimesSync(torn, 1_700_000_000, 1_700_000_000)
    const settled = await openhandsConnector.read(unit!)
    expect([...settled.records]).toHaveLength(6)
    expect(settled.end().skipped).toMatchObject([{ reason: "not a complete JSON object" }])
  })

  test("a time without a zone is in the machine's zone", async () => {
    const [unit] = await unitsOf(openhandsConnector, await homeOf(TOOLS))
    const event = {
      kind: "MessageEvent",
      timestamp: "2026-04-02T15:25:40.706887",
      source: "user",
      llm_message: { content: "hi" },
    }
    const { conversations } = openhandsConnector.parse([event], unit!)
    expect(conversations[0]!.messages[0]!.at).toBe(new Date(2026, 3, 2, 15, 25, 40, 706).getTime())
  })

  test("never throw if any field of their files is replaced or missing", async () => {
    const [unit] = await unitsOf(openhandsConnector, await homeOf(TOOLS))
    const events = globSync(join(unit!.path, "../events/*.json")).map((path) => JSON.parse(readFileSync(path, "utf8")))
    const hostile = events.flatMap((event) => [...hostileCopies(event)]) as RawRecord[]
    expect(hostile.length).toBeGreaterThan(1000)
    for (const event of hostile) openhandsConnector.parse([stripOpenhandsEvent(event)], unit!)
  })

  test("never throw if any stored field is replaced or missing", async () => {
    const [unit] = await unitsOf(openhandsConnector, await homeOf(TOOLS))
    const records = await recordsOf(openhandsConnector, unit!)
    const hostile = records.flatMap((record) => [...hostileCopies(record)]) as typeof records
    expect(hostile.length).toBeGreaterThan(1000)
    for (const record of hostile) openhandsConnector.parse([...records.slice(0, 4), record], unit!)
  })
})

test("two versions of a file give only the difference as an edit; a refused call has no effect", async () => {
  const { messages } = await main()
  const results = messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_result" ? part : [])))
  const edit = results.find(({ call_id }) => call_id === "q3")
  expect(edit?.hunks).toMatchObject([{ new_start: 3, lines: ["+  spots: number // as many as were counted"] }])
  expect(results.find(({ call_id }) => call_id === "q6")).toMatchObject({
    text: "Do not delete the docs",
    is_error: true,
  })
})

test("the last call of a task is its answer", async () => {
  const { messages } = await main()
  expect(messages.at(-1)).toMatchObject({
    role: "assistant",
    parts: [{ type: "text", text: "Each quoll has its spots." }],
  })
})

test("the agent's settings are not read", async () => {
  expect(JSON.stringify(await readAll(openhandsConnector, await homeOf(TOOLS)))).not.toContain("MUST-NOT-BE-READ")
})
