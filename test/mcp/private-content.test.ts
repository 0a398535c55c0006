import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"
import { claudeSession, type Turn } from "../support/home.ts"
import { makeRepository } from "../support/repository.ts"
import { sharedTempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { type Client, connectOnce } from "./client.ts"

// What a private project contains changes no answer that an agent gets elsewhere: no number, no order and no word of it. Homes
// that differ only in one private project are asked the same questions.

const OWN = "44444444-4444-4444-8444-444444444444"
const FILE = "src/parser.ts"

/** Calls for every tool, in this order: those that write come last. A tool that is missing here fails the test. */
const CALLS: Record<string, object[]> = {
  dex_guide: [{}],
  dex_stats: [{}],
  dex_search: [
    ...[
      "xylophane",
      "xylophnae",
      "xylo",
      "xyloph",
      "connec",
      "conec",
      "connection",
      "quokka",
      "zebraword",
      "walrusword",
    ],
    ...[
      "ledger",
      "ledger parser",
      "marsupial quokka burrow",
      "where does the marsupial keep its quokka burrow",
      "zebraword marsupial gnuword okapiword",
    ],
    ...[
      "ledger parser connection marsupial",
      '"ledger parser" -quokka',
      "ledger project:acme",
      "ledger project:clients",
    ],
    ...[
      "ledger file:secret-plan.ts",
      "ledger file:parser.ts",
      "ledger model:model-a",
      "ledger tool:Edit",
      "file:secret-plan.ts",
    ],
    ...["ledger from:2026-11-01", "project:acme", "quokkas", "xylophane ledger"],
  ].flatMap((query) => [{ query }, { query, by: "message", limit: 50 }, { query, in: "docs" }]),
  dex_list: [
    { limit: 100 },
    { all: true, limit: 100 },
    { project: "acme" },
    { file: "secret-plan.ts" },
    { file: FILE },
    { in: "docs" },
    { in: "docs", collections: ["secret-plans"] },
    { in: "docs", collections: ["no-plans"] },
  ],
  dex_get: [{ ids: [OWN] }, { ids: ["4444"] }, { ids: ["44444444"] }, { ids: [OWN], format: "outline" }],
  dex_timeline: [{ id: OWN }, { id: `${OWN}#1`, session: "all", before: 20, after: 20 }],
  dex_why: [{ target: "a.ts" }, { target: "HEAD" }],
  suggestion_feedback: [..."0123456789abcdef"].map((id) => ({ id, verdict: "used" })),
  context_suggest: [
    {},
    { current_file: FILE },
    { current_file: "secret-plan.ts" },
    { error: "TypeError: ledger.sum is not a function\n    at parse (src/parser.ts:3:9)" },
    { error: "SecretError: the walrus has left the quokka burrow at secret-plan.ts:7" },
    { current_symbol: "walrusword" },
  ],
  context_subscribe: [{ patterns: ["file:src/**"] }],
  dex_note: [{ words: ["the ledger is rounded"] }],
}

const filler = (i: number): Turn[] => [
  { user: `Question ${i} about the ledger and its parser` },
  { assistant: `The parser reads line ${i} of the ledger over one connection. ${"Then it waits. ".repeat(i % 5)}` },
]
const fixing = (file: string, error: string): Turn[] => [
  { user: "The tests fail" },
  { tool: { name: "Bash", input: { command: "npm test" }, output: error, error: true } },
  { tool: { name: "Edit", input: { file_path: file, old_string: "a", new_string: "b" }, output: "ok" } },
  { tool: { name: "Bash", input: { command: "npm test" }, output: "1 passed" } },
]

/** What is in the private project, by home. Undefined: there is no private project at all. */
const PRIVATE: Record<string, ((home: string, acme: string) => Promise<void>) | undefined> = {
  "no private project": undefined,
  "an empty private project": async () => {},
  "a private project with much in it": async (home, acme) => {
    for (let i = 0; i < 60; i++) {
      const words = "xylophane xylophones connecx connectors quokka burrow walrusword ledger marsupial "
      claudeSession(home, {
        id: `4444${String(i).padStart(4, "0")}-4444-4444-8444-444444444444`,
        cwd: acme,
        start: `2025-0${1 + (i % 9)}-03T10:00:00Z`,
        title: `The walrus affair ${i}`,
        turns: [{ user: words.repeat(1 + (i % 7)) }, { assistant: `${"long ".repeat(40 * i)}conectx quokkas` }],
      })
    }
    // Begins in the public repository and edits a file there, but also worked in the private project.
    const turns = fixing(
      join(home, "code/own", FILE),
      "TypeError: ledger.sum is not a function\n    at src/parser.ts:3:9",
    )
    claudeSession(home, { id: "44444445-5555-4555-8555-555555555555", cwd: acme, start: "2026-11-04T10:00:00Z", turns })
    const secret = fixing(join(acme, "secret-plan.ts"), "SecretError: the walrus has left the quokka burrow")
    claudeSession(home, {
      id: "44444446-6666-4666-8666-666666666666",
      cwd: acme,
      start: "2026-11-05T10:00:00Z",
      turns: secret,
    })
    mkdirSync(join(acme, "plans"))
    writeFileSync(join(acme, "plans/plan.md"), "# Plan\n\nThe ledger of the walrus, the parser and the quokka.\n")
    await syncHome(home)
    await dex(home, ["docs", "add", "plans", "--name", "secret-plans"], {}, acme)
    await dex(home, ["suggest", "--file", "secret-plan.ts"], {}, acme)
  },
}

async function homeWith(
  home: string,
  fill: ((home: string, acme: string) => Promise<void>) | undefined,
): Promise<void> {
  const [own, acme] = [join(home, "code/own"), join(home, "clients/acme")]
  const { gitAt } = makeRepository(own)
  writeFileSync(join(own, "a.ts"), "export const a = 1\n")
  gitAt("2026-11-03T11:00:00Z", "add", "-A")
  gitAt("2026-11-03T11:00:00Z", "commit", "-q", "-m", "start")
  for (let i = 0; i < 30; i++) {
    const id = `${String(50_000_000 + i)}-0000-4000-8000-000000000000`
    claudeSession(home, {
      id,
      cwd: own,
      start: `2026-10-${String(1 + (i % 28)).padStart(2, "0")}T10:00:00Z`,
      turns: filler(i),
    })
  }
  const turns: Turn[] = [
    { user: "Tune the xylophone of the marsupial, then the connector" },
    ...fixing(join(own, FILE), "TypeError: ledger.sum is not a function\n    at parse (src/parser.ts:3:9)"),
  ]
  claudeSession(home, { id: OWN, cwd: own, start: "2026-11-03T10:00:00Z", title: "The xylophone", turns })
  await syncHome(home)
  if (fill) {
    mkdirSync(acme, { recursive: true })
    makeRepository(acme)
    await dex(home, ["private", acme])
    await fill(home, acme)
    await syncHome(home)
  }
}

/** Every answer, with what differs between any two homes masked: their folder, times of this test, and random ids. */
async function answersOf(client: Client, home: string, started: number): Promise<Record<string, string>> {
  const masked = (text: string) =>
    text
      .replaceAll(home, "HOME")
      .replaceAll(/20\d\d-\d\d-\d\dT[\d:.]+Z/g, (time) => (Date.parse(time) >= started - 60_000 ? "NOW" : time))
      .replaceAll(/dex_note:[\w-]+/g, "NOTE")
      .replaceAll(/(id\\*":\\*"|suggestion |subscription )[0-9a-f]{8,12}\b(?!-)/g, "$1ID")
  await expect
    .poll(async () => JSON.stringify(await client.call("context_suggest", { current_symbol: "none" })))
    .not.toContain("still learning")
  const answers: Record<string, string> = {}
  for (const [name, inputs] of Object.entries(CALLS))
    for (const input of inputs)
      answers[`${name} ${JSON.stringify(input)}`] = masked(JSON.stringify(await client.call(name, input)))
  answers.resources = masked(JSON.stringify((await client.request("resources/list")).result))
  return answers
}

function aroundDifference(call: string, usual: string, own: string): string[] {
  const at = [...usual].findIndex((character, i) => character !== own[i])
  return [call, ...[usual, own].map((text) => text.slice(Math.max(0, at - 100), at + 100))]
}

describe("the content of a private project", () => {
  // Folders of one length and one number of words, because their paths are part of the indexed text.
  const all = sharedTempDir()
  const homeOf = (name: string) => join(all, "abc"[Object.keys(PRIVATE).indexOf(name)]!)

  beforeAll(async () => {
    for (const [name, fill] of Object.entries(PRIVATE)) await homeWith(homeOf(name), fill)
  })
  const clients = new Map(
    Object.keys(PRIVATE).map((name) => [name, connectOnce(homeOf(name), { cwd: join(homeOf(name), "code/own") })]),
  )
  const started = Date.now()
  const asked = new Map<string, Promise<Record<string, string>>>()
  const answersIn = (name: string) => {
    const answers = asked.get(name) ?? answersOf(clients.get(name)!(), homeOf(name), started)
    asked.set(name, answers)
    return answers
  }

  test("there is a call here for every tool", () => {
    expect(Object.keys(CALLS).sort()).toEqual(offeredTools.map(({ mcp }) => mcp.name).sort())
  })

  test("the calls find the public content", async () => {
    const answers = JSON.stringify(await answersIn("no private project"))
    for (const words of ["The xylophone", "Showing results for", "words that start with it", "match too little"])
      expect(answers).toContain(words)
  })

  test.each(Object.keys(PRIVATE).slice(1))("with %s, every answer elsewhere is the same", async (name) => {
    const [usual, own] = [await answersIn("no private project"), await answersIn(name)]
    const different = Object.keys(usual).filter((call) => usual[call] !== own[call])
    expect(different.map((call) => aroundDifference(call, usual[call]!, own[call]!))).toEqual([])
  })
})
