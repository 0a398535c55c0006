import { join } from "node:path"
import fc from "fast-check"
import picomatch from "picomatch"
import { expect, onTestFinished, test } from "vitest"
import type { Item, Moment, Pattern } from "../../src/core/suggestion.ts"
import { redactText } from "../../src/redact/redact.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import {
  checkPatterns,
  type Glob,
  globOf,
  matchingSubscriptions,
  type Trigger,
} from "../../src/suggest/subscriptions/matching.ts"
import { notifySubscriptions } from "../../src/suggest/subscriptions/notify.ts"
import { itemOf, NOW, subscriptionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"

const PROJECT = "/home/someone/api"
const glob = (pattern: string): Glob => {
  const made = globOf(pattern)
  if (typeof made !== "function") throw new Error(`${pattern} ${made.wrong}`)
  return made
}

test("a glob matches the same paths as with picomatch", () => {
  const names = fc.constantFrom("a", "b", "ab", "ba", "a.ts", ".env", "[id]", "x")
  const path = fc.array(names, { minLength: 1, maxLength: 5 }).map((segments) => segments.join("/"))
  const part = fc.constantFrom(
    "a",
    "b",
    "*",
    "?",
    "**",
    "*.ts",
    "a*",
    "*b",
    "a?",
    "*a*",
    "{a,b}",
    "{ab,x}.ts",
    ".env",
    ".*",
  )
  const pattern = fc.array(part, { minLength: 1, maxLength: 5 }).map((segments) => segments.join("/"))
  fc.assert(
    fc.property(pattern, path, (asked, file) => {
      fc.pre((asked.match(/\{/g) ?? []).length <= 3)
      // In picomatch `a/**` matches `a` too, but `*/**` does not. Here neither does.
      const oracle = picomatch(asked.replace(/(^|\/)\*\*$/, "$1**/*"), { dot: true, nobracket: true, noextglob: true })
      expect(glob(asked)(file), `${asked} on ${file}`).toBe(oracle(file))
    }),
    { numRuns: 5_000, seed: 6 },
  )
})

test("a glob matches what people expect", () => {
  const yes: [string, string][] = [
    ["src/auth/**", "src/auth/deep/token.ts"],
    ["**/*.test.ts", "a.test.ts"],
    ["app/[id]/page.tsx", "app/[id]/page.tsx"],
    ["./src/*.ts", "src/a.ts"],
    ["src/{auth,db}/*.{ts,js}", "src/db/x.js"],
    ["src\\a.ts", "src/a.ts"],
    ["**", "anything/at/all"],
  ]
  for (const [pattern, path] of yes) expect(glob(pattern)(path), `${pattern} ${path}`).toBe(true)
  const no: [string, string][] = [
    ["src/*", "src/a/b.ts"],
    ["*.ts", "src/a.ts"],
    ["src/auth/**", "src/authority.ts"],
    ["SRC/*", "src/a"],
    ["a?c", "a/c"],
  ]
  for (const [pattern, path] of no) expect(glob(pattern)(path), `${pattern} ${path}`).toBe(false)
})

test("an invalid or slow glob is refused with a reason", () => {
  for (const pattern of [
    "",
    " ",
    "!src/**",
    "/etc/passwd",
    "C:/x",
    "../x",
    "a/../b",
    "x".repeat(201),
    "{a,{b,c}}",
    "{a",
    "a}",
    "{a}",
    "{a,b}{a,b}{a,b}{a,b}",
    `**/${"*a/".repeat(60)}b`,
    `{a,${"a/".repeat(20)}b}`,
  ])
    expect(globOf(pattern), pattern).toEqual({ wrong: expect.stringMatching(/\w/) })
  expect(globOf(`${"**/".repeat(20)}b`)).toEqual({ wrong: expect.stringMatching(/more than 20 names/) })
  expect(glob(`${"a/".repeat(19)}b`)(`${"a/".repeat(19)}b`)).toBe(true)
})

const trigger = (more: Partial<Trigger>): Trigger => ({ project: PROJECT, at: NOW, ...more })
const fits = (pattern: Omit<Pattern, "priority">, more: Partial<Trigger>) =>
  matchingSubscriptions([subscriptionOf("s", { patterns: [{ priority: 1, ...pattern }] })], trigger(more)).length === 1

test("a subscription matches a file, a symbol, a topic's words or an entity's name", () => {
  expect(fits({ type: "file", pattern: "src/**" }, { file: "src/a.ts" })).toBe(true)
  expect(fits({ type: "file", pattern: "src/**" }, { file: `${PROJECT}/src/a.ts` })).toBe(true)
  expect(fits({ type: "file", pattern: "src/**" }, { file: "/elsewhere/src/a.ts" })).toBe(false)
  expect(fits({ type: "symbol", pattern: "login" }, { symbols: ["AuthService.login"] })).toBe(true)
  expect(fits({ type: "symbol", pattern: "AuthService.login" }, { symbols: ["AuthService.login"] })).toBe(true)
  expect(fits({ type: "symbol", pattern: "log" }, { symbols: ["AuthService.login"] })).toBe(false)
  expect(fits({ type: "topic", pattern: "refresh token" }, { text: "The Token is lost on Refresh." })).toBe(true)
  expect(fits({ type: "topic", pattern: "refresh token" }, { text: "The token is lost." })).toBe(false)
  expect(fits({ type: "entity", pattern: "auth.ts" }, { file: "src/auth.ts" })).toBe(true)
  expect(fits({ type: "entity", pattern: "auth.ts" }, { file: "src/oauth.ts" })).toBe(false)
  expect(fits({ type: "entity", pattern: "AuthService" }, { symbols: ["AuthService.login"] })).toBe(true)
  expect(fits({ type: "topic", pattern: "x" }, {})).toBe(false)
})

test("cooldown, project, enabled and priority are respected", () => {
  const subscriptions = [
    subscriptionOf("low", { patterns: [{ type: "file", pattern: "**", priority: 1 }] }),
    subscriptionOf("high", {
      patterns: [
        { type: "file", pattern: "**", priority: 2 },
        { type: "file", pattern: "src/**", priority: 5 },
      ],
    }),
    subscriptionOf("cooling", { cooldown_ms: 1_000, last_triggered_at: NOW - 999 }),
    subscriptionOf("cooled", { cooldown_ms: 1_000, last_triggered_at: NOW - 1_000 }),
    subscriptionOf("off", { enabled: false }),
    subscriptionOf("elsewhere", { project: "/home/someone/other" }),
  ]
  const matched = matchingSubscriptions(subscriptions, trigger({ file: "src/a.ts" }))
  expect(matched.map(({ subscription, pattern }) => [subscription.id, pattern.priority])).toEqual([
    ["high", 5],
    ["low", 1],
    ["cooled", 1],
  ])
})

test("invalid patterns are refused before they are stored", () => {
  const check = (type: Pattern["type"], pattern: string) => () => checkPatterns([{ type, pattern, priority: 1 }])
  expect(check("file", "src/**")).not.toThrow()
  expect(check("file", "/etc/**")).toThrow(/below the project/)
  expect(check("topic", " . ")).toThrow(/contains no word/)
  expect(check("symbol", "x".repeat(201))).toThrow(/200 characters/)
  expect(() => checkPatterns([])).toThrow(/What should be watched/)
  expect(() => checkPatterns(Array.from({ length: 21 }, () => ({ type: "topic", pattern: "x", priority: 1 })))).toThrow(
    /20 patterns/,
  )
})

test("each subscription gets its suggestion: enough relevance, not too many, not too soon; a webhook is queued with it", async () => {
  const suggestions = openSuggestions(join(tempDir(), "suggest.db"), { redact: redactText })
  onTestFinished(() => suggestions.close())
  suggestions.subscribe(subscriptionOf("best", { min_relevance: 0.8, cooldown_ms: 5_000 }))
  suggestions.subscribe(
    subscriptionOf("two", { min_relevance: 0.1, max_per_trigger: 2, deliver: "webhook", url: "https://example.com/x" }),
    "whsec_x",
  )
  suggestions.subscribe(subscriptionOf("none", { min_relevance: 0.99 }))
  suggestions.subscribe(subscriptionOf("docs", { patterns: [{ type: "file", pattern: "docs/**", priority: 1 }] }))
  const moments: Moment[] = []
  const parts = {
    suggestions,
    clock: () => 0,
    suggest: async (moment: Moment): Promise<Item[]> => {
      moments.push(moment)
      return [0.9, 0.7, 0.5].map((relevance) => itemOf({ relevance, key: String(relevance) }))
    },
  }
  const told = await notifySubscriptions(parts, trigger({ file: "src/a.ts", text: "password=hunter2hunter2" }))
  expect(told.map(({ subscription, items, saved }) => [subscription, items, saved.kept])).toEqual([
    ["best", 1, true],
    ["two", 2, true],
  ])
  expect(moments).toEqual([
    { event: "watch", project: PROJECT, at: NOW, file: "src/a.ts", prompt: "password=hunter2hunter2" },
  ])
  const waiting = suggestions.list({ limit: 9, status: "pending" })
  expect(waiting.map(({ moment }) => moment.prompt)).toEqual([
    "password=[REDACTED:password]",
    "password=[REDACTED:password]",
  ])
  expect(suggestions.due(NOW, 9)).toHaveLength(1)
  // The same item is not sent twice a day.
  expect(
    (await notifySubscriptions(parts, trigger({ file: "src/b.ts", at: NOW + 1 }))).map(({ items }) => items),
  ).toEqual([1])
  expect(await notifySubscriptions(parts, trigger({ file: "src/b.ts", at: NOW + 2 }))).toEqual([])
  const later = await notifySubscriptions(parts, trigger({ file: "src/b.ts", at: NOW + 86_400_002 }))
  expect(later.map(({ subscription, items }) => [subscription, items])).toEqual([
    ["best", 1],
    ["two", 2],
  ])
  expect(await notifySubscriptions(parts, trigger({ file: "README.md", at: NOW + 9_000 }))).toEqual([])
  expect(moments).toHaveLength(4)
})

test("a secret in the name of a file or symbol is neither looked up nor stored for a subscriber", async () => {
  const suggestions = openSuggestions(join(tempDir(), "suggest.db"), { redact: (text) => text })
  onTestFinished(() => suggestions.close())
  const secret = `ghp_${"a1B2c3D4e5F6".repeat(3)}`
  const clean = redactText(`x ${secret}`).slice(2)
  const patterns: Pattern[] = [
    { type: "file", pattern: "src/**", priority: 1 },
    { type: "symbol", pattern: clean, priority: 2 },
  ]
  for (const pattern of patterns) suggestions.subscribe(subscriptionOf(pattern.type, { patterns: [pattern] }))
  const moments: Moment[] = []
  const suggest = async (moment: Moment) => {
    moments.push(moment)
    return [itemOf({ relevance: 0.9, key: "one" })]
  }
  const told = await notifySubscriptions(
    { suggestions, clock: () => 0, suggest },
    trigger({ file: `src/${secret}.ts`, symbols: [secret] }),
  )
  expect(told.map(({ subscription }) => subscription).sort()).toEqual(["file", "symbol"])
  const kept = suggestions.list({ limit: 9, status: "pending" }).map(({ moment }) => moment)
  for (const seen of [moments, kept]) {
    expect(seen.map(({ file }) => file)).toEqual([`src/${clean}.ts`, `src/${clean}.ts`])
    expect(JSON.stringify(seen)).not.toContain(secret)
  }
})
