import { describe, expect, test } from "vitest"
import { printDecisions } from "../../src/cli/print/decisions.ts"
import { printFix, printTests } from "../../src/cli/print/fix.ts"
import { printMute } from "../../src/cli/print/keeping.ts"
import { printSearch } from "../../src/cli/print/search.ts"
import { printSubscribed, printSuggestions, printUseReport } from "../../src/cli/print/suggestions.ts"
import { formatError } from "../../src/cli/print/words.ts"
import type { OutputOf } from "../../src/core/tool.ts"
import { widthOf } from "../../src/render/terminal.ts"
import type { suggestions } from "../../src/tools/suggestions/suggestions.ts"

const context = { terminal: { columns: 80, color: false, interactive: true }, home: "/home/someone", numbered: true }
const REF = "claude_code:11111111-2222-4333-8444-555555555555#1234"
const LONG = "a/quite/long/path/that/takes/most/of/the/line/by/itself/service.ts"
const notes = (printed: { notes?: string[] }) => printed.notes!.join("\n")

type Item = OutputOf<typeof suggestions>["suggestions"][number]["items"][number]
const ITEM: Item = {
  number: 1,
  kind: "fix",
  title: "A title",
  summary: "",
  reason: "why",
  relevance: 1,
  status: "shown",
}
const SUGGESTED = {
  id: "0f0f0f0f0f0f",
  sequence: 1,
  date: "2026-01-02T00:00:00Z",
  status: "shown" as const,
  event: "watch",
  project: "/code/api",
}

describe("a ref is never cut, because people copy it", () => {
  const whole = (lines: string[]) => expect(lines.filter((line) => line.includes("claude_code:"))).not.toContain("…")
  const decision = { quote: "Sessions", kind: "said", by: "person", date: "2026-01-02T00:00:00Z", ref: REF, files: [] }

  test("in decisions", () => {
    const project = "/code/a-project-with-a-name-that-is-long"
    const shown = { ...decision, project, superseded_by: { quote: "x", date: decision.date, ref: REF } }
    const { lines } = printDecisions({ decisions: [shown], total: 1, notes: [], estimated_tokens: 9 }, context, {})
    expect(lines.filter((line) => line.trim() === REF)).toHaveLength(2)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
  })

  test("in suggestions, with the verdict before a title that is cut", () => {
    const title = "a title ".repeat(20)
    const item = {
      number: 1,
      kind: "decision",
      title,
      reason: "why",
      ref: REF,
      file: LONG,
      status: "dismissed" as const,
    }
    const one = {
      ...SUGGESTED,
      id: "0f0f",
      date: decision.date,
      status: "dismissed" as const,
      items: [{ ...ITEM, ...item }],
    }
    const { lines } = printSuggestions({ suggestions: [one], notes: [] }, context, {})
    expect(lines[1]).toMatch(/^ {2}1 {2}\(dismissed\) decision: a title .*…$/)
    expect(lines).toContain(`     ${REF}`)
    expect(lines).toContain(`     ${LONG}`)
  })

  test("in fixes and in tests", () => {
    const fix = {
      command: "npm test",
      error: "x",
      solved: true,
      ref: REF,
      failed_ref: REF,
      date: decision.date,
      project: `/code/${"long".repeat(8)}`,
      files: [],
      edit: "",
      likeness: 1,
      source: "claude_code",
    }
    whole(printFix({ fixes: [fix], total: 1, unsolved: 0, notes: [], estimated_tokens: 9 }, context).lines)
    expect(printFix({ fixes: [fix], total: 1, unsolved: 0, notes: [], estimated_tokens: 9 }, context).lines).toContain(
      `    ${REF}`,
    )
    const ref = `${REF}${"9".repeat(30)}`
    const failing = [{ test: "t", date: decision.date, ref, command: "npm test" }]
    const output = {
      failing,
      unnamed: [],
      total: 1,
      runs_known: 1,
      newest: decision.date,
      notes: [],
      project: "/code/api",
      estimated_tokens: 9,
    }
    expect(printTests(output, context).lines).toContain(`    ${ref}`)
  })
})

