import { describe, expect, test } from "vitest"
import { spokenText } from "../../src/ingest/embed-messages.ts"
import { correctWords } from "../../src/search/forgive.ts"
import { parseQuery } from "../../src/search/query.ts"
import { indexWithout, scopeOf } from "../../src/search/scope.ts"
import { type SearchInput, searchHistory } from "../../src/search/search.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { hashedVector } from "../support/embedding-server.ts"
import { newHistory } from "../support/indexed.ts"

// What a private project contains changes no part of an answer elsewhere.

const SECRET = "/code/secret"
const EMBEDDER = "test:words@1:64:p0"
const START = Date.UTC(2026, 0, 1)
const vectorOf = (text: string) => Float32Array.from(hashedVector(text, 64))

const PUBLIC = Array.from({ length: 40 }, (_, i) => [
  `the ledger and its parser ${i % 7 === 0 ? "marsupial connection" : "connector"}`,
  `line ${i} of the ledger ${"waits ".repeat(i % 9)}`,
])
const HIDDEN = Array.from({ length: 45 }, (_, i) => [
  `${"xylophane connections connecx marsupial ledger wallaby ".repeat(1 + (i % 5))}`,
  `${"long ".repeat(i * 9)} conectx secretly`,
])

/** A history of public conversations, between which these are in a private project. */
async function historyWith(hidden: string[][]) {
  const { store, index } = newHistory()
  const write = (id: string, texts: string[], project: string) => {
    const messages = texts.map((text, i) =>
      textMessage(`${id}-${i}`, text, { at: START + Number(id.slice(1)) * 1_000 }),
    )
    return store.writeUnit(unit(id, [conversation(id, messages, { project })]))
  }
  if (hidden.length > 0) await store.setPrivate(SECRET, true)
  for (let i = 0; i < Math.max(PUBLIC.length, hidden.length); i++) {
    if (hidden[i]) await write(`h${i}`, hidden[i]!, SECRET)
    if (PUBLIC[i]) await write(`p${i}`, PUBLIC[i]!, "/code/open")
  }
  await index.follow(store)
  const vectors = await index.vectors()
  const waiting = vectors.missing(EMBEDDER, 1_000)
  const rows = []
  for (const message of waiting) {
    const [read] = message.number > 0 ? await store.messages(message.ref, [message.number]) : []
    const text = read && spokenText(read.parts)
    rows.push({ messages: [message], windows: text ? [{ message, vector: vectorOf(text) }] : [] })
  }
  vectors.save(EMBEDDER, rows)
  return { store, index, visible: await indexWithout(store, index, hidden.length > 0 ? [SECRET] : []) }
}

const QUERIES = [
  "ledger",
  "marsupial ledger",
  "connection parser marsupial",
  '"the ledger" -connector',
  "xylophane",
  "wallaby line",
]
const input = { by: "conversation", limit: 20, offset: 0 } satisfies Partial<SearchInput>

/** Scores are sums of floating-point numbers, which are compared as closely as the index promises. */
const rounded = (value: unknown) =>
  JSON.parse(JSON.stringify(value, (_, one) => (typeof one === "number" ? Number(one.toPrecision(9)) : one)))

describe("the content of a private project", () => {
  test("changes no score, count or order of a search, and no correction", async () => {
    const answers = async ({ store, index, visible }: Awaited<ReturnType<typeof historyWith>>) => {
      const all: unknown[] = []
      for (const text of QUERIES) {
        const query = parseQuery(text)
        const { hidden_private: _, hits, ...found } = await searchHistory(store, index, { ...input, query })
        all.push({
          text,
          ...found,
          hits: hits.map(({ row, number, parts, snippet }) => [row.ref.id, number, parts, snippet]),
        })
      }
      for (const text of ["xylophane", "connectn", "conec", "conne", "marsupal", "wallaby"])
        all.push(await correctWords({ store, index: visible, hidden: [SECRET], maxMessages: 10 }, parseQuery(text)))
      return rounded(all)
    }
    const alone = await answers(await historyWith([]))
    expect(JSON.stringify(alone)).toContain('"typo"')
    expect(await answers(await historyWith(HIDDEN))).toEqual(alone)
  })

  test("changes no distance between vectors, and no number of them", async () => {
    const answers = async ({ visible }: Awaited<ReturnType<typeof historyWith>>) => {
      const vectors = await visible.vectors()
      const query = vectorOf("the marsupial of the ledger")
      const hits = vectors.scan(EMBEDDER, query, { limit: 20, filter: {} })
      const [{ vectors: made, empty } = {}] = vectors.stats() as { vectors?: number; empty?: number }[]
      const near = hits.map(({ ref, number, score }) => [ref.id, number, score])
      return rounded({ near, made, empty, documents: vectors.documents(), spread: vectors.spread(EMBEDDER, query).of })
    }
    const alone = await answers(await historyWith([]))
    expect(alone).toMatchObject({ made: 80, documents: 80 })
    expect(await answers(await historyWith(HIDDEN))).toEqual(alone)
    const spreads = []
    for (const hidden of [HIDDEN.slice(0, 1), HIDDEN])
      spreads.push((await (await historyWith(hidden)).visible.vectors()).spread(EMBEDDER, vectorOf("a marsupial")))
    expect(spreads[0]).toEqual(spreads[1])
  })

  test("is counted for a person, also by a name that only a private project has", async () => {
    const { store, index } = await historyWith(HIDDEN)
    const hidden = async (more: object, text = "ledger") =>
      (await searchHistory(store, index, { ...input, ...more, query: parseQuery(text) })).hidden_private
    expect(await hidden({})).toBe(45)
    expect(await hidden({ project: "secret" })).toBe(45)
    expect(await hidden({ project: "open" })).toBe(0)
    expect(await hidden({ inside: SECRET })).toBe(0)
    expect(await hidden({ conversation: { source: "claude_code", id: "h3" } })).toBe(1)
    expect((await scopeOf(store, { project: "secret" }))?.filters.projects).toEqual([])
    expect(await scopeOf(store, { project: "nowhere" })).toBeUndefined()
  })

  test("costs nothing if no project is private", async () => {
    const { store, index, visible } = await historyWith([])
    expect(visible).toBe(index)
    expect(await scopeOf(store, { file: "none.ts" })).toBeUndefined()
  })
})
