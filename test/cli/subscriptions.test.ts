import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { learnFromVerdict } from "../../src/suggest/feedback/feedback.ts"
import { connect } from "../mcp/client.ts"
import { receiver } from "../suggest/deliver/receiver.ts"
import type { Run } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { itemOf, suggestionOf } from "../support/suggestions.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

function homeWithProject() {
  const home = tempDir()
  const project = join(home, "api")
  mkdirSync(project)
  const run = (args: string[], env: Record<string, string> = {}) => dex(home, args, env, project)
  const json = async (args: string[]) => JSON.parse((await run([...args, "--json"])).stdout)
  return { home, project, run, json }
}

function kept(home: string) {
  const suggestions = openSuggestions(join(home, ".dex", "suggest.db"))
  onTestFinished(() => suggestions.close())
  return suggestions
}

const words = ({ stdout, stderr }: Run) => stdout + stderr

test("a person subscribes, gets a suggestion once by polling, says whether it helped, and unsubscribes", async () => {
  const { home, project, run, json } = homeWithProject()
  expect(await run(["subscriptions"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("dex subscribe"),
  })
  const made = await run(["subscribe", "file:src/{a,b}/**", "topic:refresh token", "--priority", "3"])
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining("file:src/{a,b}/**, topic:refresh token") })
  expect(made.stderr).toContain("dex suggest --list --take --subscription")
  expect(words(made)).not.toContain("whsec_")
  const { subscriptions } = await json(["subscriptions"])
  expect(subscriptions).toMatchObject([{ project, priority: 3, deliver: "poll", min_relevance: 0.5, enabled: true }])
  const { id } = subscriptions[0]

  kept(home).save(
    suggestionOf("0f0f0f", {
      status: "pending",
      moment: { project },
      items: [itemOf({ title: "steer \u001b[31m this" }), itemOf({ key: "2", kind: "decision", relevance: 0.6 })],
    }),
    { subscription: id },
  )
  // A poll returns neither streamed suggestions nor those that were only recorded.
  const { id: streamed } = await json(["subscribe", "src/**", "--deliver", "sse"])
  kept(home).save(suggestionOf("e1e1", { status: "pending", moment: { project } }), { subscription: streamed })
  kept(home).save(suggestionOf("e2e2", { status: "pending", moment: { project } }), { would: true })
  const look = await json(["suggestions", "--status", "pending"])
  expect(look.suggestions).toHaveLength(3)
  const taken = await run(["suggestions", "--take", "--subscription", id.slice(0, 6)])
  expect(taken).toMatchObject({ code: 0, stdout: expect.stringContaining("0f0f0f") })
  expect(words(taken)).not.toContain("\u001b")
  expect(await run(["suggestions", "--take"])).toMatchObject({ code: 1, stdout: "" })
  expect((await json(["suggestions", "--status", "shown"])).suggestions).toMatchObject([
    { id: "0f0f0f", subscription: id },
  ])

  expect(await run(["feedback", "0f0f", "used", "--item", "1"])).toEqual({
    code: 0,
    stdout: "0f0f0f  used\n  1  fix: steer this\n",
    stderr: expect.stringContaining("To undo all feedback: dex suggest --feedback --reset"),
  })
  expect(await run(["feedback", "0f0f", "dismissed", "--item", "2"])).toMatchObject({
    code: 0,
    stdout: "0f0f0f  dismissed\n  2  decision: Cannot find module 'zod'\n",
  })
  const report = await run(["suggest", "--report"])
  expect(report).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/by kind\n {2}fix {10}█{10}·{10} {2}50 % {2}1 of 2 used, 0 dismissed\n/),
  })
  expect(report.stdout).toMatch(/decision {5}·{20} {3}0 % {2}0 of 1 used, 1 dismissed/)
  expect(await run(["doctor", "stats", "--suggestions"])).toMatchObject({ code: 2 })
  for (const line of report.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80)
  const totals = await json(["suggest", "--report"])
  expect(totals).toMatchObject({
    suggestions: 2,
    would: 1,
    offered: 3,
    used: 1,
    used_rate: 0.333,
    dismissed_rate: 0.333,
    latency_ms: { median: 12 },
  })
  expect(totals.weights["kind:fix"]).toBeGreaterThan(0)
  expect(totals.weights["kind:decision"]).toBeLessThan(0)
  expect(await run(["feedback", "--reset"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("learned weights are reset"),
  })
  expect((await json(["suggest", "--report"])).weights).toEqual({})

  expect(await run(["unsubscribe", id.slice(0, 6)])).toMatchObject({ code: 0 })
  expect(await run(["unsubscribe", id])).toMatchObject({ code: 2, stderr: expect.stringContaining("No subscription") })
})

