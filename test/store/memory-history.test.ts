import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import type { Effect } from "../../src/core/conversation.ts"
import { formatRef, type Ref } from "../../src/core/ref.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { openIndex, type SearchIndex } from "../../src/store/index/search-index.ts"
import type { Dex } from "../../src/tools/context.ts"
import { run as list } from "../../src/tools/list/run.ts"
import { run as search } from "../../src/tools/search/run.ts"
import { run as show } from "../../src/tools/show/run-show.ts"
import { run as timeline } from "../../src/tools/show/run-timeline.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { type HistoryFiller, memoryHistory } from "../support/memory-history.ts"
import { tempDir } from "../support/temp.ts"
import { describeReading } from "./suite.ts"

describeReading("in memory", async () => memoryHistory())

// Nothing above the history knows which one it asks: over plain arrays it answers as it does over SQLite.

const START = Date.UTC(2026, 10, 3)
const MINUTE = 60_000
const at = (minute: number) => ({ at: START + minute * MINUTE })
const ref = (id: string, source = "claude_code"): Ref => ({ source, id })
const edited = (path: string, added = 1): Effect => ({ type: "file", path, action: "edited", added, removed: 1 })
const usage = { input: 10, output: 5, cache_read: 0, cache_write: 0 }

const QUESTION = textMessage("k1", "why does the refresh token race", at(1))
const ANSWERED = textMessage("k2", "the mutex is released too early in refreshToken", {
  ...at(2),
  role: "assistant",
  model: "claude-opus-9",
  usage,
  effects: [edited("/code/api/src/auth.ts", 3), edited("/code/api/src/auth.ts", 2), edited("/code/api/src/lock.ts")],
})
const COMMITTED = textMessage("k3", "committed the fix of the race", {
  ...at(3),
  role: "assistant",
  effects: [
    { type: "command", command: "npm test", exit_status: 0, failed: false },
    { type: "commit", hash: "1a2b3c4", subject: "auth: hold the mutex", branch: "main" },
    { type: "file", path: "/etc/hosts", action: "read" },
  ],
})

async function fill(history: HistoryFiller): Promise<void> {
  const title = { text: "Race in refresh", from: "person" as const }
  const first = conversation("first", [QUESTION, ANSWERED, COMMITTED], { title, git_branch: "main" })
  const fork = conversation("fork", [QUESTION, textMessage("f2", "another way: no mutex at all", at(30))])
  const helper = conversation(
    "helper",
    [textMessage("h1", "looked for every mutex", { ...at(2), role: "assistant" })],
    {
      kind: "subagent",
      parent: { id: "first" },
    },
  )
  const web = { project: "/code/web", cwds: ["/code/web"] }
  const sidebar = conversation(
    "sidebar",
    [textMessage("w1", "the sidebar flickers", at(20)), textMessage("w2", "no time known", { at: undefined })],
    web,
  )
  const secret = conversation("secret", [textMessage("s1", "the secret token of the race", at(40))], {
    project: "/code/secret",
    cwds: ["/code/secret"],
  })
  const left = conversation("left", [
    textMessage("l1", "a token that was left behind", { ...at(50), superseded: true }),
  ])
  const page = conversation("handbook/auth.md", [textMessage("d1", "# Tokens\nA refresh token is used once.", at(5))], {
    kind: "document",
    project: undefined,
    cwds: [],
    title: { text: "Tokens", from: "agent" },
  })
  await history.writeUnit(unit("fork", [fork], { bornAt: 2 }))
  await history.writeUnit(unit("first", [first, helper], { bornAt: 1 }))
  await history.writeUnit(unit("web", [sidebar], { source: "codex" }))
  await history.writeUnit(unit("secret", [secret]))
  await history.writeUnit(unit("left", [left]))
  await history.writeUnit(unit("handbook/auth.md", [page], { source: "docs" }))
  await history.setPrivate("/code/secret", true)
  const handbook = { name: "handbook", kind: "folder" as const, origin: "./handbook", root: "/handbook" }
  await history.saveCollection({ ...handbook, added_at: START, synced_at: START, problems: [] })
  await history.saveProgress({ done: 6, total: 6, at: START })
}

