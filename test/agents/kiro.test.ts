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

test("searches the folders of the command line and the editor on each system", () => {
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
  test("reads the newest row of a conversation in two folders, and no other table", async () => {
    const units = await readAll(kiroConnector, await homeOf(DATABASE))
    expect(units.map(({ unit }) => unit)).toEqual([
      "v1:/home/dev/den",
      `v2:${id("a1")}`,
      `v2:${id("a2")}`,
      `v2:${id("a9")}`,
    ])
    const both = units.flatMap(({ conversations }) => conversations).find((one) => one.id === id("a2"))!
    expect(both.cwds).toEqual(["/home/dev/proj/sub", "/home/dev/proj"])
    expect(both.messages).toHaveLength(2)
    expect(JSON.stringify(units)).not.toContain("MUST-NOT-BE-READ")
  })

  test("a call that the person stopped has no effect, and their words are theirs", async () => {
    const { messages } = (await conversationsOf(kiroConnector, await homeOf(DATABASE))).get(id("a1"))!
    const stopped = messages.find(({ key }) => key === "result t6")!
    expect(stopped).toMatchObject({ parts: [{ is_error: true }] })
    expect(stopped.effects).toBeUndefined()
    expect(messages.at(-2)).toMatchObject({ role: "user", parts: [{ text: "No, stop", origin: "person" }] })
  })
})

describe("the editor", () => {
  test("an execution's log replaces the message that only announces it", async () => {
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

  test("reads the session even if any field of a log is replaced or missing", async () => {
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

  test("two versions of a file give only the difference as an edit", async () => {
    const { messages } = (await conversationsOf(kiroConnector, await homeOf(FILES))).get(id("c1"))!
    const edit = messages.find(({ key }) => key.endsWith("x1:result"))
    expect(edit).toMatchObject({ parts: [{ hunks: [{ new_start: 3, lines: ["+  size: number"] }] }] })
  })
})

const sample = sampleAt("kiro/ctx-kiro-cli/v2/data.sqlite3")
test.skipIf(sample === undefined)("reads another project's database: one conversation of three messages", async () => {
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
