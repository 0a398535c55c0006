import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, onTestFinished, test } from "vitest"
import type { Part, Role } from "../../src/core/conversation.ts"
import { formatRef } from "../../src/core/ref.ts"
import { planQuery } from "../../src/search/plan.ts"
import { parseQuery } from "../../src/search/query.ts"
import { rank } from "../../src/search/rank.ts"
import type { Filters } from "../../src/search/scope.ts"
import { searchHistory } from "../../src/search/search.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { ConversationWrite, MessageWrite } from "../../src/store/history/store.ts"
import type { IndexFilter } from "../../src/store/index/query.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import type { Term } from "../../src/store/index/terms.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"

const DAY = 86_400_000
const START = Date.UTC(2026, 0, 1)

async function history(conversations: ConversationWrite[], source: "claude_code" | "codex" = "claude_code") {
  const dir = tempDir()
  const store = openStore(join(dir, "history.db"))
  const index = openIndex(join(dir, "index.db"))
  onTestFinished(() => {
    store.close()
    index.close()
  })
  for (const [i, one] of conversations.entries())
    await store.writeUnit(unit(`${one.id}.jsonl`, [one], { source, bornAt: START + i }))
  await index.follow(store)
  const ask = (
    query: string,
    more: Partial<Filters> & { by?: "message" | "conversation"; limit?: number; prose?: boolean } = {},
  ) => searchHistory(store, index, { by: "conversation", limit: 10, offset: 0, ...more, query: parseQuery(query) })
  return { store, index, ask }
}

const called = (key: string, tool: string, text: string): MessageWrite =>
  textMessage(key, "", { role: "assistant", parts: [{ type: "tool_call", text, origin: "agent", tool }] })
const returned = (key: string, text: string): MessageWrite =>
  textMessage(key, "", {
    role: "tool",
    parts: [{ type: "tool_result", text, origin: "local_tool", tool: "Bash", is_error: false }],
  })
const ids = (outcome: Awaited<ReturnType<typeof searchHistory>>) => outcome.hits.map((hit) => hit.row.ref.id)

