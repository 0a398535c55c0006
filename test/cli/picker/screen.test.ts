import { describe, expect, test } from "vitest"
import { drawScreen, type PickerLook } from "../../../src/cli/picker/screen.ts"
import {
  type PickerRow,
  type PickerState,
  startingState,
  typedLineOf,
  withRows,
} from "../../../src/cli/picker/state.ts"
import { widthOf } from "../../../src/render/terminal.ts"

const NOW = Date.parse("2026-11-12T10:00:00Z")
const LOOK: PickerLook = { columns: 60, rows: 10, color: false, unicode: true, now: NOW, enter: "resume" }

const ROWS: PickerRow[] = [
  { title: "Refresh token race", source: "claude_code", project: "/code/api" },
  {
    title: "日本語のタイトルがここにあります、とても長いので切られる必要がある",
    source: "codex",
    project: "/code/web",
  },
  { title: "👩‍💻 emoji 🇩🇪 and e\u0301", source: "claude_code", project: "/code/api" },
].map((row, i) => ({ ref: `x:${i}`, time: `2026-11-1${i}T09:00:00.000Z`, ...row }))

const PREVIEW = {
  ref: "x:0",
  title: "Refresh token race",
  facts: ["Claude Code · api · main", "1 commit"],
  messages: [
    ["", "You · #1", "│ Two refresh it. Why?"],
    ["▸ Bash npm test"],
    ["", "Claude Code · #2", ...Array<string>(12).fill("It is rotated. It is rotated."), "", "So it is used."],
  ],
}

function stateOf(more: Partial<PickerState> = {}, rows = ROWS): PickerState {
  const state = startingState("", ["codex"])
  return { ...withRows(state, { rows, hasMore: false, isNew: true }, 5), ...more }
}

test("an empty line lists the newest first, with age, and with agent and project if they differ", () => {
  expect(drawScreen(stateOf(), undefined, LOOK).lines).toMatchInlineSnapshot(`
    [
      "❯ type to search                                           3",
      "────────────────────────────────────────────────────────────",
      "▌ Refresh token race                        2d  claude  api",
      "  日本語のタイトルがここにあります、とて…   1d  codex   web",
      "  👩‍💻 emoji 🇩🇪 and é                         1h  claude  api",
      "",
      "",
      "",
      "────────────────────────────────────────────────────────────",
      "Enter resume  Tab read  ^O more  Esc leave  Alt-H hand over",
    ]
  `)
})

test("suggested commands begin with the program that started dex", () => {
  const look = { ...LOOK, columns: 100, program: "npx dexctx" }
  const [, rule] = drawScreen(
    stateOf({ note: "May it? `dex --plain` asks, `dex sync` goes on." }),
    undefined,
    look,
  ).lines
  expect(rule).toContain("May it? `npx dexctx --plain` asks, `npx dexctx sync` goes on.")
  const menu = { type: "problem" as const, text: "It is gone: dex sync reads it again." }
  expect(drawScreen(stateOf({ menu }), undefined, look).lines.join()).toContain("npx dexctx sync reads it")
})

test("words show a snippet below each row, cut so that the match is visible", () => {
  const rows = ROWS.map((row) => ({ ...row, snippet: `${"x ".repeat(40)}the **refresh** **token** is rotated` }))
  const state = stateOf({ line: typedLineOf("refresh tok") }, rows)
  expect(drawScreen(state, undefined, LOOK)).toMatchInlineSnapshot(`
    {
      "cursor": {
        "column": 13,
        "row": 0,
      },
      "lines": [
        "❯ refresh tok                                              3",
        "────────────────────────────────────────────────────────────",
        "▌ Refresh token race                        2d  claude  api",
        "▌   …x x x the **refresh** **token** is rotated",
        "  日本語のタイトルがここにあります、とて…   1d  codex   web",
        "    …x x x the **refresh** **token** is rotated",
        "  👩‍💻 emoji 🇩🇪 and é                         1h  claude  api",
        "    …x x x the **refresh** **token** is rotated",
        "────────────────────────────────────────────────────────────",
        "Enter resume  Tab read  ^O more  Esc leave  Alt-H hand over",
      ],
    }
  `)
})

