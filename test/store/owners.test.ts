import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { runTool } from "../../src/app/run.ts"
import { formatRef, parseCompleteRef, parseRef, type Ref, refFrom, sourceWithOwner } from "../../src/core/ref.ts"
import { learn } from "../../src/learn/learn.ts"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"
import { runCall } from "../../src/serve/mcp/run-call.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import type { Dex } from "../../src/tools/context.ts"
import { list } from "../../src/tools/list/list.ts"
import { search } from "../../src/tools/search/search.ts"
import { timeline } from "../../src/tools/show/forms.ts"
import { show } from "../../src/tools/show/show.ts"
import { forgetTraces } from "../../src/trace/forget.ts"
import { readTraces } from "../../src/trace/read.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { memoryHistory } from "../support/memory-history.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"

// Several people's conversations in one history, two of them with the same id: as on a team's server.

const START = Date.UTC(2026, 10, 3)
const ALICE = "alice/claude_code:same"
const BOB = "bob/claude_code:same"

describe("a ref with an owner", () => {
  const REFS: [string, Ref][] = [
    [ALICE, { owner: "alice", source: "claude_code", id: "same" }],
    ["a.b-c_9/pi:x#12", { owner: "a.b-c_9", source: "pi", id: "x", number: 12 }],
    ["alice/docs:react/a b#c.md§Rules", { owner: "alice", source: "docs", id: "react/a b#c.md", section: "Rules" }],
    ["docs:react/hooks.md", { source: "docs", id: "react/hooks.md" }],
  ]
  test.each(REFS)("%s is read as it is written", (text, ref) => {
    expect(formatRef(ref)).toBe(text)
    expect(parseCompleteRef(text)).toEqual(ref)
    expect(refFrom(sourceWithOwner(ref), ref.id)).toEqual({ ...ref, number: undefined, section: undefined })
  })

  test("a path is not taken for a conversation with an owner", () => {
    expect(parseRef("alice/1f3c")).toEqual({ prefix: "alice/1f3c" })
    expect(parseRef("docs:alice/pi:x")).toEqual({ source: "docs", prefix: "alice/pi:x" })
    expect(parseRef("/code/pi:x")?.owner).toBeUndefined()
  })
})

test("on a laptop there are no owners", async () => {
  const history = openStore(join(tempDir(), "history.db"))
  await history.writeUnit(unit("one", [conversation("same", [textMessage("k1", "the marmalade race", { at: START })])]))
  const [own, other] = [refFrom("claude_code", "same"), refFrom("alice/claude_code", "same")]
  expect(await history.resolve(parseRef("claude_code:sa")!)).toHaveLength(1)
  expect(await history.resolve(parseRef("alice/claude_code:sa")!)).toEqual([])
  expect(await history.conversation(other)).toBeUndefined()
  expect([(await history.messages(own)).length, (await history.messages(other)).length]).toEqual([1, 0])
  expect(await history.around({ ...other, number: 1 }, 1, 1)).toEqual([])
  history.close()
})