describe("ranking", () => {
  test("a person's words count for more than a tool's output", async () => {
    const { ask } = await history([
      conversation("printed", [
        returned("p1", "the retry budget is exhausted"),
        textMessage("p2", "unrelated words here"),
      ]),
      conversation("asked", [
        textMessage("a1", "the retry budget is exhausted"),
        textMessage("a2", "unrelated words here"),
      ]),
    ])
    expect(ids(await ask("retry budget exhausted"))).toEqual(["asked", "printed"])
  })

  test("adjacent words count for more than separate ones", async () => {
    const { ask } = await history([
      conversation("apart", [textMessage("a1", "token of the user, then we refresh the page and look again")]),
      conversation("together", [textMessage("t1", "the page, then we look again and user refresh token of it")]),
    ])
    expect(ids(await ask("refresh token"))).toEqual(["together", "apart"])
  })

  test("a conversation that mentions it often ranks above one that mentions it once", async () => {
    const filler = (name: string) =>
      Array.from({ length: 6 }, (_, i) => textMessage(`${name}f${i}`, `filler number ${i} of ${name}`))
    const { ask } = await history([
      conversation("once", [textMessage("o1", "we saw a deadlock in the scheduler"), ...filler("o")]),
      conversation("often", [
        textMessage("m1", "we saw a deadlock in the scheduler again"),
        textMessage("m2", "the deadlock comes from the scheduler lock"),
        textMessage("m3", "scheduler deadlock is fixed"),
        ...filler("m"),
      ]),
    ])
    expect(ids(await ask("scheduler deadlock"))).toEqual(["often", "once"])
  })

  test("camelCase is found by its parts, and its parts by camelCase", async () => {
    const { ask } = await history([
      conversation("camel", [textMessage("c1", "look at HasUncommittedChanges in that file")]),
      conversation("plain", [textMessage("p1", "it has uncommitted changes in the tree")]),
      conversation("other", [textMessage("o1", "nothing of the kind")]),
    ])
    expect(ids(await ask("uncommitted changes")).sort()).toEqual(["camel", "plain"])
    expect(ids(await ask("HasUncommittedChanges"))[0]).toBe("camel")
    expect(ids(await ask("HasUncommittedChanges"))).toContain("plain")
  })

  test("CJK text is found by a part of it", async () => {
    const { ask } = await history([
      conversation("ja", [textMessage("j1", "ログイン時の認証エラーを直す")]),
      conversation("zh", [textMessage("z1", "数据库连接池已满")]),
    ])
    expect(ids(await ask("認証エラー"))).toEqual(["ja"])
    expect(ids(await ask("连接池"))).toEqual(["zh"])
  })

  test("the beginning of a hash finds it", async () => {
    const { ask } = await history([
      conversation("hash", [returned("h1", "HEAD is now at 83c840a2c85fe3fda5a25cc24d5669040a42c9c2")]),
    ])
    expect(ids(await ask("83c840a2c"))).toEqual(["hash"])
  })

  test("a conversation is found by its branch and by a file it changed", async () => {
    const edit = called("e2", "Edit", "{}")
    edit.effects = [{ type: "file", action: "edited", path: "/code/api/src/quota/limiter.ts" }]
    const { ask } = await history([
      conversation("work", [textMessage("e1", "please go on"), edit], { git_branch: "feature/invoice-export" }),
      conversation("none", [textMessage("n1", "please go on")]),
    ])
    expect(ids(await ask("invoice export"))).toEqual(["work"])
    expect(ids(await ask("limiter"))).toEqual(["work"])
  })

  describe("a title", () => {
    const titled = (id: string, text: string, messages: MessageWrite[]) =>
      conversation(id, messages, { title: { text, from: "first_prompt" } })
    const about = titled("about", "Retry uploads with a growing delay · ENT-221", [
      textMessage("a1", "Retry uploads with a growing delay"),
      textMessage("a2", "done, on ENT-221", { role: "assistant" }),
      textMessage("a3", "thanks"),
    ])
    /** Contains it more often. */
    const scattered = titled("scattered", "What is open this week?", [
      textMessage("s1", "ENT-221, ENT-221: delay, uploads, retry"),
      textMessage("s2", "uploads of ENT-221", { role: "assistant" }),
    ])
    const others = Array.from({ length: 30 }, (_, i) =>
      titled(`o${i}`, `Another matter ${i}`, [textMessage(`o${i}`, `another matter, number ${i}`)]),
    )

    test("that contains the query ranks its conversation above those that contain it elsewhere", async () => {
      const { ask } = await history([scattered, about, ...others])
      for (const query of ["ENT-221", "ent 221", "uploads retried delays"])
        expect([query, ids(await ask(query))]).toEqual([query, ["about", "scattered"]])
    })

    test("that contains only a part of it changes nothing", async () => {
      const { ask } = await history([scattered, about, ...others])
      const { hits } = await ask("ENT-221 uploads, week 22 or 23")
      expect(hits[0]!.row.ref.id).toBe("scattered")
      expect(hits.flatMap(({ parts }) => parts.map(({ name }) => name))).not.toContain("title")
    })

    test("is a part of the conversation's score, and not of a message's", async () => {
      const { ask } = await history([scattered, about, ...others])
      const [best] = (await ask("ENT-221")).hits
      expect(best!.parts.map(({ name }) => name)).toContain("title")
      expect(best!.parts.reduce((sum, { value }) => sum + value, 0)).toBeCloseTo(best!.score, 9)
      const messages = await ask("ENT-221", { by: "message" })
      expect(messages.hits.flatMap(({ parts }) => parts.map(({ name }) => name))).not.toContain("title")
    })
  })

  test("the same text in two conversations is one result", async () => {
    const { ask } = await history([
      conversation("a", [textMessage("a1", "run the nightly vacuum job on the replica")]),
      conversation("b", [textMessage("b1", "run the nightly vacuum job on the replica")]),
    ])
    const outcome = await ask("nightly vacuum")
    expect(outcome.hits).toHaveLength(1)
    expect(outcome.skipped).toMatchObject([{ reason: "duplicate" }])
  })

  test("words that hardly occur find nothing, and the outcome names what came near", async () => {
    const { ask } = await history(
      Array.from({ length: 40 }, (_, i) =>
        conversation(`c${i}`, [textMessage(`k${i}`, `message number ${i} about the server`)]),
      ),
    )
    const outcome = await ask("hydration mismatch kubernetes server")
    expect(outcome.hits).toEqual([])
    expect(outcome.skipped[0]).toMatchObject({ reason: "floor" })
  })

  test("the parts of every score add up to it, for messages and conversations", async () => {
    const { index } = await history([
      conversation("a", [
        textMessage("a1", "refresh token race"),
        textMessage("a2", "the token race again"),
        textMessage("a3", "refresh it"),
      ]),
      conversation("b", [textMessage("b1", "a race of tokens"), textMessage("b2", "other")]),
    ])
    const { messages, conversations } = await rank(index, parseQuery("refresh token race"), {})
    for (const { score, parts } of [...messages, ...conversations])
      expect(parts.reduce((sum, part) => sum + part.value, 0)).toBeCloseTo(score, 9)
    expect(messages.length).toBeGreaterThan(3)
  })

  test("the index's own message ids are only passed back to it, never counted with or ordered by", async () => {
    const { index } = await history([conversation("a", [textMessage("1", "the mutex"), textMessage("2", "the token")])])
    const { messages } = await rank(index, parseQuery("mutex token"), {})
    const docs = messages.map(({ doc }) => doc)
    expect((await index.containing({ words: "token" }, docs)).size).toBe(1)
    // @ts-expect-error it is no number
    expect(docs[0] - docs[1]).not.toBe(0)
    // @ts-expect-error it is no number
    expect(docs.includes(1)).toBe(false)
  })

  test("equal results are ordered by time, newest first, then by name", async () => {
    const same = (id: string, at: number) => conversation(id, [textMessage(`${id}1`, `identical words ${id}`, { at })])
    const { ask } = await history([same("m", START), same("n", START + DAY), same("l", START)])
    expect(ids(await ask("identical words"))).toEqual(["n", "l", "m"])
  })
})

