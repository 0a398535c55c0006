import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, onTestFinished, test } from "vitest"
import { type Part, ROLES, type Role } from "../../src/core/conversation.ts"
import { formatRef } from "../../src/core/ref.ts"
import { addsUp } from "../../src/core/trace.ts"
import { groupsToEmbed, spokenText } from "../../src/ingest/embed-messages.ts"
import { fuseRankings, scoreByDistance, scoreByRank } from "../../src/search/fuse.ts"
import { parseQuery } from "../../src/search/query.ts"
import { rank } from "../../src/search/rank.ts"
import { type Filters, scopeOf } from "../../src/search/scope.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { ConversationWrite, MessageWrite } from "../../src/store/history/store.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import type { Term } from "../../src/store/index/terms.ts"
import type { UnembeddedMessage, VectorFilter } from "../../src/store/index/vector-index.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { hashedVector } from "../support/embedding-server.ts"
import { tempDir } from "../support/temp.ts"

const EMBEDDER = "test:words@1:64:p0"
const DAY = 86_400_000
const START = Date.UTC(2026, 0, 1)

const vectorOf = (text: string) => Float32Array.from(hashedVector(text, 64))

async function history(conversations: ConversationWrite[], source: "claude_code" | "codex" = "claude_code") {
  const dir = tempDir()
  const store = openStore(join(dir, "history.db"))
  const index = openIndex(join(dir, "index.db"))
  onTestFinished(() => {
    store.close()
    index.close()
  })
  for (const one of conversations) await store.writeUnit(unit(`${one.id}.jsonl`, [one], { source }))
  await index.follow(store)
  const vectors = await index.vectors()
  const embed = async () => {
    const waiting = vectors.missing(EMBEDDER, 1_000_000)
    const texts = new Map<string, Map<number, string>>()
    for (const { ref } of waiting) {
      const name = formatRef(ref)
      if (texts.has(name)) continue
      const messages = await store.messages(ref)
      texts.set(name, new Map(messages.map((message) => [message.number, spokenText(message.parts) ?? ""])))
    }
    return vectors.save(
      EMBEDDER,
      waiting.map((message) => {
        const text = texts.get(formatRef(message.ref))!.get(message.number)
        return { messages: [message], windows: text ? [{ message, vector: vectorOf(text) }] : [] }
      }),
    )
  }
  await embed()
  return { dir, store, index, vectors, embed }
}

