import { expect, test } from "vitest"
import { printList } from "../../src/cli/print/list.ts"
import { widthOf } from "../../src/render/terminal.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

type Output = Parameters<typeof printList>[0]

const row = (id: string, more: object = {}) => ({
  id: `claude_code:${id}`,
  title: "Why the refresh token is used twice, and what to do about it in the client library of the mobile app",
  project: "/code/a-project-with-a-name",
  source: "claude_code",
  date: "2026-11-03T10:00:00Z",
  kind: "person",
  message_count: 12_345,
  estimated_tokens: 123_456,
  lines_added: 12_345,
  lines_removed: 12_345,
  files: 120,
  commits: 12,
  ...more,
})

const NOW = Date.parse("2026-11-16T10:00:00Z")

const outputOf = (rows: object[]) => ({ conversations: rows, total: rows.length, left_out: {} }) as unknown as Output

const apart = [row("1fdc0000-0000-4000-8000-000000000001"), row("2fdc0000-0000-4000-8000-000000000001")]
const alike = [row("1fdc0000-0000-4000-8000-000000000001"), row("1fdc0000-0000-4000-8000-000000000002")]
const mixed = [
  ...alike,
  row("ses_3", { id: "opencode:ses_3", source: "opencode", project: "/code/web", lines_added: 0, lines_removed: 0 }),
  row("4", { id: "codex:4", source: "codex", kind: "automation", superseded: true }),
]

const draw = (rows: object[], columns: number, { numbered = true, interactive = true } = {}) =>
  printList(outputOf(rows), { terminal: { columns, color: false, interactive }, numbered, home: "/home/dev" }, {}, NOW)
    .lines

test.each([
  ["with short ids", apart],
  ["with ids that begin alike", alike],
  ["of several agents and projects", mixed],
  ["of a team", apart.map((one, i) => ({ ...one, id: `${["ann", "bartholomew"][i]}/${one.id}` }))],
])("a row %s is one line that fits at every width, and most of it is the title", (_, rows) => {
  for (let columns = 40; columns <= 200; columns++)
    for (const numbered of [true, false]) {
      const lines = draw(rows, columns, { numbered })
      expect(lines).toHaveLength(rows.length)
      for (const [i, line] of lines.entries()) {
        expect(widthOf(line), line).toBeLessThanOrEqual(columns)
        const title = columns >= 140 ? 70 : columns >= 100 ? 50 : columns >= 80 ? 45 : 20
        // The kind at the end of a title is never cut.
        const cut = i < 3 ? title - 3 : 12
        if (columns >= 80 || i < 3) expect(line, `${columns} columns`).toContain(row("").title.slice(0, cut))
      }
    }
})

test("a column on which all rows agree is not shown, and projects of one name are told apart", () => {
  const [same] = draw(apart, 140)
  expect(same).not.toMatch(/claude_code|a-project-with|1fdc/)
  expect(draw(apart, 140, { numbered: false })[0]).toContain("1fdc0000")
  const projects = ["/code/devenv/cli", "/code/workspace/cli"]
  const told = draw(
    apart.map((one, i) => ({ ...one, project: projects[i] })),
    100,
  )
  expect(told[0]).toContain("devenv/cli")
  expect(told[1]).toContain("workspace/cli")
})

test("dates are short on a terminal, and complete in a pipe", () => {
  const rows = ["2026-11-14T09:00:00Z", "2026-02-04T12:00:00Z", "2025-01-04T12:00:00Z"].map((date) =>
    row("1", { date }),
  )
  expect(draw(rows, 80).map((line) => line.slice(5, 15).trim().split("  ")[0])).toEqual(["2d", "Feb 4", "Jan 2025"])
  expect(draw(rows, 120, { interactive: false }).join("\n")).toMatch(/2026-02-04 \d\d:00/)
})

test("in a pipe a row is one line with its title, even if ids are long", async () => {
  const home = tempDir()
  for (const [n, id] of ["11111111-1111-4111-8111-111111111111", "11111111-1111-4111-8111-111111111112"].entries())
    claudeSession(home, {
      id,
      cwd: `/code/project-number-${n}`,
      start: "2026-11-03T10:00:00Z",
      title: "Refresh token race in the mobile client",
      turns: [{ user: "Why is the token used twice?" }, { assistant: "It is rotated." }],
    })
  await syncHome(home)
  const { stdout } = await dex(home, ["list"])
  expect(stdout.trimEnd().split("\n")).toHaveLength(2)
  for (const line of stdout.trimEnd().split("\n")) expect(line).toMatch(/Refresh token race in the mob.*1111111[12]/)
})

test.each([80, 140])("a team's rows name the owner in %i columns, and the user's own do not", (columns) => {
  expect(draw([{ ...apart[0], id: `ann/${apart[0]!.id}` }], columns).join("\n")).toMatch(/\bann\b/)
  expect(draw(apart, columns).join("\n")).not.toMatch(/\bann\b/)
})
