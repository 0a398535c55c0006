import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { kiroConnector } from "../../packages/more-agents/src/kiro/connector.ts"
import { kiroRoots } from "../../packages/more-agents/src/records.ts"
import { hostileCopies } from "../support/hostile.ts"
import { sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, readAll, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/kiro"
const DATABASE = join(FIXTURES, "cli-database")
const FILES = join(FIXTURES, "files-and-editor")
testConnector(kiroConnector, FIXTURES)

const id = (end: string) => `00000000-0000-4000-8000-0000000000${end}`

test("looks where the command line and the editor keep their sessions on each system", () => {
  const rootsOf = (platform: NodeJS.Platform) =>
    kiroRoots({ home: "/h", env: {}, platform }).map((root) => root.slice(3))
  expect(rootsOf("linux")).toEqual([
    join(".local/share/kiro-cli"),
    join(".local/share/amazon-q"),
    join(".kiro/sessions/cli"),
    join(".config/Kiro/User/globalStorage/kiro.kiroagent"),
  ])
  expect(rootsOf("darwin")[0]).toBe(join("Library/Application Support/kiro-cli"))
  expect(rootsOf("win32")[3]).toBe(join("AppData/Roaming/Kiro/User/globalStorage/kiro.kiroagent"))
})

describe("the database", () => {
  test("of a conversation under two folders the newest row is read, and no other table is", async () => {
    const told = await readAll(kiroConnector, await homeOf(DATABASE))
    expect(told.map(({ unit }) => unit)).toEqual([
      "v1:/home/dev/den",
      `v2:${id("a1")}`,
      `v2:${id("a2")}`,
      `v2:${id("a9")}`,
    ])
    const both = told.flatMap(({ conversations }) => conversations).find((one) => one.id === id("a2"))!
    expect(both.cwds).toEqual(["/home/dev/proj/sub", "/home/dev/proj"])
    expect(both.messages).toHaveLength(2)
    expect(JSON.stringify(told)).not.toContain("MUST-NOT-BE-READ")
  })

  test("what the person stopped did nothing, and what they said instead is theirs", async () => {
    const { messages } = (await conversationsOf(kiroConnector, await homeOf(DATABASE))).get(id("a1"))!
    const stopped = messages.find(({ key }) => key === "result t6")!
    expect(stopped).toMatchObject({ parts: [{ is_error: true }] })
    expect(stopped.effects).toBeUndefined()
    expect(messages.at(-2)).toMatchObject({ role: "user", parts: [{ text: "No, stop", origin: "person" }] })
  })
})

describe("the editor", () => {
  test("what an execution's log says stands for the entry that only announces it", async () => {
    const { messages, cwds } = (await conversationsOf(kiroConnector, await homeOf(FILES))).get(id("c1"))!
    const texts = messages.flatMap(({ parts }) => parts).flatMap((part) => (part.type === "text" ? part.text : []))
    expect(texts).toEqual([
      "Add a size to each bettong",
      "Each bettong has a size.",
      "Thanks. And how large is one?",
      "About a kilogram.",
    ])
    expect(cwds).toEqual(["/home/dev/proj"])
  })

  test("with any field of a log replaced or gone, the session is read", async () => {
    const home = await homeOf(FILES)
    const unit = (await unitsOf(kiroConnector, home)).find(({ key }) => key.startsWith("ide:"))!
    const [log] = globSync(join(home, ".config/Kiro/User/globalStorage/kiro.kiroagent/*/414d*/1f2e3d"))
    const all = [...hostileCopies(JSON.parse(readFileSync(log!, "utf8")))]
    const hostile = all.filter((_, place) => place % 7 === 0)
    expect(hostile.length).toBeGreaterThan(50)
    for (const copy of hostile) {
      writeFileSync(log!, JSON.stringify(copy))
      expect(kiroConnector.parse((await kiroConnector.read(unit)).records, unit).conversations).toHaveLength(1)
    }
  })

  test("of two versions of a file only what differs was written", async () => {
    const { messages } = (await conversationsOf(kiroConnector, await homeOf(FILES))).get(id("c1"))!
    const edit = messages.find(({ key }) => key.endsWith("x1:result"))
    expect(edit).toMatchObject({ parts: [{ hunks: [{ new_start: 3, lines: ["+  size: number"] }] }] })
  })
})

const sample = sampleAt("kiro/ctx-kiro-cli/v2/data.sqlite3")
test.skipIf(sample === undefined)("another project's database: one conversation of three messages", async () => {
  const found = [...kiroConnector.discover(join(sample!, ".."), () => false)]
  expect(found).toMatchObject([{ key: `v2:${id("01")}` }])
  const unit = found[0] as Parameters<typeof kiroConnector.read>[0]
  const { conversations, unknown } = kiroConnector.parse((await kiroConnector.read(unit)).records, unit)
  expect(unknown).toEqual({})
  expect(conversations).toMatchObject([{ id: id("01"), cwds: ["/workspace/kiro-fixture"] }])
  expect(conversations[0]!.messages.map(({ role, parts }) => [role, parts.length])).toEqual([
    ["user", 1],
    ["assistant", 1],
    ["assistant", 2],
  ])
})