test("the preview is beside the list on a wide screen", () => {
  expect(drawScreen(stateOf(), PREVIEW, { ...LOOK, columns: 100, rows: 20 }).lines).toMatchInlineSnapshot(`
    [
      "❯ type to search                                                                                   3",
      "──────────────────────────────────────────────────────────────┬─────────────────────────────────────",
      "▌ Refresh token race                                  2d  api │ Refresh token race",
      "  日本語のタイトルがここにあります、とても長いので…   1d  web │ Claude Code · api · main · 1 commit",
      "  👩‍💻 emoji 🇩🇪 and é                                   1h  api │",
      "                                                              │ You · #1",
      "                                                              │ │ Two refresh it. Why?",
      "                                                              │ ▸ Bash npm test",
      "                                                              │",
      "                                                              │ Claude Code · #2",
      "                                                              │ It is rotated. It is rotated.",
      "                                                              │ It is rotated. It is rotated.",
      "                                                              │ It is rotated. It is rotated.",
      "                                                              │ It is rotated. It is rotated.",
      "                                                              │ It is rotated. It is rotated.",
      "                                                              │ It is rotated. It is rotated.",
      "                                                              │ … 7 more lines",
      "                                                              │",
      "──────────────────────────────────────────────────────────────┴─────────────────────────────────────",
      "Enter resume  Tab read  ^O more  Esc leave  Alt-H hand over  Alt-C copy  Alt-A agent  Alt-P project",
    ]
  `)
  expect(drawScreen(stateOf(), PREVIEW, { ...LOOK, columns: 40, rows: 8 }).lines).toMatchInlineSnapshot(`
    [
      "❯ type to search                       3",
      "────────────────────────────────────────",
      "▌ Refresh token race            2d  api",
      "  日本語のタイトルがここにあ…   1d  web",
      "  👩‍💻 emoji 🇩🇪 and é             1h  api",
      "",
      "────────────────────────────────────────",
      "Enter resume  Tab read  ^O more",
    ]
  `)
})

test("below 90 columns the preview is below the list, if there are rows for both", () => {
  expect(drawScreen(stateOf(), PREVIEW, { ...LOOK, columns: 80, rows: 20 }).lines).toMatchInlineSnapshot(`
    [
      "❯ type to search                                                               3",
      "────────────────────────────────────────────────────────────────────────────────",
      "▌ Refresh token race                                            2d  claude  api",
      "  日本語のタイトルがここにあります、とても長いので切られる必…   1d  codex   web",
      "  👩‍💻 emoji 🇩🇪 and é                                             1h  claude  api",
      "",
      "",
      "",
      "",
      "",
      "",
      "────────────────────────────────────────────────────────────────────────────────",
      "  Refresh token race",
      "  Claude Code · api · main · 1 commit",
      "",
      "  You · #1",
      "  │ Two refresh it. Why?",
      "  ▸ Bash npm test",
      "────────────────────────────────────────────────────────────────────────────────",
      "Enter resume  Tab read  ^O more  Esc leave  Alt-H hand over  Alt-C copy",
    ]
  `)
  const hasPreview = (columns: number, rows: number) =>
    drawScreen(stateOf(), PREVIEW, { ...LOOK, columns, rows }).lines.some((line) => line.includes("You · #1"))
  expect([hasPreview(89, 20), hasPreview(50, 18), hasPreview(49, 18), hasPreview(80, 17)]).toEqual([
    true,
    true,
    false,
    false,
  ])
})

test.each([
  [80, 45],
  [100, 50],
  [140, 70],
])("at %i columns a title has at least %i columns, whatever else the row has", (columns, least) => {
  const title = `${"A title that goes on and on ".repeat(8)}`
  const projects = ["/code/devenv/cli", "/code/workspace/cli", "/code/a-project-with-a-long-name"]
  const rows = ROWS.map((row, i) => ({ ...row, title, project: projects[i]!, time: "2025-01-04T12:00:00Z" }))
  for (const one of [rows, rows.map((row) => ({ ...row, snippet: "the **token**" }))]) {
    const { lines } = drawScreen(stateOf({}, one), PREVIEW, { ...LOOK, columns, rows: 24 })
    const shown = lines.flatMap((line) => /^[▌ ] (A title.*…)/.exec(line)?.[1] ?? [])
    expect(shown).toHaveLength(3)
    for (const text of shown) expect(widthOf(text)).toBeGreaterThanOrEqual(least - 1)
  }
  const { lines } = drawScreen(stateOf({}, rows), PREVIEW, { ...LOOK, columns, rows: 24 })
  expect(lines.some((line) => line.includes("Jan 2025"))).toBe(true)
  expect(lines.some((line) => line.includes("devenv/cli"))).toBe(columns !== 100)
})

