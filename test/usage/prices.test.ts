import { readFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { listedPrices, priceListText } from "../../scripts/prices.ts"
import type { Spending } from "../../src/core/usage.ts"
import { moneyFor, totalMoney } from "../../src/usage/money.ts"
import { makerModelName, PRICE_LIST, parseOwnPrices, priceBook } from "../../src/usage/price-of.ts"
import { CONTEXT_STEPS, contextStep } from "../../src/usage/spending.ts"

const book = priceBook()
const AT = Date.parse("2026-11-03T10:00:00Z")
const spending = (more: Partial<Spending>): Spending => ({
  model: "claude-opus-4-5-20251101",
  at: AT,
  context: 0,
  answers: 1,
  input: 0,
  output: 0,
  reasoning: 0,
  cache_read: 0,
  cache_write_5m: 0,
  cache_write_1h: 0,
  cache_write_other: 0,
  web_searches: 0,
  web_fetches: 0,
  recorded: 0,
  ...more,
})
const MILLION = 1_000_000
const dollars = (more: Partial<Spending>) => totalMoney(moneyFor(spending(more), book).money)

describe("the list of prices", () => {
  test("is what the script makes of the pinned package", () => {
    const fast = PRICE_LIST.filter(({ prices }) => prices === undefined)
    const committed = readFileSync(new URL("../../src/usage/price-list.json", import.meta.url), "utf8")
    expect(committed).toBe(priceListText([listedPrices(), ...fast]))
  })

  test("names for each row the package and version that it comes from, and a date only if the package has one", () => {
    expect(book("claude-opus-4-5", AT)).toMatchObject({ from: "@pydantic/genai-prices 0.1.8", rates: { input: 5 } })
    expect(book("claude-opus-4-5", AT)).not.toHaveProperty("since")
    expect(book("claude-opus-4-6", AT)).toMatchObject({ since: "2026-03-13" })
    expect(book("claude-opus-4-6", AT)?.fast).toEqual({ times: 6, from: "ccusage 19.0.3" })
  })

  test("every model in it is found under its own name", () => {
    const lost = PRICE_LIST.flatMap(({ prices = [] }) => prices)
      .filter(({ provider }) => ["anthropic", "openai", "x-ai", "moonshotai"].includes(provider))
      .filter(({ model }) => !model.startsWith("ft:") && book(model, AT)?.model !== model)
    expect(lost.map(({ model }) => model)).toEqual([])
  })

  test("prices change with the length of a request only at the steps by which spending is separated", () => {
    const steps = PRICE_LIST.flatMap(({ prices = [] }) => prices).flatMap(({ long = [] }) =>
      long.map(({ over }) => over),
    )
    expect([...new Set(steps)].sort((a, b) => a - b)).toEqual(CONTEXT_STEPS)
  })

  test.each([
    ["us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-0"],
    ["claude-opus-4-5[1m]", "claude-opus-4-5"],
    ["anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"],
    ["gpt-5-codex", "gpt-5"],
    ["gemini-2.5-pro", "gemini-2.5-pro"],
    ["openrouter/qwen/qwen3-coder", "qwen/qwen3-coder"],
  ])("%s costs what %s costs", (name, model) => {
    expect(book(name, AT)?.model).toBe(model)
  })

  test("a name that only resembles a model's has no price", () => {
    expect(book("gpt-5-codex-of-next-year", AT)).toBeUndefined()
    expect(book("<synthetic>", AT)).toBeUndefined()
    expect(makerModelName("My/Own-Model")).toBe("own-model")
  })
})

describe("the cost", () => {
  test("input, output, cache reads, and writes for five minutes and for an hour, each at its own price", () => {
    const all = {
      input: MILLION,
      output: MILLION,
      cache_read: MILLION,
      cache_write_5m: MILLION,
      cache_write_1h: MILLION,
    }
    expect(moneyFor(spending({ ...all, cache_write_other: MILLION, web_searches: 1000 }), book).money).toEqual({
      input: 5,
      output: 25,
      cache_read: 0.5,
      cache_write_5m: 12.5, // a write without a lifetime counts as five minutes
      cache_write_1h: 10,
      web_searches: 10,
      recorded: 0,
    })
  })

  test("a request beyond 200,000 tokens costs more as a whole, until the day that the source gives", () => {
    const long = { model: "claude-sonnet-4-6", context: contextStep(200_001), input: MILLION, output: MILLION }
    expect(dollars({ ...long, at: Date.parse("2026-03-01") })).toBe(28.5)
    expect(dollars({ ...long, at: Date.parse("2026-03-01"), context: contextStep(200_000) })).toBe(18)
    expect(dollars(long)).toBe(18)
  })

  test("a price by the hour of the day counts in its hours", () => {
    const at = (time: string) =>
      dollars({ model: "deepseek-v4-pro", input: MILLION, at: Date.parse(`2026-11-03T${time}Z`) })
    expect([at("01:00"), at("03:59"), at("06:00")]).toEqual([1.32, 1.32, 1.32])
    expect(at("04:00")).toBeLessThan(1.32)
  })

  test("the fast mode costs the multiple that a source gives; if none does, this is reported and it costs the usual price", () => {
    expect(dollars({ model: "claude-opus-4-6", speed: "fast", input: MILLION })).toBe(30)
    const unknown = moneyFor(spending({ speed: "fast", input: MILLION }), book)
    expect([totalMoney(unknown.money), unknown.unknown]).toEqual([5, "speed fast"])
    expect(moneyFor(spending({ service_tier: "priority", input: 1 }), book).unknown).toBe("service tier priority")
    expect(moneyFor(spending({ service_tier: "standard", input: 1 }), book).unknown).toBeUndefined()
  })

  test("a model without a price has no known cost: it is marked, or the agent's own figure counts", () => {
    expect(moneyFor(spending({ model: "own-model", input: MILLION }), book)).toMatchObject({ unpriced: "tokens" })
    expect(moneyFor(spending({ model: undefined, input: MILLION }), book)).toMatchObject({ unpriced: "tokens" })
    const recorded = moneyFor(spending({ model: "own-model", input: MILLION, recorded: 0.25 }), book)
    expect([totalMoney(recorded.money), recorded.unpriced]).toEqual([0.25, undefined])
  })
})

describe("the user's own prices", () => {
  const own = (prices: object) => parseOwnPrices(JSON.stringify(prices), "/p.json")

  test("take precedence over the list's, for a name or for all with a prefix", () => {
    const { source, problems } = own({
      "claude-opus-4-5-20251101": { input: 1, output: 2, fast: 3 },
      "My-*": { input: 4, output: 5, long: [{ over: 200_000, input: 8 }] },
    })
    expect(problems).toEqual([])
    const mine = priceBook([source])
    expect(mine("claude-opus-4-5-20251101", AT)).toMatchObject({
      from: "/p.json",
      rates: { input: 1 },
      fast: { times: 3 },
    })
    expect(mine("claude-opus-4-5", AT)).toMatchObject({ rates: { input: 5 } })
    const long = spending({ model: "my-model", context: 200_000, input: MILLION, output: MILLION })
    expect(totalMoney(moneyFor(long, mine).money)).toBe(13)
  })

  test("entries that are not understood are reported and ignored", () => {
    expect(parseOwnPrices("{", "/p.json").problems).toEqual([
      "/p.json is not a JSON object of models and their prices.",
    ])
    const { source, problems } = own({
      a: { input: 1 },
      b: { input: "1", output: 2 },
      c: { input: 1, output: 2, long: [{ over: 5, input: 1 }] },
      d: { input: 1, output: 2, cached: 3 },
      e: 1,
    })
    expect(source.prices).toEqual([])
    expect(problems.map((problem) => problem.slice(0, 40))).toEqual([
      '/p.json: "a" needs input and output. It ',
      '/p.json: "b" needs a number of dollars f',
      '/p.json: "c" has a long price whose over',
      '/p.json: "d" has "cached", which is not ',
      '/p.json: "e" has no prices. It was ignor',
    ])
  })
})