describe("fusion", () => {
  const some = (i: number) => textMessage(`m${i}`, `refresh token number ${i} of the auth service`, { at: START + i })
  const ready = () =>
    history([
      conversation("a", [some(1), some(2), textMessage("x1", "something else entirely")]),
      conversation("b", [
        textMessage("b1", "token rotation in the auth service"),
        textMessage("b2", "the sidebar flickers"),
      ]),
      conversation("c", [textMessage("c1", "rotate credentials of the login service")]),
    ])
  const near = (vectors: Awaited<ReturnType<typeof history>>["vectors"], text: string, from = -1) => ({
    hits: vectors.scan(EMBEDDER, vectorOf(text), { limit: 100, filter: {} }),
    minCosine: from,
    scoreOf: scoreByRank,
  })

  test("the parts of every score add up to it, and both lists are named", async () => {
    const { index, vectors } = await ready()
    const fused = fuseRankings(
      await rank(index, parseQuery("refresh token"), {}),
      near(vectors, "rotate credentials of the login service"),
    )
    expect(fused.messages.length).toBeGreaterThan(4)
    for (const { score, parts } of [...fused.messages, ...fused.conversations])
      expect(addsUp({ score_final: score, terms: parts })).toBe(true)
    const sources = new Map(fused.conversations.map((one) => [one.ref.id, one.rank_source]))
    expect(Object.fromEntries(sources)).toEqual({ a: "both", b: "both", c: "vector" })
  })

  test("if nothing is near, the order is that of the words alone", async () => {
    const { index } = await ready()
    const lexical = await rank(index, parseQuery("refresh token service"), {})
    const fused = fuseRankings(lexical, { hits: [], minCosine: 0, scoreOf: scoreByRank })
    expect(fused.conversations.map((one) => one.ref.id)).toEqual(lexical.conversations.map((one) => one.ref.id))
    expect(fused.messages.map((one) => one.number)).toEqual(lexical.messages.map((one) => one.number))
  })

  test("messages that are not near change the order of what words found, and add nothing", async () => {
    const { index, vectors } = await ready()
    const lexical = await rank(index, parseQuery("refresh token"), {})
    const fused = fuseRankings(lexical, near(vectors, "rotate credentials of the login service", 2))
    expect(fused.conversations.map((one) => [one.ref.id, one.rank_source])).toEqual([
      ["a", "both"],
      ["b", "both"],
    ])
    expect(fused.messages).toHaveLength(lexical.messages.length)
    expect(fused.messages.some((one) => one.parts.some((part) => part.name === "vector"))).toBe(true)
  })

  test("by distance, only messages that stand out gain, more if they stand out more, and far more if words found little", () => {
    const spread = { centre: 0.1, deviation: 0.05 }
    const [covered, hardlyCovered] = [true, false].map((isCovered) => scoreByDistance(spread, isCovered))
    expect([0.05, 0.17].map((cosine) => covered!(cosine, 0))).toEqual([0, 0])
    expect(covered!(0.2, 7)).toBeCloseTo(0.075)
    expect(covered!(0.3, 7)).toBeCloseTo(0.375)
    expect(hardlyCovered!(0.3, 7)).toBeCloseTo(1.5)
  })

  test("a conversation gains by its nearest message only, and shows it if that counts more than the words", async () => {
    const { index, vectors } = await history([
      conversation("words", [textMessage("w1", "token token token")]),
      conversation("long", [
        textMessage("l1", "token of the login page"),
        ...[1, 2, 3, 4].map((i) => textMessage(`l${i + 1}`, `customers signed out ${"again ".repeat(i)}`)),
      ]),
      conversation("near", [textMessage("n1", "customers signed out")]),
    ])
    const lexical = await rank(index, parseQuery("token"), {})
    const nearest = {
      ...near(vectors, "customers signed out", 0.3),
      scoreOf: scoreByDistance({ centre: 0, deviation: 0.2 }, false),
      messageScoreOf: scoreByDistance({ centre: 0, deviation: 0.2 }, true),
    }
    const { conversations, messages } = fuseRankings(lexical, nearest)
    const row = (id: string) => conversations.find(({ ref }) => ref.id === id)!
    expect(conversations.map(({ score }) => score)).toEqual(
      conversations.map(({ score }) => score).toSorted((a, b) => b - a),
    )
    for (const { score, parts } of [...conversations, ...messages])
      expect(addsUp({ score_final: score, terms: parts })).toBe(true)
    expect(row("long").parts.filter(({ name }) => name === "vector")).toHaveLength(1)
    expect(row("long")).toMatchObject({ rank_source: "both", best: { number: 2 } })
    expect(row("long").others.map(({ number }) => number)).toContain(1)
    expect(row("near")).toMatchObject({ rank_source: "vector", best: { number: 1 } })
    expect(row("words")).toMatchObject({ rank_source: "lexical", best: { number: 1 } })
    const asMessage = messages.find(({ ref }) => ref.id === "near")!
    expect(row("near").score / asMessage.score).toBeCloseTo(4)
    const unrelated = fuseRankings(lexical, { ...nearest, minCosine: 2 }).conversations
    expect(unrelated.map(({ ref }) => ref.id).toSorted()).toEqual(["long", "words"])
  })

  test("equal rows are ordered by time, newest first, then by name: two indexes give the same", async () => {
    const twins = ["d", "b", "a", "c"].map((id) =>
      conversation(id, [textMessage(`${id}1`, "exactly the same words", { at: id === "c" ? START + DAY : START })]),
    )
    const order = async (conversations: ConversationWrite[]) => {
      const { index, vectors } = await history(conversations)
      const fused = fuseRankings(await rank(index, parseQuery("same words"), {}), near(vectors, "same words"))
      return fused.conversations.map((one) => one.ref.id)
    }
    expect(await order(twins)).toEqual(["c", "a", "b", "d"])
    expect(await order(twins.toReversed())).toEqual(["c", "a", "b", "d"])
  })
})