test("without UTF-8 the lines are ASCII", () => {
  const own = drawScreen(stateOf({}, ROWS.slice(0, 1)), PREVIEW, { ...LOOK, columns: 100, unicode: false }).lines
  expect(own.join("")).toMatch(/^[\x20-\x7e]+$/)
  expect(own.slice(0, 4)).toMatchInlineSnapshot(`
    [
      "> type to search                                                                                   1",
      "--------------------------------------------------------------+-------------------------------------",
      "> Refresh token race                                       2d | Refresh token race",
      "                                                              | Claude Code - api - main - 1 commit",
    ]
  `)
})

test("if nothing is found, it says what can be changed", () => {
  const state = stateOf({ line: typedLineOf("zebra"), filter: { scope: "project", days: 7, source: "codex" } }, [])
  expect(drawScreen(state, undefined, LOOK).lines).toMatchInlineSnapshot(`
    [
      "❯ zebra                         codex · this project · 7d  0",
      "────────────────────────────────────────────────────────────",
      "  Nothing found.",
      "  Esc clears the words.",
      "  ^O changes agent, project and time.",
      "",
      "",
      "",
      "────────────────────────────────────────────────────────────",
      "^O more  Esc leave  Alt-A agent  Alt-P project  Alt-T time",
    ]
  `)
})

test("an empty list says what is being read, and where it is kept", () => {
  const { lines } = drawScreen(stateOf({ syncing: "5 of 302, about 2 min" }, []), undefined, { ...LOOK, columns: 80 })
  expect(lines[0]).toMatch(/0 {2}⟳ 5 of 302, about 2 min$/)
  expect(lines[2]).toContain("Reading what your coding agents wrote, the newest first.")
})

describe("every line fits", () => {
  const states: Record<string, PickerState> = {
    rows: stateOf(),
    "a long line": stateOf({ line: typedLineOf("日本 token ".repeat(30)) }),
    "a cursor in the middle": stateOf({ line: { ...typedLineOf("word ".repeat(60)), cursor: 100 } }),
    "a note": stateOf({
      note: "1,234 new messages, read in 1.2 s. Not everything is read yet: `dex sync` goes on.",
      syncing: "3 of 10",
    }),
    "a notice": stateOf({
      notice: "Copied, if the terminal allows it: dex resume claude_code:1",
    }),
    actions: stateOf({ menu: { type: "actions" } }),
    "hand over": stateOf({ menu: { type: "hand_over", selected: 0 } }),
    problem: stateOf({ menu: { type: "problem", text: "The agent's own file is not here. ".repeat(9) } }),
    snippets: stateOf(
      {},
      ROWS.map((row) => ({ ...row, snippet: "日本 **token** ".repeat(20) })),
    ),
    nothing: stateOf({}, []),
  }
  for (const [name, state] of Object.entries(states))
    test(name, () => {
      for (const color of [false, true])
        for (const columns of [20, 40, 59, 60, 80, 89, 90, 100, 140, 200])
          for (const rows of [3, 8, 24, 50]) {
            const look = { ...LOOK, color, columns, rows }
            const { lines, cursor } = drawScreen(state, PREVIEW, look)
            expect([columns, rows, lines.length <= rows]).toEqual([columns, rows, true])
            expect([columns, lines.filter((line) => widthOf(line) > columns)]).toEqual([columns, []])
            expect(cursor.column).toBeLessThan(columns)
          }
    })
})

test("text from a transcript reaches the terminal only as text", () => {
  const evil = "a\x1b]0;owned\x07b\x1b[2Jc\u202ed\x9b31me\nf\rg\x08h"
  const row = { ref: "x:1", title: evil, time: "", source: evil, project: `/code/${evil}`, snippet: `**${evil}**` }
  const preview = {
    ref: "x:1",
    title: evil,
    facts: [evil],
    messages: [],
  }
  const state = stateOf({ line: typedLineOf("a"), note: evil, notice: evil }, [row, ...ROWS])
  for (const color of [false, true]) {
    const text = drawScreen(state, preview, { ...LOOK, columns: 140, rows: 24, color }).lines.join("")
    expect(text.replaceAll(/\x1b\[\d+m/g, "")).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
  }
})

test("matches, ages and agents are coloured", () => {
  const state = stateOf({}, [{ ...ROWS[0]!, snippet: "the **refresh** token" }, ROWS[1]!])
  const text = drawScreen(state, PREVIEW, { ...LOOK, columns: 120, color: true }).lines.join("\n")
  expect(text).toContain("\x1b[33mrefresh\x1b[0m")
  expect(text).toContain("\x1b[1mRefresh token race")
})
