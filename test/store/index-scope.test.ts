import { describe, expect, test } from "vitest"
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
  const names = new Map((await store.changes(undefined, 100)).changes.map((one) => [one.ref!.id, one.conversation]))
  const scopeOf = (wanted: string[]) => index.scope(new Set(wanted.map((id) => names.get(id)!)))
  return { store, index, write, scopeOf }
}

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

test("a scope of everything is no filter until the index changes", async () => {
  const { write, scopeOf } = await indexed("a", "b")
  const all = await scopeOf(["a", "b"])
  expect(all.others).toEqual([])
  await write("c")
  expect((await scopeOf(["a", "b"])).others).toHaveLength(1)
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

  async function holding(all: Record<string, string[]>, order: (ids: string[]) => string[] = (ids) => ids) {
    const { store, index } = newHistory()
    for (const id of order(Object.keys(all))) {
      const messages = all[id]!.map((text, i) => textMessage(`${id}-${i}`, text))
      await store.writeUnit(unit(id, [conversation(id, messages, { title: { text: `about ${id}`, from: "person" } })]))
    }
    await index.follow(store)
    const names = new Map((await store.changes(undefined, 100)).changes.map((one) => [one.ref!.id, one.conversation]))
    const scope = await index.scope(new Set(Object.keys(texts).map((id) => names.get(id)!)))
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

  test("are those of an index that contains nothing else", async () => {
    const alone = await answersOf((await holding(texts)).index)
    expect(alone.any.length).toBeGreaterThan(20)
    expect(new Set(alone.any.map(({ score }) => score)).size).toBeGreaterThan(10)
    for (const order of [(ids: string[]) => ids, (ids: string[]) => ids.toReversed()])
      expect(await answersOf((await holding({ ...texts, ...hidden }, order)).scoped)).toEqual(alone)
  })

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
