import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { zedConnector } from "../../packages/more-agents/src/zed.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/zed"
const NEWER = join(FIXTURES, "0.3.0-tools-subagent")
const OLDER = join(FIXTURES, "0.2.0-older-threads")
testConnector(zedConnector, FIXTURES)

const id = (n: number) => `1f000000-0000-4000-8000-00000000000${n}`
const folderOf = (home: string) => join(home, ".local", "share", "zed", "threads")

test("searches Zed's data folder on each system", () => {
  const at = (platform: NodeJS.Platform, env = {}) => zedConnector.roots({ home: join("/home/dev"), env, platform })
  expect(at("linux")).toEqual([join("/home/dev/.local/share/zed/threads")])
  expect(at("linux", { XDG_DATA_HOME: "/data" })).toEqual([join("/data/zed/threads")])
  expect(at("linux", { XDG_DATA_HOME: "/data", FLATPAK_XDG_DATA_HOME: "/flat" })).toEqual([join("/flat/zed/threads")])
  expect(at("darwin")).toEqual([join("/home/dev/Library/Application Support/Zed/threads")])
  expect(at("win32", { LOCALAPPDATA: "/local" })).toEqual([join("/local/Zed/threads")])
})

test("resolves a path that begins with the name of a project's folder, and keeps the person's order of folders", async () => {
  const thread = (await conversationsOf(zedConnector, await homeOf(NEWER))).get(id(1))!
  expect(thread.cwds).toEqual(["/home/dev/proj", "/home/dev/lib"])
  const files = thread.messages
    .flatMap(({ effects = [] }) => effects)
    .flatMap((one) => (one.type === "file" ? one.path : []))
  expect(files).toEqual([
    "/home/dev/proj/src/server.ts",
    "/home/dev/proj/src/server.ts",
    "/home/dev/proj/src/server.ts",
    "/home/dev/lib/ports.ts",
  ])
})

test("a subagent's thread names its parent", async () => {
  const child = (await conversationsOf(zedConnector, await homeOf(NEWER))).get(id(2))!
  expect([child.kind, child.parent?.id, child.title]).toEqual(["subagent", id(1), undefined])
  expect(child.messages[0]!.parts[0]!.origin).toBe("agent")
})

test("does not store signatures, image bytes, drafts, uncommitted changes and copies of files", async () => {
  for (const fixture of [NEWER, OLDER]) {
    const records = []
    for (const unit of await unitsOf(zedConnector, await homeOf(fixture)))
      records.push(...(await recordsOf(zedConnector, unit)))
    expect(records.length).toBeGreaterThan(3)
    expect(JSON.stringify(records)).not.toMatch(/NOT-KEPT|iVBORw0KGgo/)
  }
})

test("a damaged thread is counted, and the others are read", async () => {
  const unit = (await unitsOf(zedConnector, await homeOf(NEWER))).find(({ key }) => key === id(3))!
  const reading = await zedConnector.read(unit)
  expect([...reading.records]).toEqual([])
  expect(reading.end().skipped).toMatchObject([{ reason: expect.stringMatching(/^not readable as zstd/) }])
})

const sample = sampleAt("zed/ctx-zed")
test.skipIf(sample === undefined)(
  "reads another project's sample: a thread with its summary, and its subagent",
  async () => {
    const home = tempDir()
    mkdirSync(folderOf(home), { recursive: true })
    cpSync(join(sample!, "threads.db"), join(folderOf(home), "threads.db"))
    const all = await conversationsOf(zedConnector, home)
    expect(all.get("zed-root")!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "system"])
    expect(all.get("zed-root")!.messages[1]!.usage).toMatchObject({ input: 10, output: 5 })
    expect(all.get("zed-child")).toMatchObject({ parent: { id: "zed-root" }, cwds: ["/workspace/zed"] })
  },
)