describe("two people's conversations with one id", () => {
  const dir = sharedTempDir()
  let dex: Dex

  beforeAll(async () => {
    const history = memoryHistory("team", ({ key }) => key.split("/")[0])
    const race = (name: string, minute: number) => [
      textMessage("k1", `why does the marmalade race, asks ${name}`, { at: START + minute * 60_000 }),
      textMessage("k2", `because ${name} holds no mutex`, { at: START + (minute + 1) * 60_000, role: "assistant" }),
    ]
    const helper = { kind: "subagent" as const, parent: { id: "same" } }
    const help = conversation(
      "helper",
      [textMessage("h1", "looked for marmalade", { at: START, role: "assistant" })],
      helper,
    )
    await history.writeUnit(unit("alice/one", [conversation("same", race("alice", 1)), help]))
    await history.writeUnit(unit("bob/one", [conversation("same", race("bob", 5))]))
    const index = openIndex(join(dir, "index.db"))
    await index.follow(history)
    dex = {
      ...createDex({ env: { HOME: dir, DEX_HOME: join(dir, ".dex") }, cwd: dir, version: "0" }),
      now: () => START + 3_600_000,
      isTeam: true,
      hasHistory: () => true,
      store: async () => history,
      index: async () => index,
    }
  })

  const answer = async (tool: object, input: object) => {
    const { output, record } = await runTool(tool as never, dex, input)
    await record()
    return JSON.stringify(output)
  }
  const all = { in: "all", by: "conversation", explain: false, limit: 10, offset: 0 }

  test("are found separately, each by its own words", async () => {
    const both = await answer(search, { ...all, query: "marmalade race" })
    expect(both).toContain(`"id":"${ALICE}"`)
    expect(both).toContain(`"id":"${BOB}"`)
    const one = await answer(search, { ...all, query: "bob mutex", session: BOB })
    expect(one).toContain(BOB)
    expect(one).not.toContain("alice")
  })

  test("are listed, shown and sorted by their full names", async () => {
    const rows = await answer(list, { in: "history", limit: 10, offset: 0, all: true })
    for (const name of [ALICE, BOB, "alice/claude_code:helper"]) expect(rows).toContain(name)
    const shown = await answer(show, { ids: [`${BOB}#2`], format: "full" })
    expect(shown).toContain("because bob holds no mutex")
    expect(shown).not.toContain("alice")
    expect(await answer(show, { ids: ["alice/claude_code:helper"], format: "full" })).toContain(`"parent":"${ALICE}"`)
    const around = await answer(timeline, { id: `${ALICE}#1`, session: ALICE, before: 2, after: 2 })
    expect(around).toContain("asks alice")
    expect(around).not.toContain("bob")
  })

  test("an ambiguous name is not guessed", async () => {
    await expect(answer(show, { ids: ["claude_code:same"], format: "full" })).rejects.toThrow(
      `matches several conversations: ${ALICE}, ${BOB}`,
    )
  })

  test("agents get their full names and can use them in queries", async () => {
    const fresh = {
      readNewMessages: async () => {},
      learn: async () => [],
      asOf: () => undefined,
      stop: async () => true,
    }
    const parts = { version: "0", use: <T>(work: (dex: Dex) => Promise<T>) => work(dex), fresh, log: () => {} }
    const call = (name: string, input: Record<string, unknown>) =>
      runCall(
        offeredTools.find(({ mcp }) => mcp.name === name)!,
        input,
        { signal: new AbortController().signal },
        parts,
      )
    expect((await call("dex_search", { query: "marmalade race" }))?.text).toContain(`${ALICE}#1`)
    expect((await call("dex_get", { ids: [`${ALICE}#2`] }))?.text).toContain("because alice holds no mutex")
  })

  test("traces use their full names, and forgetting one deletes only its own", async () => {
    await answer(search, { ...all, query: "alice mutex", session: ALICE })
    await answer(search, { ...all, query: "bob mutex", session: BOB })
    const named = () => readTraces(dex.home.traces, { tail: 100 }).traces.map((trace) => JSON.stringify(trace))
    expect(named().some((line) => line.includes(`${ALICE}#`) && !line.includes("bob"))).toBe(true)
    forgetTraces(dex.home.traces, [refFrom("alice/claude_code", "same")])
    expect(named().filter((line) => line.includes(ALICE))).toEqual([])
    expect(named().some((line) => line.includes(BOB))).toBe(true)
  })

  test("facts learned from each are kept separate", async () => {
    const knowledge = openKnowledge(join(tempDir(), "knowledge.db"))
    await learn(await dex.store(), knowledge)
    expect(knowledge.conversations.feedNameOf(refFrom("alice/claude_code", "same"))).toBeDefined()
    expect(knowledge.conversations.feedNameOf(refFrom("bob/claude_code", "same"))).toBeDefined()
    expect(knowledge.conversations.feedNameOf(refFrom("claude_code", "same"))).toBeUndefined()
    knowledge.close()
  })
})
