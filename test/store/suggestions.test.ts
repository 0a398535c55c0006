import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import Database from "better-sqlite3"
import { expect, onTestFinished, test } from "vitest"
import { redactText } from "../../src/redact/redact.ts"
import { MAX_SUGGESTIONS, openSuggestions, RETENTION_MS } from "../../src/store/suggestions/suggestions.ts"
import type { LearnWeights } from "../../src/store/suggestions/verdicts.ts"
import { learnFromVerdict } from "../../src/suggest/feedback/feedback.ts"
import { itemOf, NOW, subscriptionOf, suggestionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"

function opened(options?: { busyMs?: number }) {
  const path = join(tempDir(), "suggest.db")
  const suggestions = openSuggestions(path, options)
  onTestFinished(() => suggestions.close())
  return { path, suggestions }
}

test("suggestions are returned as they were saved, newest first, and by a prefix of their id", () => {
  const { suggestions } = opened()
  const made = suggestionOf("abc1", {
    moment: { file: "src/a.ts", prompt: "why?" },
    items: [itemOf(), itemOf({ key: "k2", kind: "decision" })],
  })
  expect(suggestions.save(made)).toEqual({ kept: true, seq: 1 })
  expect(suggestions.save(suggestionOf("abd2"), { would: true })).toMatchObject({ kept: true })
  expect(suggestions.get("abc1")).toEqual({
    ...made,
    seq: 1,
    would: false,
    items: made.items.map((item, i) => ({ ...item, number: i + 1, status: "shown" })),
  })
  expect(suggestions.get("abd")?.id).toBe("abd2")
  expect(suggestions.get("ab")).toBeUndefined()
  expect(suggestions.get("")).toBeUndefined()
  expect(suggestions.list({ limit: 10 }).map(({ id }) => id)).toEqual(["abd2", "abc1"])
  expect(suggestions.list({ limit: 10, after: 0 }).map(({ id }) => id)).toEqual(["abc1", "abd2"])
  expect(suggestions.list({ limit: 10, would: true }).map(({ id }) => id)).toEqual(["abd2"])
  expect(suggestions.list({ limit: 10, from: NOW + 1 })).toEqual([])
})

test("a session's keys are the items it was shown; those that would have been shown are included on request", () => {
  const { suggestions } = opened()
  suggestions.save(suggestionOf("a", { items: [itemOf({ key: "one" })] }))
  suggestions.save(suggestionOf("b", { items: [itemOf({ key: "two" })] }), { would: true })
  suggestions.save(suggestionOf("c", { items: [itemOf({ key: "three" })], moment: { session: "other" } }))
  suggestions.save(suggestionOf("d", { items: [itemOf({ key: "four" })], moment: { source: "codex" } }))
  expect(suggestions.seen("claude_code", "now-1")).toEqual(new Set(["one"]))
  expect(suggestions.seen("claude_code", "now-1", true)).toEqual(new Set(["one", "two"]))
})

test("saving never throws into a hook: a locked, damaged, newer or unwritable file is reported as not saved", () => {
  const { path, suggestions } = opened({ busyMs: 20 })
  suggestions.save(suggestionOf("a"))
  const other = new Database(path)
  other.exec("begin exclusive")
  expect(suggestions.save(suggestionOf("b"))).toMatchObject({ kept: false, why: expect.stringContaining("locked") })
  expect(suggestions.seen("claude_code", "now-1")).toEqual(new Set(["fix:1"]))
  other.exec("rollback")
  expect(suggestions.save(suggestionOf("b"))).toMatchObject({ kept: true })
  other.pragma("user_version = 99")
  other.close()
  suggestions.close()

  const newer = openSuggestions(path)
  expect(newer.save(suggestionOf("c"))).toMatchObject({ kept: false, why: expect.stringContaining("newer dex") })
  const damaged = join(tempDir(), "suggest.db")
  writeFileSync(damaged, "not a database, ".repeat(1000), { mode: 0o600 })
  const broken = openSuggestions(damaged)
  expect(broken.save(suggestionOf("c"))).toMatchObject({ kept: false, why: expect.stringContaining("damaged") })
  expect(broken.seen("claude_code", "now-1")).toEqual(new Set())
  expect(broken.weights()).toEqual({})
  const nowhere = openSuggestions(join(damaged, "suggest.db"))
  expect(nowhere.save(suggestionOf("c"))).toMatchObject({ kept: false })
})

test("forgetting deletes suggestions that quote a conversation or were shown in it, to the last byte", () => {
  const { path, suggestions } = opened()
  const secret = "quicksilver-marmalade"
  const quoting = itemOf({
    key: secret,
    title: secret,
    summary: secret,
    reason: secret,
    ref: "claude_code:aaaa-1111#12",
  })
  const short = itemOf({ key: "short", summary: secret, ref: "claude_code:aaaa-11#3" })
  const other = itemOf({ key: "other", ref: "claude_code:aaaa-2222#12" })
  suggestions.subscribe(subscriptionOf("sub", { deliver: "webhook", url: "https://example.com/x" }), "whsec_x")
  suggestions.save(suggestionOf("only", { items: [quoting] }), { subscription: "sub" })
  suggestions.save(suggestionOf("both", { items: [other, quoting, short] }))
  suggestions.save(suggestionOf("within", { items: [other], moment: { session: "aaaa-1111", prompt: secret } }))
  suggestions.save(suggestionOf("codex", { items: [itemOf({ ref: "codex:aaaa-1111#1" })] }))
  const bytes = () =>
    readdirSync(dirname(path))
      .map((name) => readFileSync(join(dirname(path), name), "latin1"))
      .join("")
  expect(bytes()).toContain(secret)

  expect(suggestions.forget([{ source: "claude_code", id: "aaaa-1111" }])).toBe(4)
  expect(
    suggestions.list({ limit: 9 }).map(({ id, items }) => [id, items.map(({ key, number }) => [key, number])]),
  ).toEqual([
    ["codex", [["fix:1", 1]]],
    ["both", [["other", 1]]],
  ])
  expect(suggestions.outbox()).toEqual({ waiting: 0, delivered: 0, dead: 0 })
  expect(bytes()).not.toContain(secret)
})

test("forgetting deletes every suggestion of the project: an item may be derived from several conversations", () => {
  const { path, suggestions } = opened()
  const secret = "quicksilver-marmalade"
  const items = [itemOf({ key: "work", summary: `Decided last: "${secret}"`, ref: "claude_code:other#1" })]
  suggestions.save(suggestionOf("here", { items, moment: { project: "/code/api" } }))
  const unnamed = suggestionOf("bare", { items: [itemOf({ key: "b" })], moment: { project: "/x", session: "aaaa" } })
  const { source: _, ...moment } = { ...unnamed.moment, error: secret }
  suggestions.save({ ...unnamed, moment })
  suggestions.save(suggestionOf("elsewhere", { moment: { project: "/code/web" } }))
  suggestions.forget([{ source: "claude_code", id: "aaaa" }], ["/code/api"])
  expect(suggestions.list({ limit: 9 }).map(({ id }) => id)).toEqual(["elsewhere"])
  for (const name of readdirSync(dirname(path)))
    expect(readFileSync(join(dirname(path), name), "latin1")).not.toContain(secret)
})

test("a forgotten session's webhook is deleted with its pending deliveries, so that nothing stays due for ever", () => {
  const { suggestions } = opened()
  const webhook = { deliver: "webhook", url: "https://example.com/x" } as const
  suggestions.subscribe(subscriptionOf("its", { ...webhook, session: "claude_code:aaaa-1111" }), "whsec_x")
  suggestions.subscribe(subscriptionOf("other", webhook), "whsec_y")
  for (const subscription of ["its", "other"])
    suggestions.save(suggestionOf(subscription, { items: [itemOf({ ref: "codex:else#1" })] }), { subscription })
  suggestions.forget([{ source: "claude_code", id: "aaaa-1111" }])
  expect(suggestions.subscriptions().map(({ id }) => id)).toEqual(["other"])
  expect(suggestions.outbox()).toEqual({ waiting: 1, delivered: 0, dead: 0 })
  suggestions.unsubscribe("other")
  expect(suggestions.nextDue()).toBeUndefined()
})

test("the prompt and output of the moment are stored without their secrets", () => {
  const path = join(tempDir(), "suggest.db")
  const suggestions = openSuggestions(path, { redact: redactText })
  onTestFinished(() => suggestions.close())
  const key = `AKIA${"Q".repeat(8)}ZXCV2345`
  const moment = {
    prompt: `is ${key} right?`,
    command: `login ${key}`,
    error: `no such key ${key}`,
    recent_files: ["src/a.ts", `keys/${key}.pem`, "src/password=b.ts"],
  }
  expect(suggestions.save(suggestionOf("a", { moment }))).toMatchObject({ kept: true })
  expect(suggestions.get("a")?.moment.recent_files?.[0]).toBe("src/a.ts")
  expect(suggestions.get("a")?.moment.command).toMatch(/^login \[REDACTED:/)
  const bytes = readdirSync(dirname(path)).map((name) => readFileSync(join(dirname(path), name), "latin1"))
  expect(bytes.join("")).not.toContain(key)
})

test("the file stays small: old suggestions and those beyond 10,000 are deleted, except with a pending delivery", () => {
  const { suggestions } = opened()
  suggestions.subscribe(subscriptionOf("sub", { deliver: "webhook", url: "https://example.com/x" }), "whsec_x")
  suggestions.save(suggestionOf("waits", { moment: { at: NOW - RETENTION_MS - 1 } }), { subscription: "sub" })
  suggestions.save(suggestionOf("old", { moment: { at: NOW - RETENTION_MS - 1 } }))
  for (let i = 0; i < MAX_SUGGESTIONS + 200; i++) suggestions.save(suggestionOf(`s${i}`))
  const kept = suggestions.list({ limit: 100_000 })
  expect(kept.length).toBeGreaterThanOrEqual(MAX_SUGGESTIONS)
  expect(kept.length).toBeLessThan(MAX_SUGGESTIONS + 100)
  expect(kept.at(-1)?.id).toBe("waits")
  expect(suggestions.get("old")).toBeUndefined()
  expect(suggestions.get("s0")).toBeUndefined()
})

test("each item has its own verdict, and the suggestion's status follows from its items", () => {
  const { suggestions } = opened()
  const three = [1, 2, 3].map((n) => itemOf({ key: String(n) }))
  suggestions.save(suggestionOf("a", { items: three }))
  const statuses = () => [suggestions.get("a")!.status, suggestions.get("a")!.items.map(({ status }) => status)]
  suggestions.setStatus("a", "dismissed", 2)
  expect(statuses()).toEqual(["shown", ["shown", "dismissed", "shown"]])
  suggestions.setStatus("a", "used", 1)
  expect(statuses()).toEqual(["used", ["used", "dismissed", "shown"]])
  suggestions.setStatus("a", "dismissed")
  expect(statuses()).toEqual(["dismissed", ["dismissed", "dismissed", "dismissed"]])
  suggestions.setStatus("a", "used")
  expect(statuses()).toEqual(["used", ["shown", "shown", "shown"]])
  expect(suggestions.setStatus("a", "used", 4)).toBeUndefined()
  expect(suggestions.setStatus("b", "used")).toBeUndefined()
})

test("a verdict is counted once for each item; the next one gets the verdict that was counted before", () => {
  const { suggestions } = opened()
  suggestions.save(suggestionOf("a"))
  const calls: unknown[] = []
  const learn: LearnWeights = ({ kind }, before, after, weight) => {
    calls.push([before, after])
    return { [kind]: weight(kind) + after - (before ?? 0.5) }
  }
  suggestions.setStatus("a", "used", 1, learn)
  suggestions.setStatus("a", "used", 1, learn)
  expect(suggestions.weights()).toEqual({ fix: 0.5 })
  suggestions.setStatus("a", "dismissed", 1, learn)
  expect(suggestions.weights()).toEqual({ fix: -0.5 })
  expect(calls).toEqual([
    [undefined, 1],
    [1, 0],
  ])
  expect(suggestions.resetWeights()).toBe(1)
  expect(suggestions.weights()).toEqual({})
  expect(suggestions.get("a")?.status).toBe("dismissed")
})

test("a suggestion that was dismissed and then used is no longer dismissed, nor counted as such", () => {
  const { suggestions } = opened()
  const items = [itemOf({ key: "a", relevance: 0.5 }), itemOf({ key: "b", relevance: 0.5 })]
  suggestions.save(suggestionOf("s", { items }))
  suggestions.setStatus("s", "dismissed", undefined, learnFromVerdict)
  const near = (weights: Record<string, number>) => Object.values(weights).every((value) => Math.abs(value) < 1e-9)
  expect(near(suggestions.weights())).toBe(false)
  const after = suggestions.setStatus("s", "used", undefined, learnFromVerdict)
  expect(after).toMatchObject({ status: "used", items: [{ status: "shown" }, { status: "shown" }] })
  expect(near(suggestions.weights())).toBe(true)
})

test("mutes and the time of the first suggestion are stored", () => {
  const { path, suggestions } = opened()
  expect([suggestions.firstAt(NOW), suggestions.firstAt(NOW + 5)]).toEqual([NOW, NOW])
  suggestions.mute("kind", "change", NOW)
  suggestions.mute("kind", "change", NOW + 1)
  suggestions.mute("project", "/home/someone/api", NOW)
  suggestions.close()
  const again = openSuggestions(path)
  onTestFinished(() => again.close())
  expect(again.mutes()).toEqual([
    { type: "kind", name: "change", at: NOW },
    { type: "project", name: "/home/someone/api", at: NOW },
  ])
  expect([again.unmute("kind", "change"), again.unmute("kind", "change")]).toEqual([true, false])
})

test("a subscription is triggered once per cooldown, whichever process is first", () => {
  const { path, suggestions } = opened()
  const other = openSuggestions(path)
  onTestFinished(() => other.close())
  suggestions.subscribe(
    subscriptionOf("sub", { cooldown_ms: 10_000, deliver: "webhook", url: "https://example.com/" }),
    "whsec_x",
  )
  const save = (by: typeof other, id: string, at: number) =>
    by.save(suggestionOf(id, { status: "pending", moment: { at } }), { subscription: "sub" })
  expect(save(suggestions, "a", NOW)).toMatchObject({ kept: true })
  expect(save(other, "b", NOW + 9_999)).toMatchObject({ kept: false, why: expect.stringContaining("10000 ms") })
  expect(save(other, "c", NOW + 10_000)).toMatchObject({ kept: true })
  expect(suggestions.due(NOW + 10_000, 10).map(({ id }) => id)).toEqual(["msg_a", "msg_c"])
  expect(suggestions.get("b")).toBeUndefined()
  expect(suggestions.subscriptions()[0]?.last_triggered_at).toBe(NOW + 10_000)
  expect(suggestions.unsubscribe("sub")).toBe(true)
  expect(save(other, "d", NOW + 50_000)).toMatchObject({ kept: false })
  expect(suggestions.due(NOW + 60_000, 10)).toEqual([])
})

test("metrics count the suggestions shown, by kind and by relevance, and their latency", () => {
  const { suggestions } = opened()
  suggestions.save(
    suggestionOf("a", {
      latency_ms: 10,
      items: [itemOf({ relevance: 0.95 }), itemOf({ kind: "decision", relevance: 0.61 })],
    }),
  )
  suggestions.save(suggestionOf("b", { latency_ms: 30, items: [itemOf({ relevance: 1 })] }))
  suggestions.save(suggestionOf("c", { latency_ms: 20 }), { would: true })
  suggestions.setStatus("a", "used", 1)
  suggestions.setStatus("a", "dismissed", 2)
  expect(suggestions.metrics()).toEqual({
    suggestions: 2,
    would: 1,
    offered: 3,
    used: 1,
    dismissed: 1,
    latency_ms: { median: 20, p95: 20 },
    by_kind: [
      { kind: "fix", offered: 2, used: 1, dismissed: 0 },
      { kind: "decision", offered: 1, used: 0, dismissed: 1 },
    ],
    by_relevance: [
      { from: 0.6, offered: 1, used: 0, dismissed: 1 },
      { from: 0.9, offered: 2, used: 1, dismissed: 0 },
    ],
  })
  expect(suggestions.metrics(NOW + 1)).toMatchObject({ suggestions: 0, offered: 0, latency_ms: { median: 0 } })
})

test("nobody else can read the file, nor SQLite's log files", () => {
  const { path, suggestions } = opened()
  suggestions.save(suggestionOf("first"))
  for (const name of readdirSync(dirname(path))) expect(statSync(join(dirname(path), name)).mode & 0o077).toBe(0)
})