test("errors say what to type", async () => {
  const { run } = homeWithProject()
  const cases: [string[], RegExp][] = [
    [
      ["subscribe", "files:src/**"],
      /There is no pattern type files\. The types are file, symbol, topic, entity\. .*'file:files:src/,
    ],
    [["subscribe", "C:\\x"], /There is no pattern type C\./],
    [["subscribe", "file:C:\\x"], /below the project/],
    [["subscribe", "file:/etc/**"], /below the project/],
    [["subscribe", "src/**", "--url", "http://example.com/x"], /must begin with https/],
    [["subscribe", "src/**", "--url", "https://169.254.169.254/x"], /not on the public internet/],
    [["subscribe", "src/**", "--deliver", "webhook"], /--url https/],
    [
      ["subscribe", "src/**", "--deliver", "sse", "--url", "https://example.com"],
      /only be used with --deliver webhook/,
    ],
    [["subscribe", "src/**", "--project", "nowhere"], /There is no folder/],
    [["subscribe", "src/**", "--min-relevance", "2"], /at most 1/],
    [["feedback"], /dex suggest --feedback <id> used\|dismissed/],
    [["feedback", "abc", "loved"], /must be one of: used, dismissed/],
    [["feedback", "abc", "used"], /matches no suggestion, or several/],
    [["feedback", "abc", "--reset"], /omit the id/],
    [["suggestions", "--take", "--status", "used"], /omit --status/],
    [["suggestions", "--subscription", "x"], /matches no subscription, or several/],
    [["config", "set", "deliver.allow_hosts", "http://x/"], /names of hosts/],
  ]
  for (const [args, error] of cases) {
    const { code, stdout, stderr } = await run(args)
    expect([code, stdout], args.join(" ")).toEqual([2, ""])
    expect(stderr).toMatch(error)
  }
})

test("a type may be written in any case, and a glob may contain a colon", async () => {
  const { json } = homeWithProject()
  const { patterns } = await json(["subscribe", "File:src/**", "src/a:b/**", "file:data:v1/**", "symbol:std::vector"])
  expect(patterns).toEqual(["file:src/**", "file:src/a:b/**", "file:data:v1/**", "symbol:std::vector"])
})

test("a verdict without an item is listed for every item", async () => {
  const { home, run } = homeWithProject()
  kept(home).save(suggestionOf("aaaa", { items: [itemOf(), itemOf({ key: "2", kind: "related_code" })] }))
  const both = "  1  fix: Cannot find module 'zod'\n  2  related code: Cannot find module 'zod'\n"
  expect(await run(["feedback", "aaaa", "used"])).toMatchObject({
    stdout: `aaaa  used\n${both}`,
    stderr: expect.stringContaining("name the item with --item"),
  })
  expect(await run(["feedback", "aaaa", "dismissed"])).toMatchObject({ stdout: `aaaa  dismissed\n${both}` })
})

test("learnt weights have three decimals, and zero ones are omitted", async () => {
  const { home, json } = homeWithProject()
  const suggestions = kept(home)
  suggestions.save(suggestionOf("aaaa", { items: [itemOf({ features: { likeness: 1e-60, age: 0, near: 0.123456 } })] }))
  suggestions.setStatus("aaaa", "used", 1, learnFromVerdict)
  expect(suggestions.weights()).toHaveProperty(["fix.age"])
  expect((await json(["suggest", "--report"])).weights).toEqual({ "kind:fix": 0.04, "fix.near": 0.005 })
})

test("a webhook's secret is shown once and hidden from others, and due messages can be sent by hand", async () => {
  const { home, project, run, json } = homeWithProject()
  let status = 500
  const { url, host, received } = await receiver((_, response) => void response.writeHead(status).end())
  await run(["config", "set", "deliver.allow_hosts", host])
  const made = await run(["subscribe", "src/**", "--url", url])
  const secret = /whsec_[\w+/=]+/.exec(made.stdout)?.[0]
  expect(secret).toBeDefined()
  expect(words(await run(["subscriptions"]))).not.toContain("whsec_")
  expect(JSON.stringify(await json(["subscriptions"]))).not.toContain("whsec_")
  const dir = join(home, ".dex")
  for (const name of readdirSync(dir)) {
    if (name.startsWith("suggest.db")) expect(statSync(join(dir, name)).mode & 0o077).toBe(0)
    else if (statSync(join(dir, name)).isFile()) expect(readFileSync(join(dir, name), "latin1")).not.toContain(secret)
  }
  const { subscriptions } = await json(["subscriptions"])
  kept(home).save(suggestionOf("aaaa", { status: "pending", moment: { project } }), {
    subscription: subscriptions[0].id,
  })
  expect(await json(["subscriptions", "--send"])).toMatchObject({
    sent: { delivered: 0, again: 1 },
    outbox: { waiting: 1, last_problem: "500" },
  })
  status = 200
  expect(await json(["subscriptions", "--send"])).toMatchObject({ sent: { delivered: 0, again: 0 } })
  expect(received).toHaveLength(1)
})