describe("suggestions in a list", () => {
  const item = ITEM
  const print = (items: Item[]) => printSuggestions({ suggestions: [{ ...SUGGESTED, items }], notes: [] }, context, {})

  test("name a file once", () => {
    expect(print([{ ...item, title: "src/a.ts changes with it", file: "src/a.ts" }]).lines).toEqual([
      expect.stringContaining("0f0f"),
      "  1  fix: src/a.ts changes with it",
      "     why",
      "",
    ])
  })

  test("name the file if the title is cut before it", () => {
    const title = `${"A long title ".repeat(6)} src/a.ts`
    expect(print([{ ...item, title, file: "src/a.ts" }]).lines).toContain("     src/a.ts")
  })

  test("ask about an item without a verdict, with a command that can be typed", () => {
    expect(
      notes(
        print([
          { ...item, status: "used" },
          { ...item, number: 2 },
        ]),
      ),
    ).toBe("Did it help? dex suggest --feedback 0f0f0f0f used --item 2")
    expect(print([{ ...item, status: "dismissed" }]).notes).toEqual([])
  })

  test("keep learnt weights on the same line as their names", () => {
    const rates = { offered: 1, used: 1, dismissed: 0, used_rate: 1, dismissed_rate: 0 }
    const stats = {
      ...rates,
      suggestions: 1,
      would: 0,
      latency_ms: { median: 0, p95: 0 },
      by_kind: [],
      by_relevance: [],
    }
    const weights = Object.fromEntries([3, 5, 8, 13, 17].map((n) => [`related_code.${"x".repeat(n)}`, 0.12]))
    const learnt = printUseReport({ ...stats, weights }, context).lines.join("\n")
    for (const name of Object.keys(weights)) expect(learnt).toContain(`${name} +0.12`)
  })
})

test("a subscription without a pause says so", () => {
  const subscription = {
    id: "bd53b689",
    project: "/home/someone/api",
    patterns: ["file:src/**"],
    deliver: "poll" as const,
    priority: 1,
    enabled: true,
  }
  const bounds = { min_relevance: 0.5, max_per_trigger: 5 }
  const last = (cooldown_ms: number) =>
    printSubscribed({ ...subscription, ...bounds, cooldown_ms, notes: [] }, context).lines.at(-1)
  expect(last(5000)).toBe("    poll; relevance ≥ 0.5, 5 at a time, at most every 5.0 s; not notified yet")
  expect(last(0)).toBe("    poll; relevance ≥ 0.5, 5 at a time; not notified yet")
})

test("an error is wrapped between words on a terminal, and not at all in a pipe", () => {
  const message = `There is no folder of that name here, and ${"this goes on ".repeat(5)}\nSecond line.`
  const shown = formatError(message, context.terminal)
  expect(shown.split("\n")).toEqual([
    "dex: There is no folder of that name here, and this goes on this goes on this",
    "goes on this goes on this goes on ",
    "Second line.",
    "",
  ])
  expect(formatError(message, { ...context.terminal, interactive: false })).toBe(`dex: ${message}\n`)
})

describe("if there is nothing, it suggests a step that was not just taken", () => {
  test("decisions", () => {
    const nothing = { decisions: [], total: 0, notes: [], estimated_tokens: 0 }
    expect(notes(printDecisions(nothing, context, {}))).toContain("dex decisions --all")
    const everywhere = notes(printDecisions(nothing, context, { all: true }))
    expect(everywhere).not.toContain("--all")
    expect(everywhere).toContain("dex search")
  })

  test("suggestions", () => {
    const nothing = { suggestions: [], notes: [] }
    expect(notes(printSuggestions(nothing, context, {}))).toMatch(/dex suggest --file .*dex suggest --list --all/)
    expect(notes(printSuggestions(nothing, context, { all: true }))).not.toContain("--all")
    expect(notes(printSuggestions(nothing, context, { take: true }))).toMatch(/^Nothing is pending/)
  })

  test("statistics of suggestions", () => {
    const rates = { offered: 0, used: 0, dismissed: 0, used_rate: 0, dismissed_rate: 0 }
    const stats = {
      ...rates,
      suggestions: 0,
      would: 0,
      latency_ms: { median: 0, p95: 0 },
      by_kind: [],
      by_relevance: [],
    }
    expect(notes(printUseReport({ ...stats, weights: {} }, context))).toContain("dex suggest --file")
  })
})

