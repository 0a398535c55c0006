import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { llmConnector } from "../../packages/more-agents/src/llm.ts"
import { conversationsOf, homeOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/llm"
const THREADS = join(FIXTURES, "0.32.1-threads")
const RESPONSES = join(FIXTURES, "0.26-responses-continued")
testConnector(llmConnector, FIXTURES)

const databaseOf = (home: string) => join(home, ".config", "io.datasette.llm", "logs.db")
const textsOf = async (fixture: string) =>
  [...(await conversationsOf(llmConnector, await homeOf(fixture))).values()].map(({ messages }) =>
    messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "text" && part.origin === "person" ? part.text : [])),
    ),
  )

test("searches the settings folder of each system, or the folder that the variable names", () => {
  const at = (platform: NodeJS.Platform, env = {}) => llmConnector.roots({ home: join("/home/dev"), env, platform })
  expect(at("linux")).toEqual([join("/home/dev/.config/io.datasette.llm")])
  expect(at("darwin")).toEqual([join("/home/dev/Library/Application Support/io.datasette.llm")])
  expect(at("linux", { LLM_USER_PATH: "/llm" })).toEqual(["/llm"])
})

test("an older conversation that a newer version continued has each prompt once", async () => {
  expect(await textsOf(RESPONSES)).toEqual([
    ["What is the tax?", "And again?", "And again, newer?"],
    ["What is the time in Berlin?"],
  ])
})

test("a file that was given is not what the person typed, and is mentioned", async () => {
  expect(await textsOf(THREADS)).toContainEqual(["What is the tax?", "And again?"])
  const all = [...(await conversationsOf(llmConnector, await homeOf(THREADS))).values()]
  const effects = all.flatMap(({ messages }) => messages).flatMap((message) => message.effects ?? [])
  expect(effects.map((effect) => (effect.type === "file" ? effect.path : effect.type))).toEqual([
    "/home/dev/shop/tax.ts",
    "/home/dev/shop/p.png",
  ])
})

test("two conversations that begin with the same words are not copies of each other, but a fork is", async () => {
  const home = await homeOf(THREADS)
  const db = new DatabaseSync(databaseOf(home))
  const one = db.prepare("select id, tip_message_hash as tip from threads order by rowid limit 1").get()!
  for (const [id, from] of [
    ["same", null],
    ["fork", one.id!],
  ] as const) {
    db.prepare("insert into threads (id, name, tip_message_hash, forked_from) values (?, 'x', ?, ?)").run(
      id,
      one.tip!,
      from,
    )
    db.prepare(
      "insert into turns (id, thread_id, tip_message_hash, datetime_utc) values (?, ?, ?, '2026-11-20 10:00:00')",
    ).run(`t${id}`, id, one.tip!)
  }
  db.close()
  const all = await conversationsOf(llmConnector, home)
  const keysOf = (id: string) => all.get(id)!.messages.map(({ key }) => key)
  expect(all.get("fork")!.fork_of).toBe(one.id)
  expect(keysOf("fork")).toEqual(keysOf(String(one.id)))
  expect(keysOf("same").some((key) => keysOf("fork").includes(key))).toBe(false)
})

test("a cycle of messages ends, and damaged JSON is reported", async () => {
  const home = await homeOf(THREADS)
  const db = new DatabaseSync(databaseOf(home))
  db.exec("update messages set parent_hash = (select max(hash) from messages) where parent_hash is null")
  db.exec("update parts set payload = '{' where type = 'tool_call'")
  db.close()
  const skipped = []
  for (const unit of await unitsOf(llmConnector, home)) {
    const reading = await llmConnector.read(unit)
    expect([...reading.records].length).toBeGreaterThan(5)
    skipped.push(...reading.end().skipped)
  }
  expect(new Set(skipped.map(({ reason }) => reason))).toEqual(new Set(["damaged JSON in payload"]))
})