describe("embedded text", () => {
  const part = (more: Partial<Part>): Part => ({ type: "text", text: "", origin: "person", ...more }) as Part
  const spoken = (number: number, text: string, origin: Part["origin"] = "agent") => ({
    number,
    parts: [part({ text, origin })],
  })
  const words = (word: string, count: number) => Array.from({ length: count }, () => word).join(" ")
  const textsOf = (messages: Parameters<typeof groupsToEmbed>[0]) =>
    groupsToEmbed(messages).map(({ numbers, windows }) => [numbers, windows.map(({ text }) => text)])

  test("is what people and agents said: no calls, tool output, injected text or thinking", () => {
    expect(spokenText([part({ text: "why?" })])).toBe("why?")
    const silent: Part[] = [
      { type: "tool_call", origin: "agent", tool: "Bash", text: "npm test" },
      { type: "tool_result", text: "FAIL", origin: "local_tool", is_error: true },
      { type: "text", text: "a reminder", origin: "injected" },
      { type: "thinking", text: "hm", origin: "agent" },
      { type: "text", text: " … \n", origin: "agent" },
    ]
    expect(spokenText(silent)).toBe(undefined)
    expect(spokenText([...silent, part({ text: `${"a".repeat(19_990)}😀 more` })])!.length).toBeLessThan(20_001)
    expect(groupsToEmbed([{ number: 4, parts: silent }])).toEqual([{ numbers: [4], windows: [] }])
  })

  test("goes from one prompt to the next, over calls, in windows of 90 words", () => {
    const call: Part = { type: "tool_call", origin: "agent", tool: "Bash", text: "npm test" }
    const messages = [
      spoken(1, "fix it", "person"),
      spoken(2, "Looking."),
      { number: 3, parts: [call] },
      spoken(4, words("done", 100)),
      spoken(5, "thanks", "person"),
    ]
    expect(textsOf(messages)).toEqual([
      [[3], []],
      [
        [1, 2, 4],
        [`fix it Looking. ${words("done", 87)}`, words("done", 13)],
      ],
      [[5], ["thanks"]],
    ])
    expect(groupsToEmbed(messages)[1]!.windows.map(({ number }) => number)).toEqual([4, 4])
  })

  test("a new message changes only the last group, however long the agent works alone", () => {
    const messages = Array.from({ length: 60 }, (_, i) => spoken(i + 1, words(`w${i}`, 40)))
    const [before, after] = [messages.slice(0, 59), messages].map(groupsToEmbed)
    expect(before!.length).toBeGreaterThan(2)
    expect(after!.slice(0, before!.length - 1)).toEqual(before!.slice(0, -1))
  })

  test("every section of a document is a group of its own, and text without spaces is cut", () => {
    const sections = [spoken(1, "one", "document"), spoken(2, "two", "document")]
    expect(textsOf(sections)).toEqual([
      [[1], ["one"]],
      [[2], ["two"]],
    ])
    const [group] = groupsToEmbed([spoken(1, "x".repeat(5_000))])
    expect(group!.windows.map(({ text }) => text.length)).toEqual([2_000, 2_000, 1_000])
  })
})