/** Writes the same conversations to both. */
async function both(): Promise<[HistoryReader & HistoryFiller, HistoryReader & HistoryFiller]> {
  const sqlite = openStore(join(tempDir(), "history.db"))
  onTestFinished(() => sqlite.close())
  const memory = memoryHistory()
  for (const history of [sqlite, memory]) await fill(history)
  return [sqlite, memory]
}

async function indexOf(history: HistoryReader): Promise<SearchIndex> {
  const index = openIndex(join(tempDir(), "index.db"))
  onTestFinished(() => index.close())
  expect(await index.follow(history)).toMatchObject({ complete: true })
  return index
}

const byName = (refs: Ref[]) => refs.map(formatRef).sort()

describe("a history in memory answers like SQLite", () => {
  const REFS = [
    ...["first", "fork", "helper", "secret", "left", "nowhere"].map((id) => ref(id)),
    ref("sidebar", "codex"),
    ref("handbook/auth.md", "docs"),
  ]
  const page = { limit: 10, offset: 0 }
  const QUESTIONS: Record<string, (history: HistoryReader) => Promise<unknown>> = {
    "its conversations": (history) => Promise.all(REFS.map((one) => history.conversation(one))),
    "its messages": (history) => Promise.all(REFS.map((one) => history.messages(one))),
    "some messages": (history) => history.messages(ref("first"), [3, 1, 9]),
    "which messages are copies": async (history) =>
      (await Promise.all(REFS.map((one) => history.versions(one)))).map((all) =>
        all.map(({ number, copied }) => [number, copied]),
      ),
    "the feed": async (history) =>
      (await history.changes(undefined, 100)).changes.map((change) => [change.ref, change.deleted]),
    "a prefix": async (history) => byName((await history.resolve({ prefix: "f" })).map((row) => row.ref)),
    "a prefix outside of a project": async (history) => [
      byName((await history.resolve({ prefix: "" }, ["/code/secret"])).map((row) => row.ref)),
      await history.resolve({ prefix: "first" }, ["/code/api"]),
    ],
    "a project's conversations": async (history) =>
      byName(await history.conversationsIn(["/code/secret", "/code/web"])),
    titles: (history) => history.titles([...REFS, ref("nowhere")]),
    lists: (history) =>
      Promise.all([
        history.list(page),
        history.list({ ...page, inside: "/code/secret", kinds: ["person"] }),
        history.list({ ...page, project: "WEB" }),
        history.list({ ...page, among: [ref("first"), ref("sidebar", "codex"), ref("nowhere")] }),
        history.list({ ...page, among: [] }),
        history.list({ ...page, collections: ["handbook"] }),
        history.list({ ...page, collections: ["hand", "handbook", "handbook/"] }),
        history.list({ ...page, collections: [] }),
        history.list({ ...page, from: START + 10 * MINUTE, to: START + 35 * MINUTE, limit: 1 }),
      ]),
    spans: (history) =>
      Promise.all([
        history.spans({}),
        history.spans({ kinds: ["person"], inside: "/code/secret" }),
        history.spans({ among: [ref("first")] }),
      ]),
    files: async (history) => [
      await Promise.all(REFS.map((one) => history.filesOf(one))),
      await history.editedFiles(ref("first"), 5),
      byName(await history.touching("src/auth.ts")),
      byName(await history.touching("/code/api/src")),
      byName(await history.usingModel("OPUS")),
      await history.keptOnlyHere(),
    ],
    "what was done": (history) =>
      Promise.all([
        history.commandsOf(ref("first")),
        history.madeIn(ref("first")),
        history.commits({ limit: 5 }),
        history.work(REFS),
        history.around({ ...ref("first"), number: 2 }, 2, 3),
        history.around({ ...ref("sidebar", "codex"), number: 2 }, 2, 2),
      ]),
    "what there is": (history) =>
      Promise.all([
        history.stats(),
        history.stats(["/code/secret", "/code/api"]),
        history.sourceReport(),
        history.collections(),
        history.documentsIn("handbook"),
        history.projects(),
        history.busiestProjects(2),
        history.busiestProjects(2, ["/code/api"]),
        history.forgotten(),
        history.progress(),
      ]),
    "who goes along": async (history) => byName(await history.withSubagents([ref("fork")])),
    "who goes together": async (history) => byName(await history.family([ref("fork")])),
  }

  test.each(Object.entries(QUESTIONS))("%s", async (_, ask) => {
    const [sqlite, memory] = await both()
    expect(await ask(memory)).toEqual(await ask(sqlite))
  })

  test("an index follows it: new messages are found, and forgotten ones are not", async () => {
    const histories = await both()
    for (const history of histories) {
      const index = await indexOf(history)
      const count = async (words: string) => (await index.count({ match: [{ words }] })).total
      expect(await count("mutex")).toBe(3)
      await history.forget([ref("fork")])
      await history.writeUnit(unit("late", [conversation("late", [textMessage("x1", "a mutex at last", at(60))])]))
      expect(await index.isBehind(history)).toBe(true)
      await index.follow(history)
      expect([await count("mutex"), await count("another"), await index.isBehind(history)]).toEqual([3, 0, false])
      expect(await index.check()).toEqual([])
    }
  })
})

