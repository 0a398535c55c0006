import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { gooseConnector } from "../../packages/more-agents/src/goose.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const fixtures = fileURLToPath(new URL("../fixtures/goose", import.meta.url))
const newer = join(fixtures, "1.35-tools-compaction-subagent")
const older = join(fixtures, "1.9-json-lines")
const folderOf = (home: string) => join(home, ".local", "share", "goose", "sessions")

testConnector(gooseConnector, fixtures)

test("searches Goose's data folder on each system", () => {
  const at = (platform: NodeJS.Platform, env = {}) => gooseConnector.roots({ home: "/home/dev", env, platform })
  expect(at("linux")).toEqual(["/home/dev/.local/share/goose/sessions"])
  expect(at("darwin")).toEqual(["/home/dev/.local/share/goose/sessions"])
  expect(at("linux", { XDG_DATA_HOME: "/data" })).toEqual(["/data/goose/sessions"])
  expect(at("win32", { APPDATA: join("/roaming") })).toEqual([join("/roaming", "Block", "goose", "data", "sessions")])
  expect(at("linux", { GOOSE_PATH_ROOT: "/goose" })).toEqual(["/goose/data/sessions"])
})

test("recognises a compaction's summary, and abandons the first copy of a repeated prompt", async () => {
  const session = (await conversationsOf(gooseConnector, await homeOf(newer))).get("20261115_1")!
  const parts = session.messages.flatMap(({ parts }) => parts)
  expect(parts.filter(({ type }) => type === "summary").map(({ text }) => text)).toEqual([
    "The person wanted the tax rate at 19 percent; tax.ts was changed.",
  ])
  const prompts = session.messages.filter(({ parts }) => parts[0]?.text === "Now commit it")
  expect(prompts.map(({ abandoned }) => abandoned ?? false)).toEqual([true, false])
})

test("a subagent names its parent, and its prompt is not a person's", async () => {
  const child = (await conversationsOf(gooseConnector, await homeOf(newer))).get("20261115_2")!
  expect([child.kind, child.parent?.id, child.messages[0]!.parts[0]!.origin]).toEqual([
    "subagent",
    "20261115_1",
    "agent",
  ])
})

test("does not read recipes, extension data, signatures and image bytes", async () => {
  const home = await homeOf(newer)
  const records = []
  for (const unit of await unitsOf(gooseConnector, home)) records.push(...(await recordsOf(gooseConnector, unit)))
  expect(JSON.stringify(records)).not.toMatch(/MUST-NOT|NOT-KEPT|iVBORw0KGgo/)
})

test("a damaged row is counted, and the others of its session are read", async () => {
  const unit = (await unitsOf(gooseConnector, await homeOf(newer))).find(({ key }) => key === "db:20261115_1")!
  const reading = await gooseConnector.read(unit)
  expect([...reading.records]).toHaveLength(15)
  expect(reading.end().skipped).toEqual([{ reason: "damaged JSON in content_json", where: "messages 15" }])
})

test("hiding a message changes the stamp of its session only", async () => {
  const home = await homeOf(newer)
  const stamps = async () => new Map((await unitsOf(gooseConnector, home)).map(({ key, stamp }) => [key, stamp]))
  const before = await stamps()
  const db = new DatabaseSync(join(folderOf(home), "sessions.db"))
  db.exec(`update messages set metadata_json = '{"userVisible":false,"agentVisible":true}' where id = 17`)
  db.close()
  const moved = [...(await stamps())].filter(([key, stamp]) => before.get(key) !== stamp)
  expect(moved.map(([key]) => key)).toEqual(["db:20261115_2"])
})

test("if the database has imported a file, the database wins", async () => {
  const home = await homeOf(older)
  const [file] = [...(await conversationsOf(gooseConnector, home)).values()]
  const [row] = [...(await conversationsOf(gooseConnector, await homeOf(newer))).values()]
  expect(row!.authority).toBeGreaterThan(file!.authority)
})

const sample = sampleAt("goose/ctx-goose")
test.skipIf(sample === undefined)("reads the shared samples of schemas 14 and 15", async () => {
  for (const version of ["v14", "v15"]) {
    const home = tempDir()
    mkdirSync(folderOf(home), { recursive: true })
    cpSync(join(sample!, version, "sessions.db"), join(folderOf(home), "sessions.db"))
    const session = (await conversationsOf(gooseConnector, home)).get("goose-root")!
    expect(session.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"])
    expect(session.title).toEqual({ text: "Goose Fixture", from: "person" })
    expect(session.messages[1]!.usage).toEqual({ input: 80, output: 43, cache_read: 0, cache_write: 0, cost: 0.042 })
    expect(session.messages[1]!.model).toBe("gpt-5")
    expect(session.started_at).toBe(Date.parse("2026-06-24T00:00:00Z")) // its rows are older than the session's own date
  }
})
