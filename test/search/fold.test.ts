import { expect, test } from "vitest"
import { parseQuery } from "../../src/search/query.ts"
import { type SearchInput, searchHistory } from "../../src/search/search.ts"
import type { ConversationWrite } from "../../src/store/history/store.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { newHistory } from "../support/indexed.ts"

const DAY = 86_400_000
const START = 1_760_000_000_000

type Talk = { id: string; says: string[]; more?: Partial<ConversationWrite> }

const subagentOf = (id: string, more: Partial<ConversationWrite> = {}): Partial<ConversationWrite> => ({
  kind: "subagent",
  parent: { id },
  ...more,
})

async function world(talks: Talk[]) {
  const { store, index } = newHistory()
  for (const [n, { id, says, more = {} }] of talks.entries()) {
    const messages = says.map((text, i) =>
      textMessage(`${id}${i}`, text, { role: i === 0 ? "user" : "assistant", at: START + n * DAY + i }),
    )
    await store.writeUnit(unit(id, [conversation(id, messages, more)]))
  }
  await index.follow(store)
  const ask = (query: string, more: Partial<SearchInput> = {}, withIndex = true) =>
    searchHistory(store, withIndex ? index : undefined, {
      ...{ by: "conversation", limit: 10, offset: 0, prose: true, ...more },
      query: parseQuery(query),
    })
  const rows = async (...asked: Parameters<typeof ask>) =>
    (await ask(...asked)).hits.map(
      ({ row, parent, number }) => `${parent ? `${parent.ref.id} > ` : ""}${row.ref.id}#${number}`,
    )
  return { store, ask, rows }
}

const FAMILY: Talk[] = [
  { id: "main", says: ["Please look into the login", "I will ask someone, maybe about a quokka"] },
  { id: "sub", says: ["Look for causes", "quokka quokka quokka"], more: subagentOf("main") },
  {
    id: "other",
    says: ["Something else", "A quokka was seen once in a long text about many other things and animals"],
  },
]

test("a conversation and its subagents share a row, which shows the better message and its conversation", async () => {
  const { ask, rows } = await world(FAMILY)
  expect(await rows("quokka")).toEqual(["main > sub#2", "other#2"])
  const { hits, skipped, kinds } = await ask("quokka")
  expect(hits[0]).toMatchObject({ more: 1, snippet: expect.stringContaining("**quokka** **quokka**") })
  expect(skipped).toMatchObject([{ ref: { id: "main" }, reason: "folded" }])
  expect(kinds).toEqual({ person: 2, subagent: 1 })
})

test("folding does not change scores and the order of the best", async () => {
  const { ask } = await world(FAMILY)
  const apart = (await ask("quokka", { prose: false })).hits
  const folded = (await ask("quokka")).hits
  expect(apart.map(({ row }) => row.ref.id)).toHaveLength(3)
  for (const { row, score, parts } of folded)
    expect(apart.find((hit) => hit.row.ref.id === row.ref.id)).toMatchObject({ score, parts })
})

test("a subagent alone is shown as its parent, even if another subagent started it", async () => {
  const { rows } = await world([
    { id: "main", says: ["Please look into the login"] },
    { id: "sub", says: ["Look for causes"], more: subagentOf("main") },
    { id: "deep", says: ["Only here: wombat"], more: subagentOf("sub") },
  ])
  expect(await rows("wombat")).toEqual(["main > deep#1"])
})

test("limits and offsets count rows, and folded rows are replaced by the next ones", async () => {
  const { rows } = await world([
    { id: "main", says: ["quokka quokka quokka quokka"] },
    ...["s1", "s2", "s3"].map((id) => ({ id, says: [`quokka quokka quokka ${id}`], more: subagentOf("main") })),
    { id: "b", says: ["quokka quokka and one or two more words"] },
    { id: "c", says: ["quokka once, and then a longer text about other things that are not asked for"] },
  ])
  const all = await rows("quokka")
  expect(all).toHaveLength(3)
  expect(await rows("quokka", { limit: 2 })).toEqual(all.slice(0, 2))
  expect(await rows("quokka", { limit: 1, offset: 1 })).toEqual(all.slice(1, 2))
  expect(await rows("quokka", { limit: 5, offset: 2 })).toEqual(all.slice(2))
})

test("by message there is a row for each message, with the parent of those from subagents", async () => {
  const { rows } = await world(FAMILY)
  expect((await rows("quokka", { by: "message" })).toSorted()).toEqual(["main > sub#2", "main#2", "other#2"])
})

test("without an index the history itself is folded in the same way", async () => {
  const { rows } = await world(FAMILY)
  expect(await rows("quokka", {}, false)).toEqual(["other#2", "main > sub#2"])
  expect(await rows("quokka", { limit: 1, offset: 1 }, false)).toEqual(["main > sub#2"])
})

test("a subagent whose parent is unknown or deleted has a row of its own", async () => {
  const { store, rows } = await world([
    { id: "main", says: ["Nothing"] },
    { id: "sub", says: ["quokka"], more: subagentOf("missing") },
    // A circular chain has no first conversation.
    { id: "a", says: ["wombat"], more: subagentOf("b") },
    { id: "b", says: ["Nothing"], more: subagentOf("a") },
  ])
  expect(await rows("quokka")).toEqual(["sub#1"])
  expect(await rows("wombat")).toEqual(["a#1"])
  await store.forget([{ source: "claude_code", id: "main" }])
  expect(await rows("quokka")).toEqual(["sub#1"])
})

test("a subagent whose parent is excluded by a filter has a row of its own, and a private parent is never named", async () => {
  const talks: Talk[] = [
    { id: "main", says: ["The secret plan"], more: { project: "/secret" } },
    { id: "sub", says: ["quokka"], more: subagentOf("main", { project: "/open" }) },
  ]
  const { store, rows } = await world(talks)
  expect(await rows("quokka")).toEqual(["main > sub#1"])
  expect(await rows("quokka", { project: "open" })).toEqual(["sub#1"])
  expect(await rows("quokka", { from: START + DAY })).toEqual(["sub#1"])
  expect(await rows("quokka", { conversation: { source: "claude_code", id: "sub" } })).toEqual(["sub#1"])
  expect(await rows("quokka", { excludedConversations: [{ source: "claude_code", id: "main" }] })).toEqual(["sub#1"])
  await store.setPrivate("/secret", true)
  // A subagent of a private conversation is private too.
  expect(await rows("quokka")).toEqual([])
  expect(await rows("quokka", {}, false)).toEqual([])
  expect(await rows("quokka", { inside: "/secret" })).toEqual(["main > sub#1"])
})