describe("common words", () => {
  const many = () =>
    Array.from({ length: 60 }, (_, i) =>
      conversation(`c${i}`, [
        textMessage(`a${i}`, `error in file ${i === 7 ? "zebra" : "other"}`),
        textMessage(`b${i}`, "error again"),
      ]),
    )

  test("a small history is searched without limits", async () => {
    const { index } = await history(many())
    expect(await planQuery(index, parseQuery("error zebra"))).toMatchObject({
      match: [{ words: "error" }, { words: "zebra" }],
      common: [],
    })
  })

  test("in a large history rare words find messages and common words order them; the work is limited if all are common", async () => {
    const { index } = await history(many())
    const large = {
      ...index,
      sizes: async (terms: Term[]) => ({ ...(await index.sizes(terms)), messages: 1_000_000 }),
    }
    const plan = await planQuery(large, parseQuery("error zebra"))
    expect(plan).toMatchObject({
      match: [{ words: "zebra" }],
      common: [{ term: { words: "error" } }, { term: { words: "error zebra" } }],
    })
    expect(plan.newest).toBeUndefined()
    const common = await planQuery(large, parseQuery("error file"))
    expect(common.newest).toBeGreaterThan(0)
    expect(common.newest).toBeLessThan(100_000)
    const { messages } = await rank(large, parseQuery("error zebra"), {})
    expect(messages[0]!.parts.map((part) => part.name)).toContain("common")
  })

  test("a word that none of the newest messages contain is looked up among common ones, if any message contains it", async () => {
    const { index } = await history(many())
    const large = {
      ...index,
      sizes: async (terms: Term[]) => {
        const { shares, ...others } = await index.sizes(terms)
        return { ...others, messages: 1_000_000, shares: shares.map((share) => (share < 0.1 ? 0 : share)) }
      },
    }
    expect((await planQuery(large, parseQuery("error file zebra"))).match).toEqual([{ words: "zebra" }])
    expect((await planQuery(large, parseQuery("error file zebrafinch"))).match).toEqual([
      { words: "file" },
      { words: "error" },
    ])
  })

  test("a word that is rare, and yet in very many messages, is looked up in the newest ones", async () => {
    const { index } = await history(many())
    const large = {
      ...index,
      sizes: async (terms: Term[]) => ({ ...(await index.sizes(terms)), messages: 100_000_000 }),
    }
    const plan = await planQuery(large, parseQuery("zebra"))
    expect(plan.match).toEqual([{ words: "zebra" }])
    expect(plan.newest).toBeGreaterThan(0)
  })
})

