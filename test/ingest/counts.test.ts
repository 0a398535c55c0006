import { cpSync, existsSync, readdirSync, utimesSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, onTestFinished, test } from "vitest"
import { loadConnectors } from "../../src/agents/connectors.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { put, writer } from "../support/claude-code.ts"
import { onFixtures } from "../support/exports.ts"
import { tempDir } from "../support/temp.ts"

const FIXTURES = join(import.meta.dirname, "../fixtures")

/** Returns a sync of a home: how many new messages it reports, and how many more there are afterwards. */
function counted(home: string, source?: string) {
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
      connectors: (await loadConnectors()).connectors.map((connector) =>
        connector.exported && connector.source === source ? onFixtures(connector) : connector,
      ),
      machine,
      home: { dir, history, lock: join(dir, "lock") },
    })
    return { reported: report.added_messages, more: (await store.stats()).messages - before }
  }
}

const all = readdirSync(FIXTURES).flatMap((source) => readdirSync(join(FIXTURES, source)).map((name) => [source, name]))

describe("sync reports exactly the messages that it added", () => {
  test.each(all)("%s, %s", async (source, name) => {
    const home = tempDir()
    const fixture = join(FIXTURES, source!, name!)
    if (existsSync(join(fixture, "home"))) cpSync(join(fixture, "home"), home, { recursive: true })
    else await (await import(pathToFileURL(join(fixture, "make.ts")).href)).make(home)
    const { reported, more } = await counted(home, source)()
    expect(reported).toBe(more)
    expect(reported).toBeGreaterThan(0)
  })

  test.each([
    ["the original first", 1, 2],
    ["its copy first", 2, 1],
  ])("a copy of a conversation counts nothing, read %s", async (_, original, copy) => {
    const home = tempDir()
    const file = (session: string, more: string[], at: number) => {
      const main = writer({ sessionId: session })
      main.prompt("Count the sheep")
      main.answer("m1", [{ type: "text", text: "One, two, three." }])
      for (const text of more) main.prompt(text, { uuid: `${session}-${text}` })
      const path = put(home, `.claude/projects/-home-dev-proj/${session}.jsonl`, main.records)
      utimesSync(path, at, at)
    }
    const run = counted(home)
    const [one, other] = ["11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555"]
    file(one!, [], 1_760_000_000 - original)
    file(other!, ["And now the goats"], 1_760_000_000 - copy)
    expect(await run()).toEqual({ reported: 3, more: 3 })
  })

  test("messages that a rewritten transcript no longer has are not new", async () => {
    const home = tempDir()
    const run = counted(home)
    const main = writer()
    main.prompt("Count the sheep")
    main.answer("m1", [{ type: "text", text: "One, two, three." }])
    const path = ".claude/projects/-home-dev-proj/11111111-2222-4333-8444-555555555555.jsonl"
    put(home, path, main.records)
    expect(await run()).toEqual({ reported: 2, more: 2 })
    const [first, second] = main.records as [object, { message: object }]
    put(home, path, [first, { ...second, message: { ...second.message, content: [{ type: "text", text: "Four." }] } }])
    expect(await run()).toEqual({ reported: 0, more: 0 })
  })
})