test("a private project's subscriptions are shown only inside it, and nothing about it is sent", async () => {
  let secret = ""
  const home = await synced((at) => {
    secret = join(at, "secret")
    mkdirSync(secret)
    claudeSession(at, {
      id: "99999999-5555-4555-8555-555555555555",
      cwd: secret,
      start: "2026-11-03T10:00:00Z",
      turns: [{ user: "hello" }],
    })
  })
  const inside = (args: string[]) => dex(home, args, {}, secret)
  expect(await inside(["private", "."])).toMatchObject({ code: 0 })
  expect(await inside(["subscribe", "src/**", "--url", "https://example.com/x"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("private"),
  })
  expect(await inside(["subscribe", "src/**", "--deliver", "sse"])).toMatchObject({ code: 2 })
  const { id } = JSON.parse((await inside(["subscribe", "src/**", "--json"])).stdout)
  kept(home).save(suggestionOf("aaaa", { moment: { project: secret } }), { subscription: id })
  expect(JSON.parse((await inside(["suggestions", "--json"])).stdout).suggestions).toHaveLength(1)
  const outside = JSON.parse((await dex(home, ["suggestions", "--all", "--json"])).stdout)
  expect(outside).toEqual({ suggestions: [], notes: ["Not shown: 1 suggestion in private projects."] })
  const listed = JSON.parse((await dex(home, ["subscriptions", "--all", "--json"])).stdout)
  expect(listed).toMatchObject({ subscriptions: [], notes: ["Not shown: 1 subscription in private projects."] })
})

test("suggestions about a forgotten conversation are deleted", async () => {
  const home = await synced()
  const [first] = JSON.parse((await dex(home, ["list", "--json"])).stdout).conversations as [{ id: string }]
  const suggestions = kept(home)
  suggestions.save(
    suggestionOf("aaaa", { items: [itemOf({ summary: "quicksilver-marmalade", ref: `${first.id}#2` })] }),
  )
  expect(await dex(home, ["forget", first.id, "--yes"])).toMatchObject({ code: 0 })
  expect(suggestions.get("aaaa")).toBeUndefined()
  const dir = join(home, ".dex")
  const bytes = readdirSync(dir)
    .filter((name) => statSync(join(dir, name)).isFile())
    .map((name) => readFileSync(join(dir, name), "latin1"))
  expect(bytes.join("")).not.toContain("quicksilver-marmalade")
})

test("an agent can subscribe and give feedback over MCP, but cannot set up a webhook or undo anything", async () => {
  const home = tempDir()
  const client = await connect(home)
  const made = await client.call("context_subscribe", {
    patterns: ["file:src/**"],
    min_relevance: 0.8,
    cooldown_ms: 600_000,
  })
  expect(made.structuredContent).toMatchObject({
    deliver: "poll",
    patterns: ["file:src/**"],
    min_relevance: 0.8,
    cooldown_ms: 600_000,
  })
  for (const input of [
    { patterns: ["x"], url: "https://example.com/x" },
    { patterns: ["x"], deliver: "webhook" },
    { patterns: ["x"], min_relevance: 2 },
    { patterns: ["x"], cooldown_ms: -1 },
  ])
    expect(await client.call("context_subscribe", input)).toMatchObject({ isError: true })
  kept(home).save(suggestionOf("aaaa"))
  expect(
    (await client.call("suggestion_feedback", { id: "aaaa", verdict: "used", item: 1 })).structuredContent,
  ).toMatchObject({ status: "used" })
  expect(await client.call("suggestion_feedback", { reset: true })).toMatchObject({ isError: true })
  const textOf = async (name: string, input: object) => (await client.call(name, input)).content[0]!.text
  expect(await textOf("context_subscribe", { patterns: [] })).toBe(
    'What should be watched? For example: context_subscribe {"patterns":["file:src/auth/**"]}',
  )
  expect(await textOf("suggestion_feedback", {})).toBe(
    'Which one, and did it help? suggestion_feedback {"id":"<id>","verdict":"used|dismissed"}. `context_suggest` and `dex suggest --list` show the ids.',
  )
  expect(kept(home).weights()).toMatchObject({ "kind:fix": expect.any(Number) })
})