describe("filters apply to vectors", () => {
  const PROJECTS = ["/code/api", "/code/web", "/code/secret"]
  const WORDS = ["refresh", "token", "sidebar", "theme", "invoice", "backup"]
  const TOOLS = ["Bash", "Edit"]
  const message = (key: string, i: number): MessageWrite => {
    const role = ROLES[i % 3] as Role
    const text = `${WORDS[i % 6]} ${WORDS[(i * 7 + 1) % 6]} remark ${key}`
    const parts: Part[] = [{ type: "text", text, origin: role === "user" ? "person" : "agent" }]
    if (i % 4 === 0) parts.push({ type: "tool_call", text: "{}", origin: "agent", tool: TOOLS[i % 8 === 0 ? 0 : 1]! })
    return textMessage(key, "", { role, parts, at: START + i * DAY })
  }
  const all = Array.from({ length: 12 }, (_, c) =>
    conversation(
      `conv${c}`,
      Array.from({ length: 10 }, (_, m) => message(`c${c}m${m}`, c * 3 + m)),
      {
        project: PROJECTS[c % 3]!,
        cwds: [PROJECTS[c % 3]!],
        kind: c % 4 === 3 ? "subagent" : "person",
      },
    ),
  )
  const ref = (id: string) => ({ source: "claude_code" as const, id })
  const filters = fc.record(
    {
      sources: fc.constantFrom(
        ["claude_code" as const],
        ["codex" as const],
        ["codex" as const, "claude_code" as const],
      ),
      projects: fc.subarray([...PROJECTS, "/nowhere"], { minLength: 1 }),
      excludedProjects: fc.subarray(PROJECTS),
      kinds: fc.subarray(["person" as const, "subagent" as const], { minLength: 1 }),
      roles: fc.subarray([...ROLES], { minLength: 1 }),
      tools: fc.subarray(["Bash", "bash", "Edit", "Nothing"], { minLength: 1 }),
      from: fc.integer({ min: 0, max: 45 }).map((day) => START + day * DAY),
      to: fc.integer({ min: 0, max: 45 }).map((day) => START + day * DAY),
      conversations: fc.subarray(all.map((one) => ref(one.id))),
      excludedConversations: fc.subarray(all.map((one) => ref(one.id))),
      required: fc.subarray(
        WORDS.map((words) => ({ words })),
        { maxLength: 2 },
      ),
      excluded: fc.subarray(
        WORDS.map((words) => ({ words })),
        { maxLength: 2 },
      ),
    },
    { requiredKeys: [] },
  )

  const letsIn = (filter: VectorFilter, one: ConversationWrite, said: MessageWrite): boolean => {
    const text = said.parts.map((part) => part.text).join(" ")
    const holds = ({ words }: Term) => text.includes(words)
    const used = said.parts.flatMap((part) => (part.type === "tool_call" ? [part.tool.toLowerCase()] : []))
    const named = (refs: { id: string }[]) => refs.some(({ id }) => id === one.id)
    return (
      (filter.sources?.includes("claude_code") ?? true) &&
      (filter.projects?.includes(one.project!) ?? true) &&
      !(filter.excludedProjects ?? []).includes(one.project!) &&
      (filter.kinds?.includes(one.kind) ?? true) &&
      (filter.roles?.includes(said.role) ?? true) &&
      (filter.tools?.some((tool) => used.includes(tool.toLowerCase())) ?? true) &&
      (filter.from === undefined || said.at! >= filter.from) &&
      (filter.to === undefined || said.at! <= filter.to) &&
      (filter.conversations === undefined || named(filter.conversations)) &&
      !named(filter.excludedConversations ?? []) &&
      (filter.required ?? []).every(holds) &&
      !(filter.excluded ?? []).some(holds)
    )
  }

  test("no hit is outside its filters, and no hit inside is missing", async () => {
    const { vectors, index } = await history(all)
    const expected = (filter: VectorFilter) =>
      all
        .flatMap((one) => one.messages.map((said, m) => ({ one, said, m })))
        .filter(({ one, said }) => letsIn(filter, one, said))
        .map(({ one, m }) => `${one.id}#${m + 1}`)
        .sort()
    await fc.assert(
      fc.asyncProperty(filters, fc.constantFrom(...WORDS), async (given, word) => {
        const filter = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
        const hits = vectors.scan(EMBEDDER, vectorOf(word), { limit: 200, filter })
        expect(hits.map((hit) => `${hit.ref.id}#${hit.number}`).sort()).toEqual(expected(filter))
        const few = vectors.scan(EMBEDDER, vectorOf(word), { limit: 3, filter })
        expect(few.map((hit) => hit.score)).toEqual(hits.slice(0, 3).map((hit) => hit.score))
        // The same filters on words: every message contains "remark".
        const counted = await index.count({ ...filter, match: [{ words: "remark" }] })
        expect(counted.total).toBe(hits.length)
      }),
      { numRuns: 400 },
    )
  })

  test("if many are allowed and few of them are near, they are still found", async () => {
    const crowd = Array.from({ length: 12 }, (_, c) =>
      conversation(
        `crowd${c}`,
        Array.from({ length: 500 }, (_, m) =>
          textMessage(`q${c}m${m}`, c < 11 ? `refresh token ${m % 50}` : "refresh token", {
            role: c < 11 ? "assistant" : "user",
            at: START + m,
          }),
        ),
      ),
    )
    const { vectors } = await history(crowd)
    const query = vectorOf("refresh token")
    // The 500 nearest, more than are compared closely, are all a person's; the filter allows the 5,500 others.
    const others = { roles: ["assistant" as const] }
    const hits = vectors.scan(EMBEDDER, query, { limit: 100, filter: others })
    expect(hits).toHaveLength(100)
    expect(hits.every((hit) => hit.ref.id !== "crowd11")).toBe(true)
    const wide = vectors.scan(EMBEDDER, query, { limit: 100, filter: { from: START } })
    expect(wide.every((hit) => hit.ref.id === "crowd11")).toBe(true)
    const without = vectors.scan(EMBEDDER, query, { limit: 100, filter: { excluded: [{ words: "7" }] } })
    expect(without).toHaveLength(100)
  })

  test("a project that becomes private is no longer found from outside", async () => {
    const { store, vectors } = await history(all)
    const ask = async (more: Filters) => {
      const scope = await scopeOf(store, more)
      return vectors.scan(EMBEDDER, vectorOf("refresh token"), { limit: 200, filter: scope!.filters })
    }
    expect(await ask({})).toHaveLength(120)
    await store.setPrivate("/code/secret", true)
    expect(await ask({})).toHaveLength(80)
    expect(await ask({ inside: "/code/secret" })).toHaveLength(120)
  })
})