describe("filters", () => {
  test("an empty list of allowed values matches nothing, and an empty list of exclusions matches everything", async () => {
    const { index } = await history([conversation("a", [textMessage("1", "the mutex is held")])])
    const match = [{ words: "mutex" }]
    const total = async (query: IndexFilter) => (await index.count(query)).total
    expect(await total({ match: [] })).toBe(0)
    expect(await total({ match, sources: [] })).toBe(0)
    expect(await total({ match, excludedKinds: [] })).toBe(1)
  })

  const ROLES: Role[] = ["user", "assistant", "tool"]
  const TOOLS = ["Bash", "Edit", "mcp__github__create_issue"]
  const PROJECTS = ["/code/api", "/code/web", "/srv/api-gateway"]
  const WORDS = ["mutex", "token", "race", "server", "schema", "readFile", "naïve", "日本語"]
  const message = (n: number): MessageWrite => {
    const role = ROLES[n % 3]!
    const text = `${WORDS[n % 8]} ${WORDS[(n * 3 + 1) % 8]} number${n}`
    const tool = TOOLS[n % 2]!
    const parts: Part[] =
      role === "tool"
        ? [{ type: "tool_result", text, origin: "local_tool", tool, is_error: false }]
        : role === "assistant" && n % 4 === 1
          ? [{ type: "tool_call", text, origin: "agent", tool: TOOLS[2]! }]
          : [{ type: "text", text, origin: role === "user" ? "person" : "agent" }]
    return { key: `k${n}`, role, at: START + n * DAY, parts }
  }
  const all = Array.from({ length: 12 }, (_, c) =>
    conversation(
      `c${c}`,
      Array.from({ length: 6 }, (_, m) => message(c * 6 + m)),
      { project: PROJECTS[c % 3]! },
    ),
  )

  const anything = fc.oneof(
    fc.string({ unit: "binary", maxLength: 60 }),
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc
      .array(
        fc.constantFrom(
          ...WORDS,
          '"',
          "-",
          "*",
          "(",
          ")",
          ":",
          "NEAR",
          "AND",
          "OR",
          "NOT",
          "{a b}:",
          "^",
          "+",
          "words",
          "tags:x",
          "xxsource0",
          "xxkind0",
          '"token race"',
          "-mutex",
          "from:7d",
          "role:user",
          "from:",
          "project:",
          "source:zzz",
          "\0",
          "'; drop table doc; --",
          "((((",
          "\ud800",
          "%",
          "--flag",
          "a\u0301",
          "\u202e",
        ),
        { maxLength: 8 },
      )
      .map((list) => list.join(" ")),
  )
  const QUERIES = Number(process.env.DEX_QUERIES ?? 2_000)

  test(`${QUERIES} random and hostile queries: no exception, and no hit outside its filters`, async () => {
    const { store, index } = await history(all)
    const at = (n: number) => START + n * DAY
    await fc.assert(
      fc.asyncProperty(
        anything,
        fc.record(
          {
            project: fc.constantFrom("api", "web", "gateway", "nowhere"),
            from: fc.integer({ min: 0, max: 72 }).map(at),
            to: fc.integer({ min: 0, max: 72 }).map(at),
            roles: fc.constantFrom<Role[]>(["user"], ["assistant"], ["tool"]),
            tools: fc.constantFrom<string[]>(["bash"], ["Edit"], ["mcp__github__create_issue"], ["None"]),
            conversation: fc.constantFrom("c1", "c5").map((id) => ({ source: "claude_code" as const, id })),
            excludedConversations: fc.constantFrom("c1", "c2").map((id) => [{ source: "claude_code" as const, id }]),
          },
          { requiredKeys: [] },
        ),
        fc.constantFrom("message" as const, "conversation" as const),
        async (text, filters, by) => {
          const query = parseQuery(text)
          const outcome = await searchHistory(store, index, { ...filters, by, limit: 20, offset: 0, query })
          // A query that the index cannot parse would be taken for damage, and the history would be read instead.
          expect([text, outcome.mode]).toEqual([text, "lexical"])
          for (const { row, number } of outcome.hits) {
            const [found] = await store.messages(row.ref, [number])
            const name = `${formatRef(row.ref)}#${number}`
            if (filters.project) expect([name, row.project]).toEqual([name, expect.stringContaining(filters.project)])
            if (filters.from) expect(found!.at).toBeGreaterThanOrEqual(filters.from)
            if (filters.to) expect(found!.at).toBeLessThanOrEqual(filters.to)
            if (filters.roles) expect(filters.roles).toContain(found!.role)
            if (filters.conversation) expect(row.ref.id).toBe(filters.conversation.id)
            if (filters.excludedConversations) expect(row.ref.id).not.toBe(filters.excludedConversations[0]!.id)
            if (filters.tools)
              expect(
                found!.parts.some(
                  (part) => "tool" in part && part.tool?.toLowerCase() === filters.tools![0]!.toLowerCase(),
                ),
              ).toBe(true)
            const plain = found!.parts
              .map((part) => part.text)
              .join("\n")
              .toLowerCase()
            for (const word of query.without) if (WORDS.includes(word)) expect(plain).not.toContain(word)
          }
        },
      ),
      { numRuns: QUERIES, ...(process.env.DEX_SEED && { seed: Number(process.env.DEX_SEED) }) },
    )
  }, 3_600_000)

  test("a filter that matches everything changes nothing", async () => {
    const { ask } = await history(all)
    const plain = await ask("mutex token", { by: "message", limit: 100 })
    const filtered = await ask("mutex token", {
      by: "message",
      limit: 100,
      from: START - DAY,
      roles: [...ROLES, "system"],
    })
    expect(filtered.hits.map((hit) => `${hit.row.ref.id}#${hit.number}`).sort()).toEqual(
      plain.hits.map((hit) => `${hit.row.ref.id}#${hit.number}`).sort(),
    )
    expect(plain.hits.length).toBeGreaterThan(10)
  })
})

