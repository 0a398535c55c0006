import { expect, test } from "vitest"
import { scopedIndex } from "../../src/store/index/scoped.ts"
import { conversation, said, unit } from "../support/conversations.ts"
import { newHistory } from "../support/indexed.ts"

async function indexed(...ids: string[]) {
  const { store, index } = newHistory()
  const write = async (...written: string[]) => {
    for (const id of written) await store.writeUnit(unit(id, [conversation(id, [said(`${id}1`, `quokka ${id}`)])]))
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
])("who may see $what of an index is answered from that, and from nothing that comes later", async ({ wanted }) => {
  const { index, write, scopeOf } = await indexed("a", "b", "c", "d")
  const scoped = scopedIndex(index, await scopeOf(wanted))
  const found = async () =>
    (await scoped.find({ ...QUOKKA, weights: WEIGHTS, limit: 10 })).map(({ ref }) => ref.id).sort()
  expect(await found()).toEqual(wanted)
  expect(await scoped.count(QUOKKA)).toMatchObject({ total: wanted.length })
  expect(await scoped.countConversations(QUOKKA)).toMatchObject({ total: wanted.length })
  await write("e")
  expect(await found()).toEqual(wanted)
  expect(await scoped.count(QUOKKA)).toMatchObject({ total: wanted.length })
})

test("a scope and the conversations that a question names both hold", async () => {
  const { index, scopeOf } = await indexed("a", "b", "c")
  const scoped = scopedIndex(index, await scopeOf(["a", "b"]))
  const ref = (id: string) => ({ source: "claude_code" as const, id })
  const found = async (filter: object) =>
    (await scoped.find({ ...QUOKKA, ...filter, weights: WEIGHTS, limit: 10 })).map((hit) => hit.ref.id).sort()
  expect(await found({ conversations: [ref("b"), ref("c")] })).toEqual(["b"])
  expect(await found({ conversations: [ref("c")] })).toEqual([])
  expect(await found({ excludedConversations: [ref("a")] })).toEqual(["b"])
})

test("a scope of all is no filter for as long as the index stands where it did", async () => {
  const { write, scopeOf } = await indexed("a", "b")
  const all = await scopeOf(["a", "b"])
  expect(all.others).toEqual([])
  await write("c")
  expect((await scopeOf(["a", "b"])).others).toHaveLength(1)
})
