import { cpSync, existsSync, readdirSync, utimesSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, onTestFinished, test } from "vitest"
import { loadConnectors } from "../../src/agents/connectors.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { put, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"

const FIXTURES = join(import.meta.dirname, "../fixtures")

/** A home, and how many messages a sync of it says are new beside how many more there are then. */
function counted(home: string) {
  const dir = join(home, ".dex")
  const history = join(dir, "history.db")
  const store = openStore(history)
  const index = openIndex(join(dir, "index.db"))
  onTestFinished(() => {
    store.close()
    index.close()
  })
  const machine = { home, env: {}, platform: "linux" as const }
  return async () => {
    const before = (await store.stats()).messages
    const report = await syncHistory({
      store,
      index,
      connectors: (await loadConnectors()).connectors,
      machine,
      home: { dir, history, lock: join(dir, "lock") },
    })
    return { said: report.added_messages, more: (await store.stats()).messages - before }
  }
}

const all = readdirSync(FIXTURES).flatMap((source) => readdirSync(join(FIXTURES, source)).map((name) => [source, name]))

describe("sync says as many new messages as there are more of then", () => {
  test.each(all)("%s, %s", async (source, name) => {
    const home = tempDir()
    const fixture = join(FIXTURES, source!, name!)
    if (existsSync(join(fixture, "home"))) cpSync(join(fixture, "home"), home, { recursive: true })
    else await (await import(pathToFileURL(join(fixture, "make.ts")).href)).make(home)
    const { said, more } = await counted(home)()
    expect(said).toBe(more)
    expect(said).toBeGreaterThan(0)
  })

  test.each([
    ["the original first", 1, 2],
    ["its copy first", 2, 1],
  ])("a copy of a conversation counts nothing, read %s", async (_, original, copy) => {
    const home = tempDir()
    const file = (session: string, more: string[], at: number) => {
      const told = writer({ sessionId: session })
      told.prompt("Count the sheep")
      told.answer("m1", [{ type: "text", text: "One, two, three." }])
      for (const text of more) told.prompt(text, { uuid: `${session}-${text}` })
      const path = put(home, `.claude/projects/-home-dev-proj/${session}.jsonl`, told.records)
      utimesSync(path, at, at)
    }
    const run = counted(home)
    const [one, other] = ["11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555"]
    file(one!, [], 1_760_000_000 - original)
    file(other!, ["And now the goats"], 1_760_000_000 - copy)
    expect(await run()).toEqual({ said: 3, more: 3 })
  })

  test("what a rewritten transcript no longer says is not new", async () => {
    const home = tempDir()
    const run = counted(home)
    const told = writer()
    told.prompt("Count the sheep")
    told.answer("m1", [{ type: "text", text: "One, two, three." }])
    const path = ".claude/projects/-home-dev-proj/11111111-2222-4333-8444-555555555555.jsonl"
    put(home, path, told.records)
    expect(await run()).toEqual({ said: 2, more: 2 })
    const [first, second] = told.records as [object, { message: object }]
    put(home, path, [first, { ...second, message: { ...second.message, content: [{ type: "text", text: "Four." }] } }])
    expect(await run()).toEqual({ said: 0, more: 0 })
  })
})