describe("the snippet", () => {
  const JSON_CALL = '{"file_path":"/code/a.ts","old_string":"the quokka limit"}'

  test("is spoken text even if a tool's text matches better, and names its message", async () => {
    const { ask } = await history([
      conversation("both", [
        called("c1", "Edit", `${JSON_CALL}\n${JSON_CALL}`),
        returned("c2", "12\u2192 quokka limit\n13\u2192 quokka limit quokka limit"),
        textMessage("c3", "Now about something else."),
        textMessage("c4", "We keep a limit on each quokka."),
      ]),
    ])
    const [hit] = (await ask("quokka limit", { prose: true })).hits
    expect(hit).toMatchObject({ number: 4, snippet: "We keep a **limit** on each **quokka**." })
  })

  test("is found beyond the best messages, and in thinking if nobody said it", async () => {
    const many = Array.from({ length: 40 }, (_, i) => returned(`r${i}`, `${i}\u2192 quokka quokka quokka`))
    const thought: Part = { type: "thinking", text: "Is the quokka the cause?", origin: "agent" }
    const { ask } = await history([
      conversation("thought", [...many, textMessage("t", "", { role: "assistant", parts: [thought] })]),
    ])
    expect((await ask("quokka", { prose: true })).hits[0]).toMatchObject({
      number: 41,
      snippet: "[thinking] Is the **quokka** the cause?",
    })
  })

  test("is searched for only in messages that contain the word, and in those that the index does not know", async () => {
    const many = (name: string) =>
      Array.from({ length: 40 }, (_, i) => returned(`${name}${i}`, `${i}\u2192 ${name} quokka quokka quokka`))
    const others = Array.from({ length: 20 }, (_, i) => textMessage(`o${i}`, "Quokk and wombat, but not the word."))
    const thought: Part = { type: "thinking", text: "The quokka moved to another file.", origin: "agent" }
    const shared = [
      textMessage("asked", "Where is it?"),
      textMessage("copied", "", { role: "assistant", parts: [thought] }),
    ]
    const { store, index } = await history([
      conversation("first", [...shared, ...many("a"), ...others]),
      conversation("fork", [...shared, ...many("b")]),
    ])
    const read = new Map<string, number[]>()
    const watched: typeof store = {
      ...store,
      messages: (ref, numbers) => {
        read.set(ref.id, [...(read.get(ref.id) ?? []), ...(numbers ?? [Number.NaN])])
        return store.messages(ref, numbers)
      },
    }
    const asked = { by: "conversation", limit: 10, offset: 0, prose: true, query: parseQuery("quokka") } as const
    const { hits } = await searchHistory(watched, index, asked)
    const shown = hits.map(({ row, snippet }) => [row.ref.id, snippet]).sort()
    expect(shown).toEqual([
      ["first", "[thinking] The **quokka** moved to another file."],
      ["fork", "[thinking] The **quokka** moved to another file."],
    ])
    expect(Math.max(...read.get("first")!)).toBeLessThan(43)
    const isCopied = async (id: string) => (await store.versions({ source: "claude_code", id }))[1]!.copied
    expect([await isCopied("first"), await isCopied("fork")]).toEqual([false, true])
  })

  test("is a machine's text if only machines wrote the words", async () => {
    const { ask } = await history([
      conversation("called", [textMessage("a", "Do it."), called("b", "Edit", JSON_CALL)]),
    ])
    expect((await ask("quokka", { prose: true })).hits[0]).toMatchObject({
      number: 2,
      snippet: expect.stringContaining("[Edit] {"),
    })
  })

  test("stays in its message if messages are requested", async () => {
    const { ask } = await history([
      conversation("both", [
        called("b", "Edit", JSON_CALL),
        textMessage("a", "The quokka, and much more about other things."),
      ]),
    ])
    const { hits } = await ask("quokka", { by: "message" })
    expect(hits.map((hit) => [hit.number, hit.snippet.includes("[Edit]")]).sort()).toEqual([
      [1, true],
      [2, false],
    ])
  })
})
