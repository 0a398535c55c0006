import { describe, expect, test } from "vitest"
import type { ConversationAccess, HistoryReader } from "../../src/store/history/store.ts"
import { scopedIndex } from "../../src/store/index/scoped.ts"
import type { SearchIndex } from "../../src/store/index/search-index.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { newHistory } from "../support/indexed.ts"

async function indexed(...ids: string[]) {
  const { store, index } = newHistory()
  const write = async (...written: string[]) => {
    for (const id of written)
      await store.writeUnit(unit(id, [conversation(id, [textMessage(`${id}1`, `quokka ${id}`)])]))
    await index.follow(store)
  }
  await write(...ids)
  /** The scope of a laptop: all conversations but private ones. */
  const scopeOf = (wanted: string[]) =>
    index.scopeWithout(ids.filter((id) => !wanted.includes(id)).map((id) => ({ source: "claude_code", id })))
  return { store, index, write, scopeOf }
}

/** A team's history: whoever `mayRead` is the author of a conversation. */
function asTeam(store: HistoryReader, mayRead: (id: string) => boolean): HistoryReader {
  return {
    ...store,
    conversation: async (ref) => {
      const row = await store.conversation(ref)
      return row && { ...row, access: { author: mayRead(ref.id) ? ME : 2, project: 1, visibility: "private" } }
    },
  }
}

const ME = 1
const MINE = { author: ME, org: true, projects: [], opened: [], withdrawn: [] }

const QUOKKA = { match: [{ words: "quokka" }] }
const WEIGHTS = { returned: 1, said: 1, called: 1, aside: 1, hidden: 1 }

test.each([
  { what: "all of it", wanted: ["a", "b", "c", "d"] },
  { what: "all but one", wanted: ["a", "b", "d"] },
  { what: "one", wanted: ["c"] },
  { what: "nothing", wanted: [] },
])("a user who may see $what of an index gets answers from that only, even after more is added", async ({ wanted }) => {
  const { index, write, scopeOf } = await indexed("a", "b", "c", "d")
  const scoped = scopedIndex(index, await scopeOf(wanted))
  const found = async () =>
    (await scoped.find({ ...QUOKKA, weights: WEIGHTS, limit: 10 })).map(({ ref }) => ref.id).sort()
  expect(await found()).toEqual(wanted)
  expect(await scoped.count(QUOKKA)).toMatchObject({ total: wanted.length })
  expect(await scoped.countConversations(QUOKKA)).toMatchObject({
    total: wanted.length,
    kinds: wanted.length > 0 ? { person: wanted.length } : {},
  })
  await write("e")
  expect(await found()).toEqual(wanted)
  expect(await scoped.count(QUOKKA)).toMatchObject({ total: wanted.length })
})

test("a scope and the conversations in a query both apply", async () => {
  const { index, scopeOf } = await indexed("a", "b", "c")
  const scoped = scopedIndex(index, await scopeOf(["a", "b"]))
  const ref = (id: string) => ({ source: "claude_code" as const, id })
  const found = async (filter: object) =>
    (await scoped.find({ ...QUOKKA, ...filter, weights: WEIGHTS, limit: 10 })).map((hit) => hit.ref.id).sort()
  expect(await found({ conversations: [ref("b"), ref("c")] })).toEqual(["b"])
  expect(await found({ conversations: [ref("c")] })).toEqual([])
  expect(await found({ excludedConversations: [ref("a")] })).toEqual(["b"])
})

test("a member who may read everything queries without a filter, until the index changes", async () => {
  const { store, index } = newHistory()
  let isMine = true
  const team = asTeam(store, () => isMine)
  const write = async (id: string) => {
    await store.writeUnit(unit(id, [conversation(id, [textMessage(`${id}1`, `quokka ${id}`)])]))
    await index.follow(team)
  }
  await write("a")
  const all = await index.scopeOf(MINE)
  expect(all.completeAt).toBeDefined()
  const scoped = scopedIndex(index, all)
  expect(await scoped.count(QUOKKA)).toMatchObject({ total: 1 })
  isMine = false
  await write("b")
  expect(await scoped.count(QUOKKA)).toMatchObject({ total: 1 })
  expect((await index.scopeOf(MINE)).completeAt).toBeUndefined()
})

test("members who take turns each get their scope again, until the index changes", async () => {
  const { store, index } = newHistory()
  const write = async (id: string) => {
    await store.writeUnit(unit(id, [conversation(id, [textMessage(`${id}1`, "quokka")])]))
    await index.follow(asTeam(store, () => false))
  }
  await write("a")
  const [mine, yours] = [await index.scopeOf(MINE), await index.scopeOf({ ...MINE, author: 9 })]
  expect(await index.scopeOf(MINE)).toBe(mine)
  expect(await index.scopeOf({ ...MINE, author: 9 })).toBe(yours)
  await write("b")
  expect(await index.scopeOf(MINE)).not.toBe(mine)
})

