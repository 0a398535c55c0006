import { expect, test } from "vitest"
import { searchAsYouType, type TypedQuery, type TypedSearchCache } from "../../src/search/typing.ts"
import type { ConversationWrite } from "../../src/store/history/store.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { newHistory } from "../support/indexed.ts"

const DAY = 86_400_000
const START = 1_760_000_000_000

type Talk = { id: string; user: string; agent?: string; more?: Partial<ConversationWrite>; source?: "codex" }

async function world(talks: Talk[]) {
  const { store, index } = newHistory()
  for (const [n, { id, user, agent = "Noted.", more = {}, source }] of talks.entries()) {
    const at = START + n * DAY
    const messages = [
      textMessage(`${id}1`, user, { at }),
      textMessage(`${id}2`, agent, { role: "assistant", at: at + 1 }),
    ]
    await store.writeUnit(unit(id, [conversation(id, messages, more)], { ...(source && { source }) }))
  }
  await index.follow(store)
  const typed = (text: string, more: Partial<TypedQuery> = {}) =>
    searchAsYouType(store, index, { text, limit: 20, ...more })
  const ids = async (text: string, more: Partial<TypedQuery> = {}) =>
    (await typed(text, more)).map(({ ref }) => ref.id).join(" ")
  return { store, index, typed, ids }
}

const TALKS: Talk[] = [
  { id: "old", user: "The configuration is wrong" },
  { id: "agent", user: "Look at this", agent: "Your configuration was responsible" },
  { id: "new", user: "Configured the deploy pipeline" },
  { id: "other", user: "Responsibility of the parser" },
]

test("every beginning of a word finds it: prompts before answers, newest first", async () => {
  const { ids } = await world(TALKS)
  for (const text of ["conf", "config", "Configur", "configura"])
    expect([text, await ids(text)]).toEqual([text, "new old agent"])
  expect(await ids("")).toBe("other new agent old")
  expect(await ids("  ")).toBe("other new agent old")
  expect(await ids("responsib")).toBe("other agent")
  expect(await ids("zzz")).toBe("")
})

test("words before the last one must match completely, and so must the last one after a space", async () => {
  const { ids } = await world(TALKS)
  expect(await ids("deploy conf")).toBe("new")
  expect(await ids("depl conf")).toBe("")
  expect(await ids("depl ")).toBe("")
  expect(await ids("depl")).toBe("new")
})

test("a row shows its origin and the words", async () => {
  const { typed } = await world(TALKS)
  const [row] = await typed("depl")
  expect(row).toEqual({
    ref: { source: "claude_code", id: "new" },
    title: expect.any(String),
    time: new Date(START + 2 * DAY + 1).toISOString(),
    source: "claude_code",
    project: "/code/api",
    snippet: "Configured the **deploy** pipeline",
  })
  expect((await typed(""))[0]).toMatchObject({ snippet: undefined })
})

test("a conversation is one row, however many of its messages match, and there are never more rows than requested", async () => {
  const talks = Array.from({ length: 30 }, (_, n) => ({ id: `c${n}`, user: "wingman here", agent: "wingman there" }))
  const { ids, typed } = await world(talks)
  expect((await ids("wing", { limit: 3 })).split(" ")).toEqual(["c29", "c28", "c27"])
  expect(new Set((await typed("wing", { limit: 100 })).map(({ ref }) => ref.id)).size).toBe(20)
  expect((await typed("wing", { limit: 100 })).length).toBe(20)
})

test("agent, project and time filter it, and subagents and private projects are treated as in a listing", async () => {
  const { store, ids } = await world([
    { id: "a", user: "wingman reviews" },
    { id: "b", user: "wingman reviews", source: "codex" },
    { id: "c", user: "wingman reviews", more: { project: "/code/website", cwds: ["/code/website"] } },
    { id: "d", user: "wingman reviews", more: { kind: "subagent" } },
    { id: "e", user: "wingman zanzibar", more: { project: "/code/secret", cwds: ["/code/secret"] } },
  ])
  await store.setPrivate("/code/secret", true)
  for (const text of ["wing", ""]) {
    expect([text, await ids(text)]).toEqual([text, "c b a"])
    expect([text, await ids(text, { sources: ["codex"] })]).toEqual([text, "b"])
    expect([text, await ids(text, { sources: ["codex", "claude_code"] })]).toEqual([text, "c b a"])
    expect([text, await ids(text, { project: "site" })]).toEqual([text, "c"])
    expect([text, await ids(text, { after: START + DAY })]).toEqual([text, "c b"])
    expect([text, await ids(text, { inside: "/code/secret" })]).toEqual([text, "e c b a"])
  }
  expect(await ids("zanz")).toBe("")
})

test("without an index, titles are searched", async () => {
  const { store } = await world([
    { id: "a", user: "x", more: { title: { text: "Wingman reviews commits", from: "agent" } } },
    { id: "b", user: "y", more: { title: { text: "Other things", from: "agent" } } },
  ])
  const rows = await searchAsYouType(store, undefined, { text: "wing rev", limit: 20 })
  expect(rows.map(({ ref }) => ref.id)).toEqual(["a"])
})

test("a ticket and a hash are found while they are typed", async () => {
  const { ids } = await world([
    { id: "a", user: "ENT-221 breaks the build" },
    { id: "b", user: "ENT-222 is another, at commit 3f9a1c77e2" },
  ])
  expect(await ids("ent-221")).toBe("a")
  expect(await ids("3f9a1c")).toBe("b")
})

test("rows that were read for an earlier key are reused, and forgotten conversations are not shown", async () => {
  const { store, index, ids } = await world(TALKS)
  const read: TypedSearchCache = new Map()
  const rows = await searchAsYouType(store, index, { text: "confi", limit: 20 }, read)
  expect(read.size).toBe(3)
  expect(await searchAsYouType(store, index, { text: "confi", limit: 20 }, read)).toEqual(rows)
  await store.forget([{ source: "claude_code", id: "new" }])
  expect(await ids("confi")).toBe("old agent") // the index is not updated yet
})

test("a snippet of a long text shows the word that is being typed", async () => {
  const filler = "plain talk of nothing ".repeat(1_000)
  const { typed } = await world([{ id: "a", user: `${filler} the wingman is here ${filler}` }])
  expect((await typed("wingm"))[0]!.snippet).toContain("the **wingman** is here")
  expect((await typed("talk wingm"))[0]!.snippet).toContain("**wingman**")
})