describe("the tools give the same answers with a history in memory as with SQLite", () => {
  const all = { in: "all" as const, by: "conversation" as const, explain: true, limit: 10, offset: 0 }
  const window = { before: 2, after: 2 }
  const CALLS: Record<string, (dex: Dex) => Promise<unknown>> = {
    search: (dex) => search(dex, { ...all, query: "refresh token race" }),
    "search, by message, with filters": (dex) =>
      search(dex, { ...all, by: "message", query: "mutex file:auth.ts -sidebar from:2026-11-01" }),
    "search in documents": (dex) => search(dex, { ...all, in: "docs", collections: ["handbook"], query: "token" }),
    list: (dex) => list(dex, { in: "history", limit: 10, offset: 0 }),
    "list of those that touched a file": (dex) =>
      list(dex, { in: "history", file: "src/auth.ts", limit: 10, offset: 0 }),
    "list of everything": (dex) => list(dex, { in: "history", all: true, limit: 3, offset: 1 }),
    "list of documents": (dex) => list(dex, { in: "docs", limit: 10, offset: 0 }),
    show: (dex) => show(dex, { ids: ["first", "fork"], format: "full" }),
    "show around a message": (dex) =>
      show(dex, { ids: ["claude_code:first#2"], format: "stripped", max_tokens: 2_000 }),
    timeline: (dex) => timeline(dex, { id: "first#2", ...window }),
    "timeline of a project": (dex) => timeline(dex, { id: "first#3", session: "all", ...window }),
  }

  /** The same machine, with another history. */
  const over = (dir: string, history: HistoryReader, index: SearchIndex | undefined): Dex => ({
    ...createDex({ env: { HOME: dir, DEX_HOME: join(dir, ".dex") }, cwd: dir, version: "0" }),
    now: () => START + 90 * MINUTE,
    hasHistory: () => true,
    store: async () => history,
    index: async () => index,
  })

  test.each(Object.entries(CALLS))("%s", async (_, call) => {
    const dir = tempDir()
    const [sqlite, memory] = await both()
    const answer = await call(over(dir, memory, await indexOf(memory)))
    expect(answer).toEqual(await call(over(dir, sqlite, await indexOf(sqlite))))
    expect(JSON.stringify(answer)).toMatch(/first|handbook/)
    expect(JSON.stringify(answer)).not.toContain("secret token")
  })

  test("search without an index reads the history itself", async () => {
    const dir = tempDir()
    const [sqlite, memory] = await both()
    const [one, other] = [over(dir, memory, undefined), over(dir, sqlite, undefined)]
    const found = await search(one, { ...all, query: "mutex" })
    expect(found).toMatchObject({ mode: "scan", total: 3 })
    expect(found).toEqual(await search(other, { ...all, query: "mutex" }))
  })
})