describe("vectors follow the messages", () => {
  test("a number that was given to another message in the meantime gets no vector", async () => {
    const { store, index, vectors } = await history([conversation("a", [textMessage("a1", "the first words")])])
    vectors.drop()
    const [waiting] = vectors.missing(EMBEDDER, 10)
    await store.forget([{ source: "claude_code", id: "a" }])
    await store.writeUnit(unit("b.jsonl", [conversation("b", [textMessage("b1", "other words")])]))
    await index.follow(store)
    const [now] = vectors.missing(EMBEDDER, 10)
    expect(now!.doc).toBe(waiting!.doc) // the number is reused
    const save = (message: UnembeddedMessage) =>
      vectors.save(EMBEDDER, [{ messages: [message], windows: [{ message, vector: vectorOf("the first words") }] }])
    expect(save(waiting!)).toEqual({
      saved: 0,
      gone: 1,
    })
    expect(vectors.scan(EMBEDDER, vectorOf("the first words"), { limit: 9, filter: {} })).toEqual([])
  })

  test("a message that changes loses its vector, and gets a new one", async () => {
    const { store, index, vectors, embed } = await history([
      conversation("a", [textMessage("a1", "the first words"), textMessage("a2", "they stay")]),
    ])
    const changed = conversation("a", [textMessage("a1", "entirely others"), textMessage("a2", "they stay")])
    await store.writeUnit(unit("a.jsonl", [changed], { mode: "replace" }))
    await index.follow(store)
    expect(vectors.missing(EMBEDDER, 10).map(({ number }) => number)).toEqual([1])
    await embed()
    const [best] = vectors.scan(EMBEDDER, vectorOf("entirely others"), { limit: 1, filter: {} })
    expect(best).toMatchObject({ number: 1 })
    expect(best!.score).toBeGreaterThan(0.99)
    expect(await index.check()).toEqual([])
  })
})
