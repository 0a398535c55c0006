import { describe, expect, test } from "vitest"
import { shellOnTerminal } from "../integrations/terminal.ts"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const HOME = syncedOnce((at) =>
  claudeSession(at, {
    id: "77777777-7777-4777-8777-777777777777",
    start: "2026-11-01T00:00:00Z",
    title: "Written in Markdown",
    turns: [
      { user: "Is it **safe**? \x1b]0;owned\x07" },
      { assistant: "Yes:\n\n```go\nfunc main() {}\n```\n\n&#x1b;[2J" },
    ],
  }),
)

async function onScreen(args: string, ...before: string[]): Promise<string[]> {
  const run = await shellOnTerminal(HOME, [...before, `dex show ${args} --no-pager`])
  return (run?.screen ?? "").replaceAll("\r", "").split("\n")
}
const MARKED = /\x1b\[7m([^\x1b]*)/g
const isHere = process.platform === "linux"

describe.runIf(isHere)("dex show on a terminal", () => {
  test("draws a conversation for reading: people and agents, calls on a line with their outcome", async () => {
    const screen = await onScreen("11111111")
    expect(screen.slice(2)).toEqual([
      "files: src/auth.ts",
      "",
      "You · #1 · 2026-11-03 10:00",
      "│ Two requests refresh the token at once and one of them is logged out. Why?",
      "",
      "Claude Code · #2 · 2026-11-03 10:01",
      expect.stringMatching(/^The refresh token is rotated/),
      "",
      "▸ Bash npm test ✗ failed · 2 lines  #3",
      "▸ Read src/auth.ts · 1 line  #5",
      "",
      "Claude Code · #7 · 2026-11-03 10:06",
      expect.stringMatching(/^I put a mutex around the refresh/),
      "",
      "You · #8 · 2026-11-03 10:07",
      "│ Works. Commit it.",
      "",
      "▸ Bash git commit -m 'auth: one refresh at a time' · 2 lines  #9",
      "",
      `Calls and thinking in full: dex show ${AUTH} --format full`,
      "",
    ])
  })

  test("unfolds the requested parts", async () => {
    expect(await onScreen("11111111 --show tool:Bash:result")).toContain("  Error: token already used")
    expect(await onScreen("11111111 --format full")).toContain("  Error: token already used")
    expect((await onScreen("11111111 --hide tool")).join("\n")).not.toContain("Bash")
    const spoken = (await onScreen("11111111 --format user_only")).filter((line) => /^[^│\s]+ · #/.test(line))
    expect(spoken).toEqual(["You · #1 · 2026-11-03 10:00", "You · #8 · 2026-11-03 10:07"])
  })

  test("has colours, and prints no control sequence from the transcript", async () => {
    const screen = (await onScreen("77777777", "unset NO_COLOR")).join("\n")
    expect(screen).toContain("Is it \x1b[1msafe\x1b[0m?")
    expect(screen).toContain("\x1b[35mfunc\x1b[0m")
    expect(screen.replace(/\x1b\[\d+m/g, "")).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]|owned/)
  })

  test("marks the words of the last search in all their forms, only in the results of that search", async () => {
    const inReverse = async (args: string, query: string) =>
      [...(await onScreen(args, "unset NO_COLOR", `dex search ${query} > /dev/null`)).join("\n").matchAll(MARKED)].map(
        ([, word]) => word,
      )
    expect(await inReverse("1", "waiting mutexes")).toEqual(["mutex", "waits"])
    expect(await inReverse("11111111", "requset")).toEqual(["requests", "request", "request"])
    expect(await inReverse("77777777", "mutex")).toEqual([])
    expect((await onScreen("1", "dex search mutex > /dev/null")).join("\n")).not.toMatch(/\x1b/)
  })

  test("uses ASCII with LANG=C", async () => {
    const screen = await onScreen("11111111", "export LANG=C")
    expect(screen).toContain("> Bash npm test x failed - 2 lines  #3")
    expect(screen).toContain("| Works. Commit it.")
  })

  test("says what was left out, and shows what fits of a message that is too long", async () => {
    const cut = (await onScreen(`${AUTH} --max-tokens 400`)).join("\n")
    expect(cut).toContain("You · #1")
    expect(cut).toMatch(/messages? left out to stay within the budget\. Continue with: dex show/)
    const around = (await onScreen(`${AUTH}#6`)).join("\n")
    expect(around).toContain("There is more before and after")
    expect(around).toContain("\u25b8 Bash npm test \u2717 failed \u00b7 2 lines  #4") // called in #3
  })

  test("prints the same JSON as a pipe", async () => {
    const run = await shellOnTerminal(HOME, ["dex show 11111111 77777777 --json"])
    expect(run!.screen.replaceAll("\r\n", "\n")).toBe(
      (await dex(HOME, ["show", "11111111", "77777777", "--json"])).stdout,
    )
  })
})

test("prints plain text to a pipe", async () => {
  expect(
    (await dex(HOME, ["show", "77777777"], { FORCE_COLOR: "1", NO_COLOR: "", PAGER: "false" })).stdout,
  ).not.toContain("\x1b]")
  expect((await dex(HOME, ["show", "11111111"])).stdout).toBe(`Refresh token race
${AUTH} · /code/api · 2026-11-03 10:09
files: src/auth.ts

#1 User, 2026-11-03 10:00
Two requests refresh the token at once and one of them is logged out. Why?

#2 Assistant, 2026-11-03 10:01
The refresh token is rotated, so the second request presents a used one.

#3 Assistant, 2026-11-03 10:02
[Bash] {"command":"npm test"}

#4 Tool, 2026-11-03 10:03
[Bash failed: 14 tokens]

#5 Assistant, 2026-11-03 10:04
[Read] {"file_path":"/code/api/src/auth.ts"}

#6 Tool, 2026-11-03 10:05
[Read result: 8 tokens]

#7 Assistant, 2026-11-03 10:06
I put a mutex around the refresh, so that the second request waits for the first.

#8 User, 2026-11-03 10:07
Works. Commit it.

#9 Assistant, 2026-11-03 10:08
[Bash] {"command":"git commit -m 'auth: one refresh at a time'"}

#10 Tool, 2026-11-03 10:09
[Bash result: 17 tokens]
`)
})
