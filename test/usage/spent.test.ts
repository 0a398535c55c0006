import { cpSync, existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { SPENDING_FILE } from "../../src/core/formats.ts"
import { formatRef, refFrom } from "../../src/core/ref.ts"
import { addRequest } from "../../src/core/usage.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openSpending } from "../../src/store/spending/spending-file.ts"
import { daysBetween, fiveHourBlocks, localWeek } from "../../src/usage/periods.ts"
import {
  addSpentCounts,
  countTokens,
  SPENT_COUNTS,
  type SpentCounts,
  spendingInMessages,
} from "../../src/usage/spending.ts"
import { attributeSpending } from "../../src/usage/sums.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const FIXTURES = join(import.meta.dirname, "../fixtures")
const SOURCES = ["claude_code", "codex", "opencode", "gemini_cli", "pi", "cursor"]

/** These agents have a database, so each recording needs its own home. */
const HAVE_DATABASES = ["opencode", "cursor"]

async function homesOf(source: string): Promise<string[]> {
  const homes: string[] = []
  for (const name of readdirSync(join(FIXTURES, source))) {
    if (homes.length === 0 || HAVE_DATABASES.includes(source)) homes.push(tempDir())
    const [fixture, home] = [join(FIXTURES, source, name), homes.at(-1)!]
    if (existsSync(join(fixture, "home"))) cpSync(join(fixture, "home"), home, { recursive: true })
    else await ((await import(join(fixture, "make.ts"))) as { make: (home: string) => unknown }).make(home)
  }
  return homes
}

/** By conversation: the spending according to the history, and according to what the sync stored. */
async function bothCounts(home: string) {
  expect((await warmDex(home, ["sync"])).code).toBe(0)
  const store = openStore(join(home, ".dex", "history.db"))
  const spending = openSpending(join(home, ".dex", SPENDING_FILE))
  try {
    const { rows } = await store.list({ limit: 10_000, offset: 0 })
    const kept = rows.flatMap(({ ref, kind, usage }) => {
      if (!usage || kind === "dex") return []
      const { input, output, cache_read, cache_write, web_searches = 0, reasoning = 0 } = usage
      const sum = { input, output, cache_read, cache_write, web_searches, reasoning }
      return Object.values(sum).some((n) => n > 0) ? [[formatRef(ref), sum] as const] : []
    })
    const who = new Map(spending.spenders().map((one) => [one.id, formatRef(refFrom(one.source, one.native_id))]))
    const live = spending.spentBetween(0, Number.MAX_SAFE_INTEGER).filter(({ superseded }) => !superseded)
    const learned = [...Map.groupBy(live, ({ conversation }) => who.get(conversation)!)].map(([ref, parts]) => {
      const all = parts.slice(1).reduce<SpentCounts>(addSpentCounts, parts[0]!)
      const { input, output, cache_read, web_searches, reasoning } = all
      const cache_write = all.cache_write_5m + all.cache_write_1h + all.cache_write_other
      return [ref, { input, output, cache_read, cache_write, web_searches, reasoning }] as const
    })
    return { kept: Object.fromEntries(kept), learned: Object.fromEntries(learned) }
  } finally {
    spending.close()
    store.close()
  }
}

describe("stored spending", () => {
  test.each(SOURCES)("is what the history counts, conversation by conversation: %s", async (source) => {
    let conversations = 0
    for (const home of await homesOf(source)) {
      const { kept, learned } = await bothCounts(home)
      expect(learned).toEqual(kept)
      conversations += Object.keys(kept).length
    }
    expect(conversations).toBeGreaterThan(0)
  })
})

const usage = (input: number, more: object = {}) => ({ input, output: 1, cache_read: 0, cache_write: 0, ...more })
const message = (number: number, minute: number, more: object = {}) => ({
  number,
  at: Date.UTC(2026, 10, 3, 10, minute),
  model: "m",
  effects: [],
  superseded: false,
  copied: false,
  ...more,
})

describe("the spending of a conversation", () => {
  test("answers of one quarter of an hour and one price are one part; a commit, a long request and a tier end it", () => {
    const commit = { type: "commit" as const, hash: "abc1234", subject: "s" }
    const { spent, made } = spendingInMessages([
      message(1, 0, { usage: usage(1) }),
      message(2, 14, { usage: usage(2), effects: [commit] }),
      message(3, 14, { usage: usage(4) }),
      message(4, 14, { usage: usage(300_000) }),
      message(5, 14, { usage: usage(8, { service_tier: "batch" }) }),
      message(6, 15, { usage: usage(16) }),
      message(7, 16, { usage: usage(32), model: "other" }),
    ])
    expect(spent.map(({ number, input, answers, context }) => [number, input, answers, context])).toEqual([
      [1, 3, 2, 0],
      [3, 4, 1, 0],
      [4, 300_000, 1, 272_000],
      [5, 8, 1, 0],
      [6, 16, 1, 0],
      [7, 32, 1, 0],
    ])
    expect(made).toEqual([{ number: 2, at: message(2, 14).at, type: "commit", name: "abc1234", subject: "s" }])
  })

  test("copies were paid elsewhere, superseded messages are separate, and an undated answer has the time before it", () => {
    const { spent } = spendingInMessages(
      [
        message(1, 0, { usage: usage(1), copied: true }),
        message(2, 1, { usage: usage(2), superseded: true }),
        message(3, 0, { usage: usage(4), at: undefined }),
      ],
      5,
    )
    expect(spent.map(({ input, superseded, at }) => [input, superseded, at])).toEqual([
      [2, true, message(2, 1).at],
      [4, false, message(2, 1).at],
    ])
    expect(spendingInMessages([message(1, 0, { usage: usage(1), at: undefined })], 5).spent[0]!.at).toBe(5)
  })

  test("a search by a tool belongs to the model before it; cache writes are complete, dated or not", () => {
    const { spent } = spendingInMessages([
      message(1, 0, { usage: usage(0, { cache_write: 10, cache_write_5m: 3, cache_write_1h: 2 }) }),
      message(2, 1, { model: undefined, usage: { ...usage(0), output: 0, web_searches: 4 } }),
      message(3, 2, { model: undefined, usage: usage(7) }),
    ])
    expect(spent.map(({ model, web_searches, input }) => [model, web_searches, input])).toEqual([
      ["m", 4, 0],
      [undefined, 0, 7],
    ])
    const { cache_write_5m, cache_write_1h, cache_write_other } = spent[0]!
    expect([cache_write_5m, cache_write_1h, cache_write_other]).toEqual([3, 2, 5])
    expect(countTokens(spent[0]!)).toBe(11)
    expect(SPENT_COUNTS.length).toBe(11)
  })
})

describe("when and for what", () => {
  test("a week begins on Monday, even if the clocks change during it", () => {
    expect([localWeek(Date.UTC(2026, 10, 1, 12)), localWeek(Date.UTC(2026, 10, 2, 12))]).toEqual([
      "2026-10-26",
      "2026-11-02",
    ])
    expect(daysBetween("2026-10-24", "2026-10-27")).toEqual(["2026-10-24", "2026-10-25", "2026-10-26", "2026-10-27"])
  })

  test("a block begins with the hour of its first answer and lasts five", () => {
    const at = (hour: number, minute: number) => Date.UTC(2026, 10, 3, hour, minute)
    const times = [at(15, 0), at(9, 50), at(13, 59), at(14, 1), at(23, 59)]
    const starts = fiveHourBlocks(times)
    expect(times.map((time) => new Date(starts.get(time)!).getUTCHours())).toEqual([14, 9, 9, 14, 23])
  })

  test("spending before a commit counts for it; after the last one for none, or, with a pull request, for that", () => {
    const rows = [1, 5, 9].map((at) => ({ conversation: 1, at }))
    const made = [
      { name: "second", conversation: 1, at: 6 },
      { name: "first", conversation: 1, at: 2 },
      { name: "elsewhere", conversation: 2, at: 1 },
    ]
    const names = (afterwards: boolean) => [...attributeSpending(rows, made, { afterwards }).values()]
    expect(names(false)).toEqual(["first", "second", undefined])
    expect(names(true)).toEqual(["first", "second", "second"])
  })
})

test("if a message has several requests, the longest one decides the price, not their sum", () => {
  const request = { input: 1, output: 1, cache_read: 150_000, cache_write: 0, service_tier: "standard" }
  const three = addRequest(addRequest(request, request), { ...request, cache_read: 199_999 })
  expect(three).toMatchObject({ cache_read: 499_999, longest: 200_000, service_tier: "standard" })
  const { spent } = spendingInMessages([message(1, 0, { usage: three })])
  expect(spent[0]).toMatchObject({ cache_read: 499_999, context: 199_999, service_tier: "standard" })
})