test("who may read a conversation follows every change, and so do the sums", async () => {
  const { store, index } = newHistory()
  let access: ConversationAccess = { author: ME, project: 1, visibility: "private" }
  const team: HistoryReader = {
    ...store,
    conversation: async (ref) => {
      const row = await store.conversation(ref)
      return row && { ...row, access }
    },
  }
  const write = async (...texts: string[]) => {
    const messages = texts.map((text, i) => textMessage(`a${i}`, text))
    await store.writeUnit(unit("a", [conversation("a", messages)]))
    await index.follow(team)
  }
  const seenBy = async (member: object) => {
    const scoped = scopedIndex(index, await index.scopeOf({ ...MINE, author: 9, org: false, ...member }))
    const { messages } = await scoped.sizes([{ words: "quokka" }])
    return [messages, (await scoped.count(QUOKKA)).total]
  }
  await write("quokka")
  expect([await seenBy({ author: ME }), await seenBy({ projects: [1] })]).toEqual([
    [1, 1],
    [0, 0],
  ])
  access = { author: ME, project: 1, visibility: "project" }
  await write("quokka", "a second quokka")
  expect([await seenBy({ projects: [1] }), await seenBy({ org: true })]).toEqual([
    [2, 2],
    [0, 0],
  ])
  access = { author: ME, project: 2, visibility: "org" }
  await write("quokka", "a second quokka", "third quokka")
  expect([await seenBy({ org: true }), await seenBy({ projects: [2] }), await seenBy({ projects: [1] })]).toEqual([
    [3, 3],
    [3, 3],
    [0, 0],
  ])
  const { changes } = await store.changes(undefined, 10)
  expect(await seenBy({ org: true, withdrawn: changes.map((one) => one.conversation) })).toEqual([0, 0])
  expect(await seenBy({ opened: changes.map((one) => one.conversation) })).toEqual([3, 3])
  await store.forget([{ source: "claude_code", id: "a" }])
  await index.follow(team)
  expect(await seenBy({ author: ME, org: true, projects: [1, 2] })).toEqual([0, 0])
})

describe("the scores and counts of a user who may see a part", () => {
  const ENDINGS = ["", " wombat", " wombat quokka", ` ${"long ".repeat(40)}`]
  const texts = Object.fromEntries(
    Array.from({ length: 12 }, (_, i) => [
      `v${i}`,
      [`quokka ${i}${ENDINGS[i % 4]}`, `${"kiwi ".repeat(i)}wombat ${i}`],
    ]),
  )
  const hidden = Object.fromEntries(
    Array.from({ length: 9 }, (_, i) => [`h${i}`, [`wombat ${"wombat kiwi ".repeat(i * 20)}`, "quokka"]]),
  )

  async function holding(
    all: Record<string, string[]>,
    order: (ids: string[]) => string[] = (ids) => ids,
    viewer: "a member of a team" | "a laptop's user" = "a member of a team",
  ) {
    const { store, index } = newHistory()
    for (const id of order(Object.keys(all))) {
      const messages = all[id]!.map((text, i) => textMessage(`${id}-${i}`, text))
      await store.writeUnit(unit(id, [conversation(id, messages, { title: { text: `about ${id}`, from: "person" } })]))
    }
    await index.follow(asTeam(store, (id) => id in texts))
    const others = Object.keys(all).filter((id) => !(id in texts))
    const scope =
      viewer === "a member of a team"
        ? await index.scopeOf(MINE)
        : await index.scopeWithout(others.map((id) => ({ source: "claude_code", id })))
    return { index, scoped: scopedIndex(index, scope) }
  }

  const TERMS = [
    { words: "quokka" },
    { words: "wombat" },
    { words: "kiwi" },
    { words: "absent" },
    { words: "wom", prefix: true as const },
  ]
  const answersOf = async (index: SearchIndex) => {
    const find = async (query: object) =>
      (await index.find({ match: TERMS, weights: WEIGHTS, limit: 50, ...query })).map(({ ref, number, score }) => ({
        ...{ id: ref.id, number },
        score: Number(score.toPrecision(9)),
      }))
    return {
      sizes: await index.sizes(TERMS),
      any: await find({}),
      both: await find({ match: TERMS.slice(0, 1), required: TERMS.slice(1, 2) }),
      without: await find({ excluded: TERMS.slice(2, 3), roles: ["user"] }),
      phrase: await find({ match: [{ words: "wombat quokka" }] }),
      one: await find({ conversations: [{ source: "claude_code", id: "v3" }] }),
      few: (await find({ limit: 3 })).length,
    }
  }

  test.each(["a member of a team", "a laptop's user"] as const)(
    "are those of an index that contains nothing else, for %s",
    async (viewer) => {
      const alone = await answersOf((await holding(texts)).index)
      expect(alone.any.length).toBeGreaterThan(20)
      expect(new Set(alone.any.map(({ score }) => score)).size).toBeGreaterThan(10)
      for (const order of [(ids: string[]) => ids, (ids: string[]) => ids.toReversed()])
        expect(await answersOf((await holding({ ...texts, ...hidden }, order, viewer)).scoped)).toEqual(alone)
    },
  )

  test("stay the same if only the newest messages are searched", async () => {
    const newest = async (index: SearchIndex) =>
      (await index.find({ match: TERMS, weights: WEIGHTS, limit: 50, newest: 9 }))
        .map(({ ref, number }) => `${ref.id}#${number}`)
        .sort()
    const alone = await newest((await holding(texts)).index)
    expect(alone.length).toBeLessThan(9)
    expect(await newest((await holding({ ...texts, ...hidden })).scoped)).toEqual(alone)
  })
})
