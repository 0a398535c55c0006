import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

const home = syncedOnce((at) => {
  claudeSession(at, {
    id: "77777777-7777-4777-8777-777777777777",
    start: "2026-11-05T10:00:00Z",
    turns: [
      { user: "Which commands does the walrus hide? They should be hidden, or the commands are shown." },
      { assistant: "I look for the commands that are hidden." },
      {
        tool: {
          name: "Edit",
          input: {
            file_path: "/code/api/src/hide.ts",
            old_string: "a",
            new_string: "// Skip hidden commands of walrus",
          },
          output: "done",
        },
      },
      { tool: { name: "Bash", input: { command: "golangci run ./walrus" }, output: "golangci found nothing" } },
      { assistant: "golangci is happy, said the walrus." },
    ],
  })
})

const search = async (...args: string[]) => dex(home, ["search", ...args])
const flat = (text: string) => text.replace(/\s+/g, " ")

test("the snippet shows the phrase, even in a tool call", async () => {
  const { stdout } = await search('"hidden commands"')
  expect(flat(stdout)).toContain("**hidden commands**")
})

test("a search for a tool shows its call", async () => {
  const { stdout } = await search("tool:Bash golangci")
  expect(stdout).toMatch(/\[Bash( result)?\]/)
  expect(stdout).not.toContain("is happy")
})

test("counts the rows shown, and the total if one thing was searched for", async () => {
  expect((await search("walrus", "--by", "message", "--limit", "1")).stderr).toMatch(/^\n?1 of \d messages shown\. /)
  expect((await search("walrus")).stderr).toMatch(/^\n?1 conversation found\. /)
  expect((await search("token", "--limit", "1")).stderr).toMatch(
    /1 conversation shown; found in 1 conversation \(and 1 automated\)\. /,
  )
  expect((await search('"hidden commands"')).stderr).toMatch(/^\n?1 conversation found\. /)
  expect((await search("walrus token")).stderr).toMatch(/^\n?\d conversations shown\. Read one/)
})

test("the trace of a search for a file counts its rows", async () => {
  const { stdout } = await search("file:hide.ts", "--json")
  const { results } = JSON.parse(stdout)
  expect(results.length).toBe(1)
  expect((await dex(home, ["traces"])).stdout).toMatch(/file:hide\.ts +1 hit /)
})
