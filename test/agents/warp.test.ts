import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { warpConnector } from "../../packages/more-agents/src/warp.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/warp"
const TASKS = join(FIXTURES, "2026-tasks-subagent")
testConnector(warpConnector, FIXTURES)

const ONE = "3a000000-0000-4000-8000-000000000001"
const databaseOf = (home: string) => join(home, ".local", "state", "warp-terminal", "warp.sqlite")

test("searches Warp's data folder on each system", () => {
  const at = (platform: NodeJS.Platform, env = {}) => warpConnector.roots({ home: join("/home/dev"), env, platform })[0]
  expect(at("linux")).toBe(join("/home/dev/.local/state/warp-terminal"))
  expect(at("linux", { XDG_STATE_HOME: "/state" })).toBe(join("/state/warp-terminal"))
  expect(at("darwin")).toContain("2BBY89MBSN.dev.warp")
  expect(at("win32", { LOCALAPPDATA: "/local" })).toBe(join("/local/warp/Warp/data"))
})

test("reads what an edit changed, in both of its forms, and what a command returned", async () => {
  const session = (await conversationsOf(warpConnector, await homeOf(TASKS))).get(ONE)!
  const effects = session.messages.flatMap((message) => message.effects ?? [])
  expect(effects).toMatchObject([
    { type: "file", path: "src/tax.ts", action: "read" },
    { type: "file", path: "src/tax.ts", action: "edited", added: 1, removed: 1 },
    { type: "file", path: "src/new.ts", action: "edited", added: 1 },
    { type: "file", path: "src/cart.ts", action: "edited", added: 2, removed: 1 },
    { type: "command", command: "npm test", exit_status: 1, failed: true },
  ])
})

test("a subagent's task is a conversation that names the call that started it", async () => {
  const child = (await conversationsOf(warpConnector, await homeOf(TASKS))).get("t2")!
  expect(child).toMatchObject({ kind: "subagent", parent: { id: ONE, call_id: "k5" }, title: { text: "Find users" } })
  expect(child.messages.map(({ parts, model }) => [parts[0]!.origin, model])).toEqual([
    ["agent", undefined],
    ["agent", "claude-haiku"],
  ])
})

test("stores no tokens of Warp's server, no context and no copies of files; keeps a message of an unknown kind", async () => {
  const home = await homeOf(TASKS)
  const records = []
  for (const unit of await unitsOf(warpConnector, home)) records.push(...(await recordsOf(warpConnector, unit)))
  expect(JSON.stringify(records)).not.toContain("NOT-KEPT")
  expect(records.find(({ id }) => id === "m17")).toMatchObject({ unknown: { field: 40 } })
})

test("damaged and hostile tasks are reported or cut off, and the others are read", async () => {
  const home = await homeOf(TASKS)
  const db = new DatabaseSync(databaseOf(home))
  const nested = Array.from({ length: 20_000 }).reduce<Buffer>(
    (inner) =>
      Buffer.concat([
        Buffer.from([0x12, 0x80 | (inner.length & 127), 0x80 | ((inner.length >> 7) & 127), inner.length >> 14]),
        inner,
      ]),
    Buffer.alloc(0),
  )
  const insert = db.prepare(
    "insert into agent_tasks (conversation_id, task_id, task, last_modified_at) values (?, ?, ?, 0)",
  )
  insert.run(
    ONE,
    "nested",
    Buffer.concat([
      Buffer.from([0x2a, 0x80 | (nested.length & 127), 0x80 | ((nested.length >> 7) & 127), nested.length >> 14]),
      nested,
    ]),
  )
  insert.run(ONE, "endless", Buffer.alloc(1 << 16, 0xff))
  insert.run(ONE, "empty messages", Buffer.alloc(200_000, Buffer.from([0x2a, 0])))
  insert.run(ONE, "text", "not bytes")
  db.close()
  const unit = (await unitsOf(warpConnector, home)).find(({ key }) => key === ONE)!
  const reading = await warpConnector.read(unit)
  expect([...reading.records].length).toBeGreaterThan(20)
  expect(reading.end().skipped.map(({ where }) => where)).toEqual(
    ["t3", "endless", "text"].map((id) => `agent_tasks ${id}`),
  )
})

const sample = sampleAt("warp/ctx-warp/v1")
test.skipIf(sample === undefined)("reads another project's sample", async () => {
  const home = tempDir()
  mkdirSync(join(databaseOf(home), "..", "tui"), { recursive: true })
  cpSync(join(sample!, "warp.sqlite"), databaseOf(home))
  cpSync(join(sample!, "warp-mcp.sqlite"), join(databaseOf(home), "..", "tui", "warp.sqlite"))
  const all = await conversationsOf(warpConnector, home)
  expect(all.get("warp-conversation-1")!.messages.map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "assistant",
    "tool",
  ])
  expect(all.get("warp-mcp-sanitized-conversation")!.messages).toHaveLength(26)
})
