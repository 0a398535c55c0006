import { cpSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { crushConnector } from "../../packages/more-agents/src/crush.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/crush"
const TOOLS = join(FIXTURES, "0.2-tools-agent")
const FIRST = join(FIXTURES, "0.1-first-schema")
testConnector(crushConnector, FIXTURES)

const ONE = "5e000000-0000-4000-8000-000000000001"
const listOf = (home: string) => join(home, ".local", "share", "crush", "projects.json")

test("searches for the list of projects in Crush's data folder on each system", () => {
  const at = (platform: NodeJS.Platform, env = {}) => crushConnector.roots({ home: join("/home/dev"), env, platform })
  expect(at("linux")).toEqual([join("/home/dev/.local/share/crush")])
  expect(at("darwin", { XDG_DATA_HOME: "/data" })).toEqual([join("/data/crush")])
  expect(at("win32", { LOCALAPPDATA: "/local" })).toEqual([join("/local/crush")])
  expect(at("linux", { CRUSH_GLOBAL_DATA: "/crush" })).toEqual(["/crush"])
})

test("finds a project's database through the list, and the project is the folder of its sessions", async () => {
  const home = await homeOf(FIRST)
  const [session] = [...(await conversationsOf(crushConnector, home)).values()]
  expect(session!.cwds).toEqual([join(home, "code", "list")])
  writeFileSync(listOf(home), '{"projects":[')
  const found = [...crushConnector.discover(join(listOf(home), ".."), () => false)]
  expect(found).toEqual([{ unreadable: "not a complete JSON object", path: listOf(home) }])
})

test("a session of the agent tool names its parent and the call", async () => {
  const child = (await conversationsOf(crushConnector, await homeOf(TOOLS))).get("m3$$k4")!
  expect(child).toMatchObject({ kind: "subagent", parent: { id: ONE, call_id: "k4" } })
  expect(child.messages[0]!.parts[0]!.origin).toBe("agent")
})

test("distinguishes seconds from milliseconds", async () => {
  const session = (await conversationsOf(crushConnector, await homeOf(TOOLS))).get(ONE)!
  expect(new Date(session.started_at!).toISOString()).toBe("2026-11-15T12:00:00.000Z")
})

test("does not store signatures, bytes and copies of files; counts a damaged row", async () => {
  const unit = (await unitsOf(crushConnector, await homeOf(TOOLS))).find(({ key }) => key === ONE)!
  expect(JSON.stringify(await recordsOf(crushConnector, unit))).not.toMatch(/NOT-KEPT|iVBORw0KGgo/)
  const reading = await crushConnector.read(unit)
  expect([...reading.records]).toHaveLength(10)
  expect(reading.end().skipped).toEqual([{ reason: "damaged JSON in parts", where: "messages m7" }])
})

const sample = sampleAt("crush/ctx-crush/v1")
test.skipIf(sample === undefined)(
  "reads another project's sample: a session with its summary, and its child",
  async () => {
    const home = tempDir()
    mkdirSync(join(home, "proj", ".crush"), { recursive: true })
    mkdirSync(join(listOf(home), ".."), { recursive: true })
    cpSync(join(sample!, "crush.db"), join(home, "proj", ".crush", "crush.db"))
    writeFileSync(listOf(home), JSON.stringify({ projects: [{ path: join(home, "proj"), data_dir: ".crush" }] }))
    const all = await conversationsOf(crushConnector, home)
    expect(all.get("crush-root")!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "system"])
    expect(all.get("crush-root")!.messages[1]!.usage).toMatchObject({ input: 40, output: 25, cost: 0.019 })
    const child = all.get("crush-child")!
    expect(child.parent).toEqual({ id: "crush-root" })
    expect(child.messages[0]!.effects).toMatchObject([{ type: "command", command: "go test ./..." }])
  },
)
