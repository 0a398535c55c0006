import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { hermesConnector } from "../../packages/more-agents/src/hermes.ts"
import { hermesRoots } from "../../packages/more-agents/src/records.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, readAll, testConnector } from "./contract.ts"

const FIXTURES = "test/fixtures/hermes"
const DATABASE = join(FIXTURES, "database")
testConnector(hermesConnector, FIXTURES)

const MAIN = "20261110_090000_aaaa0001"
const NEXT = "20261110_093000_aaaa0002"
const BRANCH = "20261110_094000_aaaa0003"

test("searches Hermes's own folder, or HERMES_HOME", () => {
  expect(hermesRoots({ home: "/h", env: {}, platform: "linux" })).toEqual([join("/h/.hermes")])
  expect(hermesRoots({ home: "/h", env: { HERMES_HOME: "/x" }, platform: "linux" })).toEqual(["/x"])
  expect(hermesRoots({ home: "/h", env: {}, platform: "win32" })).toContain(join("/h/AppData/Local/hermes"))
})

describe("the database", () => {
  test("how a session ended determines what its successor is", async () => {
    const all = await conversationsOf(hermesConnector, await homeOf(DATABASE))
    expect(all.get(NEXT)).toMatchObject({ kind: "person", resume_of: MAIN })
    expect(all.get(BRANCH)).toMatchObject({ kind: "person", fork_of: NEXT })
    expect(all.get("20261110_095000_aaaa0004")).toMatchObject({ kind: "subagent", parent: { id: BRANCH } })
    expect(all.get("20261110_230000_aaaa0005")!.kind).toBe("automation")
    expect(all.get("20261111_090000_bbbb0001")!.messages).toHaveLength(2)
  })

  test("a skill's text is not the person's, and retracted messages are abandoned", async () => {
    const { messages } = (await conversationsOf(hermesConnector, await homeOf(DATABASE))).get(MAIN)!
    expect(messages[0]!.parts.map(({ text, origin }) => [text.slice(0, 24), origin])).toEqual([
      ["[SYSTEM: The user has in", "injected"],
      ["Sort the honeyeater feed", "person"],
    ])
    expect(messages.filter(({ abandoned }) => abandoned).map(({ parts }) => parts[0]!.text)).toEqual([
      "Sort it the other way",
    ])
  })

  test("a failed patch has no effect", async () => {
    const { messages } = (await conversationsOf(hermesConnector, await homeOf(DATABASE))).get(MAIN)!
    const paths = messages.flatMap(({ effects = [] }) =>
      effects.flatMap((one) => (one.type === "file" ? one.path : [])),
    )
    expect(paths).toEqual(["src/feed.ts", "src/feed.ts", "docs/feed.md"].map((path) => `/home/dev/proj/${path}`))
  })

  test("does not read the system prompt or the person's identity", async () => {
    const json = JSON.stringify(await readAll(hermesConnector, await homeOf(DATABASE)))
    expect(json).not.toContain("MUST-NOT-BE-READ")
  })
})

const sample = sampleAt("hermes/stage0")
test.skipIf(sample === undefined)("reads another project's samples: every message, and a failed tool", async () => {
  const read = async (name: string) => {
    const { conversations, unknown } = await parsedAt(hermesConnector, join(sample!, name), `file:${name}`)
    expect(unknown).toEqual({})
    return conversations[0]!
  }
  expect((await read("small.json")).messages.map(({ role }) => role)).toEqual(["user", "assistant"])
  const large = await read("large.json")
  expect(large.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"])
  expect(large.messages[2]!.effects).toMatchObject([{ type: "command", command: "pwd" }])
  const drift = await read("schema_drift.json")
  expect(drift.messages.at(-1)).toMatchObject({ role: "tool", parts: [{ tool: "memory", is_error: true }] })
})
