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

const outputOf = (rows: object[]) => ({ conversations: rows, total: rows.length, left_out: {} }) as unknown as Output

const apart = [row("1fdc0000-0000-4000-8000-000000000001"), row("2fdc0000-0000-4000-8000-000000000001")]
const alike = [row("1fdc0000-0000-4000-8000-000000000001"), row("1fdc0000-0000-4000-8000-000000000002")]
const mixed = [
  ...alike,
  row("ses_3", { id: "opencode:ses_3", source: "opencode", project: "/code/web", lines_added: 0, lines_removed: 0 }),
  row("4", { id: "codex:4", source: "codex", kind: "automation", superseded: true }),
]

test.each([
  ["with short ids", apart],
  ["with ids that begin alike", alike],
  ["of several agents and projects", mixed],
  ["of a team", apart.map((one, i) => ({ ...one, id: `${["ann", "bartholomew"][i]}/${one.id}` }))],
])("rows %s have a title of at least 30 columns and fit at every width", (_, rows) => {
  for (let columns = 60; columns <= 200; columns++) {
    const terminal = { columns, color: false, interactive: true }
    const { lines } = printList(outputOf(rows), { terminal, numbered: true, home: "/home/dev" })
    for (const line of lines) expect(widthOf(line), line).toBeLessThanOrEqual(columns)
    for (const [i] of rows.entries()) {
      const line = lines.find((one) => one.startsWith(`  ${i + 1}  `)) ?? ""
      const least = columns >= 80 || i < 3 ? "Why the refresh token is us" : "Why the"
      expect(line, `${columns} columns`).toContain(least)
    }
  }
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
  const terminal = { columns, color: false, interactive: true }
  const drawn = (rows: object[]) =>
    printList(outputOf(rows), { terminal, numbered: true, home: "/home/dev" }).lines.join("\n")
  expect(drawn([{ ...apart[0], id: `ann/${apart[0]!.id}` }])).toMatch(/\bann\b/)
  expect(drawn(apart)).not.toMatch(/\bann\b/)
})