describe("dex suggest --mute", () => {
  const since = "2026-11-03T00:00:00Z"
  const kind = { type: "kind" as const, name: "related_code", since }
  const project = { type: "project" as const, name: "/home/someone/my api", since }

  test("names the mute in the command that undoes it", () => {
    expect(printMute({ changed: true, name: "related_code", mutes: [kind, project] }, context)).toEqual({
      lines: ["related_code is now muted."],
      notes: ["To turn it on again: dex suggest --mute related_code --off"],
    })
    expect(notes(printMute({ changed: true, name: project.name, mutes: [project] }, context))).toBe(
      "To turn it on again: dex suggest --mute '~/my api' --off",
    )
    expect(notes(printMute({ mutes: [kind] }, context))).toBe(
      "To turn it on again: dex suggest --mute related_code --off",
    )
    expect(notes(printMute({ mutes: [kind, project] }, context))).toContain("dex suggest --mute <name> --off")
  })

  test("says that something is on again", () => {
    expect(printMute({ changed: true, name: "related_code", mutes: [] }, context)).toEqual({
      lines: ["related_code is on again."],
      notes: [],
    })
    expect(printMute({ changed: false, name: "related_code", mutes: [] }, context).lines).toEqual([
      "related_code was not muted.",
    ])
  })

  test("says that nothing is muted, and how to mute something", () => {
    expect(notes(printMute({ mutes: [] }, context))).toMatch(
      /^Nothing is muted\. .*dex suggest --mute related_code.*proactive\.enabled false/,
    )
  })
})

describe("search on a terminal", () => {
  const NOW = Date.parse("2026-11-16T10:00:00Z")
  const hit = {
    id: REF,
    title: "A title that goes on and on, ".repeat(6),
    project: "/code/api",
    source: "claude_code",
    date: "2026-11-14T09:00:00Z",
    kind: "person",
    message_count: 3,
    estimated_tokens: 9,
    message_index: 1,
    more_matches: 0,
    score_final: 1,
    snippet: `${"some words before it ".repeat(4)}the **refresh** **token** is rotated${" and more".repeat(20)}`,
  }
  const results = Array.from({ length: 10 }, () => hit)
  const output = { results, total: 10, matched: "all" as const, mode: "lexical" as const, notes: [] }

  test.each([
    [40, 4],
    [80, 3],
    [140, 3],
  ])("at %i columns a row takes %i lines, none too wide, and shows the words", (columns, most) => {
    for (const color of [false, true]) {
      const terminal = { columns, color, interactive: true }
      const { lines } = printSearch(output, { ...context, terminal }, {}, NOW)
      expect(lines).toHaveLength(10 * most)
      expect(lines.filter((line) => widthOf(line.replace(/\x1b\[\d+m/g, "")) > columns)).toEqual([])
      expect(lines.filter((line) => line.includes(color ? "\x1b[33mrefresh" : "**refresh**"))).toHaveLength(10)
      expect(lines.filter((line) => line.includes("2d \u00b7 claude_code \u00b7 api"))).toHaveLength(10)
    }
  })

  test("names the owner of a colleague's conversation, even if the ref is not shown", () => {
    const results = [{ ...hit, id: `ann/${hit.id}` }, hit]
    const heads = printSearch({ ...output, results }, context, {}, NOW).lines.filter((line) => /^ \d/.test(line))
    expect(heads[0]).toContain("ann \u00b7 2d \u00b7 claude_code \u00b7 api")
    expect(heads[1]).not.toContain("ann")
  })

  test("a text without spaces is cut at the end of the line", () => {
    const snippet = `\u2026**\u4ee4\u724c**${"\u5728\u4e24\u4e2a\u8bf7\u6c42\u4e2d".repeat(30)}`
    const { lines } = printSearch({ ...output, results: [{ ...hit, snippet }] }, context, {}, NOW)
    expect(widthOf(lines[1]!)).toBeLessThanOrEqual(80)
    expect(lines[1]).toContain("\u4ee4\u724c")
  })
})
