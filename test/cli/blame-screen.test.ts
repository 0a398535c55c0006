import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { printBlame } from "../../src/cli/print/blame.ts"
import { widthOf } from "../../src/render/terminal.ts"
import { fill } from "../support/blame-shop.ts"
import { makeRepository } from "../support/repository.ts"
import { sharedTempDir } from "../support/temp.ts"
import { hasTmux, openScreen, type TmuxScreen } from "../support/tmux.ts"

const NOW = Date.parse("2026-11-16T10:00:00Z")
const CODE = `\treturn ${"value_".repeat(40)}`

/** Lines of two conversations, of a person, and one that is not committed. */
function outputOf(count: number): Parameters<typeof printBlame>[0] {
  const lines = Array.from({ length: count }, (_, i) => {
    const run = Math.floor(i / 4) % 3
    const who = { conversation: `claude_code:${run}fdc0000-0000-4000-8000-000000000001`, agent: "Claude Code" }
    const title = "When two requests refresh the token at once one of them is logged out"
    return {
      line: i + 1,
      text: CODE,
      commit: i === count - 1 ? "" : String(run).repeat(40),
      date: i === count - 1 ? "" : "2026-02-04T12:00:00Z",
      subject: "auth",
      was_line: 1,
      was_path: "src/auth.ts",
      ...(run === 2
        ? { level: "unknown" as const }
        : {
            ...who,
            ref: `${who.conversation}#12`,
            title,
            level: run === 0 ? ("proved" as const) : ("likely" as const),
          }),
    }
  })
  const counts = { total: count, proved: 0, likely: 0, unknown: 0 }
  return { target: "src/auth.ts", kind: "file", lines, commits: [], agents: [], notes: [], ...counts }
}

describe("a file on a terminal", () => {
  const draw = (columns: number, { numbered = true, color = false } = {}) =>
    printBlame(
      outputOf(200),
      { terminal: { columns, color, interactive: true }, numbered, home: "/home/dev" },
      { target: "src/auth.ts" },
      NOW,
    )

  test("the code has three fifths of every line, and no line is wrapped", () => {
    for (let columns = 60; columns <= 200; columns += 7)
      for (const numbered of [true, false]) {
        const { lines } = draw(columns, { numbered })
        expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(columns)
        const [code] = /return value.*/.exec(lines[0]!)!
        const indent = 4
        if (numbered)
          expect(code.length + indent, `${columns} columns`).toBeGreaterThanOrEqual(Math.floor(0.6 * columns) - 1)
      }
    expect(/ {4}return .*/.exec(draw(100).lines[0]!)![0].length).toBeGreaterThanOrEqual(60)
  })

  test("the first line of a run names the conversation, by the number that dex show takes", () => {
    const { lines, listing } = draw(100)
    expect(lines.slice(0, 5).map((line) => line.split("    return")[0])).toEqual([
      "p 1 When two requests refres… Feb 4   1 ",
      "p                                     2 ",
      "p                                     3 ",
      "p                                     4 ",
      "l 2 When two requests refres… Feb 4   5 ",
    ])
    expect(lines[8]).toMatch(/^u +22222222 +Feb 4 +9 /)
    expect(lines[199]).toMatch(/^l 2 When two .*now 200 /)
    expect(listing).toEqual([0, 1].map((run) => `claude_code:${run}fdc0000-0000-4000-8000-000000000001#12`))
    expect(lines.slice(-2)).toEqual([
      "1  When two requests refresh the token at once one of them is logged out · Claude Code",
      "2  When two requests refresh the token at once one of them is logged out · Claude Code",
    ])
    expect(draw(100, { numbered: false }).lines[0]).toMatch(/^p 0fdc0000#12 /)
  })

  test("proved, likely and unknown lines have different colours", () => {
    const { lines } = draw(100, { color: true })
    expect([lines[0], lines[4], lines[8]].map((line) => line!.slice(0, 5))).toEqual([
      "\x1b[32m",
      "\x1b[33m",
      "\x1b[2mu",
    ])
  })
})

describe.skipIf(!hasTmux)("dex blame", () => {
  const home = sharedTempDir()
  const repository = makeRepository(join(home, "shop"))
  let shared: TmuxScreen | undefined
  let close = async () => {}
  beforeAll(() => fill(home, repository))
  const opened = async () => {
    const ended = (end: () => Promise<void>) => (close = end)
    shared ??= await openScreen(home, { columns: 80, rows: 50, cwd: repository.folder, env: { PAGER: "cat" }, ended })
    return shared
  }
  afterAll(() => close())

  test.each([80, 100, 140])(
    "at %i columns a line has one row, and its number opens the conversation",
    async (columns) => {
      const screen = await opened()
      await screen.tmux("resize-window", "-x", `${columns}`, "-y", "50")
      await screen.keys("clear; dex blame src/zoo.ts", "Enter")
      const text = await screen.shows("28 lines: 24 proved (p)")
      const rows = text.split("\n").filter((line) => /^[plu] /.test(line))
      expect(rows).toHaveLength(28)
      expect(rows.filter((row) => / const \w+\d+ = compute/.test(row))).toHaveLength(28)
      expect(rows.filter((row) => row.includes("Add the quokka"))).toHaveLength(1)
      await screen.keys("clear; dex show 1", "Enter")
      await screen.shows("Write src/zoo.ts")
    },
  )
})
