import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { parseQuery } from "../../src/search/query.ts"
import { RANK_WEIGHTS } from "../../src/search/rank.ts"
import { searchHistory } from "../../src/search/search.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { openIndex, type SearchIndex } from "../../src/store/index/search-index.ts"
import { searchWithCorrections } from "../../src/tools/search/forgiving.ts"
import { conversation, textMessage, unit } from "../../test/support/conversations.ts"
import { tempDir } from "../../test/support/temp.ts"
import { mergedIndex, ShardUnavailableError } from "../src/shards/merged.ts"

const LONG_MS = 60_000
const SHORT_MS = 200

/** An index of these conversations, and a history of all conversations. */
async function indexes(...shards: Record<string, string[]>[]): Promise<{ parts: SearchIndex[]; all: HistoryReader }> {
  const all = openStore(join(tempDir(), "history.db"))
  onTestFinished(() => all.close())
  const parts: SearchIndex[] = []
  for (const shard of shards) {
    const own = openStore(join(tempDir(), "history.db"))
    for (const [id, texts] of Object.entries(shard)) {
      const messages = texts.map((text, i) => textMessage(`${id}${i}`, text))
      await own.writeUnit(unit(id, [conversation(id, messages)]))
      await all.writeUnit(unit(id, [conversation(id, messages)]))
    }
    const index = openIndex(join(tempDir(), "index.db"))
    await index.follow(own)
    own.close()
    onTestFinished(() => index.close())
    parts.push(index)
  }
  return { parts, all }
}

const merge = (parts: (SearchIndex | undefined)[], callMs: number) =>
  mergedIndex(
    parts.map((index) => ({ index, isNamed: true })),
    { callMs, until: Date.now() + LONG_MS },
  )

const question = (text: string) => ({ query: parseQuery(text), by: "conversation" as const, limit: 10, offset: 0 })

test("documents of several indexes are kept separate, and each index is asked about its own", async () => {
  const { parts } = await indexes(
    { a: ["a quokka sleeps", "a wombat digs"], b: ["a quokka digs"] },
    { c: ["a quokka and a wombat"] },
  )
  const index = merge(parts, LONG_MS)
  const hits = await index.find({ match: [{ words: "quokka" }], weights: RANK_WEIGHTS.columns, limit: 10 })
  expect(hits.map(({ ref }) => ref.id).sort()).toEqual(["a", "b", "c"])
  expect(new Set(hits.map(({ doc }) => doc)).size).toBe(3)
  const docs = hits.map(({ doc }) => doc)
  const holding = async (words: string) => {
    const found = await index.containing({ words }, docs)
    return hits.filter(({ doc }) => found.has(doc)).map(({ ref }) => ref.id)
  }
  expect(await holding("wombat")).toEqual(["c"])
  expect((await holding("digs")).sort()).toEqual(["b"])
  const { messages, shares } = await index.sizes([{ words: "quokka" }, { words: "sleeps" }])
  const one = await Promise.all(parts.map((part) => part.sizes([])))
  expect(messages).toBe(one[0]!.messages + one[1]!.messages)
  expect(shares.map((share) => Math.round(share * messages))).toEqual([3, 1])
  expect((await index.words("wom")).map(({ word }) => word)).toEqual(["wombat"])
})

test("a shard that does not answer in time is left out, is not asked again, and the answer says so", async () => {
  const { parts, all } = await indexes({ a: ["a quokka sleeps"] }, { b: ["another quokka sleeps"] })
  let calls = 0
  const silent: SearchIndex = {
    ...parts[1]!,
    find: () => {
      calls++
      return new Promise(() => {})
    },
  }
  const complete = await searchHistory(all, merge(parts, LONG_MS), question("quokka sleeps"))
  expect(complete).toMatchObject({ hits: { length: 2 }, total: 2 })
  expect(complete.shards).toBeUndefined()
  const part = await searchHistory(all, merge([parts[0], silent], SHORT_MS), question("quokka sleeps"))
  expect(part).toMatchObject({ hits: [{ row: { ref: { id: "a" } } }], total: 1, shards: { searched: 1, of: 2 } })
  expect(calls).toBe(1)
  const none = await searchHistory(all, merge([undefined, silent], SHORT_MS), question("quokka sleeps"))
  expect(none).toMatchObject({ hits: [], total: 0, shards: { searched: 0, of: 2 } })
})

test("a shard that falls silent during a search for a mistyped word is reported too", async () => {
  const { parts, all } = await indexes({ a: ["a quokka"] }, { b: ["a wombat digs"] })
  const gone = () => Promise.reject(new ShardUnavailableError())
  const dying: SearchIndex = { ...parts[1]!, words: gone, wordsOfLength: gone }
  const { found } = await searchWithCorrections(all, merge([parts[0], dying], LONG_MS), question("wombta"))
  expect(found).toMatchObject({ hits: [], shards: { searched: 1, of: 2 } })
})

test("after the time limit of a question, no shard is asked any more", async () => {
  const { parts } = await indexes({ a: ["a quokka"] }, { b: ["a quokka"] })
  const shards = parts.map((index) => ({ index, isNamed: true }))
  const index = mergedIndex(shards, { callMs: LONG_MS, until: Date.now() - 1 })
  expect(await index.count({ match: [{ words: "quokka" }] })).toMatchObject({ total: 0 })
  expect(index.shards!()).toEqual({ searched: 0, of: 2 })
})

test("failures other than silence are not hidden", async () => {
  const { parts } = await indexes({ a: ["a quokka"] }, { b: ["a quokka"] })
  const broken: SearchIndex = { ...parts[1]!, count: () => Promise.reject(new Error("a mistake of ours")) }
  await expect(merge([parts[0], broken], LONG_MS).count({ match: [{ words: "quokka" }] })).rejects.toThrow("a mistake")
})
