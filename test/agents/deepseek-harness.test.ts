import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { zstdCompressSync } from "node:zlib"
import { expect, test } from "vitest"
import { deepseekHarnessConnector } from "../../packages/more-agents/src/deepseek-harness.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/deepseek_harness"
const GENERATIONS = join(FIXTURES, "0.1.5-generations-compaction-subagent")
testConnector(deepseekHarnessConnector, FIXTURES)

const idOf = (number: number) => `d5000000-0000-4000-8000-00000000000${number}`

test("searches where the program's variable says", () => {
  const at = (env: Record<string, string>) =>
    deepseekHarnessConnector.roots({ home: join("/home/dev"), env, platform: "linux" })
  expect(at({})).toEqual([join("/home/dev/.dsh/sessions")])
  expect(at({ DSH_HOME: "/dsh" })).toEqual([join("/dsh/sessions")])
})

test("reads the newest generation of a log, and all its compressed frames", async () => {
  const session = (await conversationsOf(deepseekHarnessConnector, await homeOf(GENERATIONS))).get(idOf(1))!
  expect(session.title).toEqual({ text: "Tax of 19 percent", from: "agent" })
  expect(session.messages.map(({ key }) => key)).toEqual(["s1", "u1", "u2", "a1", "r1", "r2", "u3"])
})

test("a compressed log that ends in the middle of a frame keeps what is before it", async () => {
  const home = await homeOf(GENERATIONS)
  const unit = (await unitsOf(deepseekHarnessConnector, home)).find(({ key }) => key.endsWith(idOf(1)))!
  writeFileSync(unit.path, readFileSync(unit.path).subarray(0, -40))
  const reading = await deepseekHarnessConnector.read(unit, undefined, join(home, "..", "scratch"))
  expect([...reading.records][0]).toMatchObject({ type: "session", id: idOf(1) })
  expect(reading.end().skipped.map(({ reason }) => reason)).toEqual([expect.stringContaining("not readable as zstd")])
})

test("a compressed log that consists only of empty frames is not read to its end", async () => {
  const home = await homeOf(GENERATIONS)
  const unit = (await unitsOf(deepseekHarnessConnector, home)).find(({ key }) => key.endsWith(idOf(1)))!
  const empty = zstdCompressSync("")
  writeFileSync(unit.path, Buffer.concat([readFileSync(unit.path), Buffer.alloc(empty.length * 30_000, empty)]))
  const reading = await deepseekHarnessConnector.read(unit, undefined, join(home, "..", "scratch"))
  expect([...reading.records].length).toBeGreaterThan(10)
  expect(reading.end().skipped.map(({ reason }) => reason)).toEqual([expect.stringContaining("frames and blocks")])
})

test("tells the person from plugins and from the parent of a subagent", async () => {
  const all = await conversationsOf(deepseekHarnessConnector, await homeOf(GENERATIONS))
  const origins = (id: string) => all.get(id)!.messages.map(({ parts }) => parts[0]!.origin)
  expect(origins(idOf(1)).slice(0, 3)).toEqual(["injected", "person", "injected"])
  expect(all.get(idOf(2))).toMatchObject({ kind: "subagent", parent: { id: idOf(1) } })
  expect(origins(idOf(2))).toEqual(["agent", "agent"])
})

test("a fork repeats its parent's messages under the same keys", async () => {
  const fork = (await conversationsOf(deepseekHarnessConnector, await homeOf(GENERATIONS))).get(idOf(3))!
  expect(fork.fork_of).toBe(idOf(1))
  expect(fork.messages.map(({ key }) => key)).toEqual(["u1", "f1"])
})

test("an edit has the lines that changed, without the lines around them", async () => {
  const session = (await conversationsOf(deepseekHarnessConnector, await homeOf(GENERATIONS))).get(idOf(1))!
  const result = session.messages.find(({ key }) => key === "r1")!.parts[0]!
  expect(result).toMatchObject({ hunks: [{ path: "src/tax.ts", lines: ["-const rate = 16", "+const rate = 19"] }] })
})

test("does not store streamed pieces, system prompts in headers and schemas", async () => {
  for (const unit of await unitsOf(deepseekHarnessConnector, await homeOf(GENERATIONS)))
    expect(JSON.stringify(await recordsOf(deepseekHarnessConnector, unit))).not.toContain("NOT-KEPT")
})
