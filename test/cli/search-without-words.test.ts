import { expect, test } from "vitest"
import { connect } from "../mcp/client.ts"
import { claudeSession } from "../support/home.ts"
import { synced, syncedOnce } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

// A person who knows the file, but not the words, searches by file.

const HOME = syncedOnce()
const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"

const search = async (home: string, words: string[]) =>
  JSON.parse((await dex(home, ["search", ...words, "--json"])).stdout)

test("a file alone lists the conversations that touched it, as dex list does", async () => {
  const home = await synced((at) =>
    claudeSession(at, {
      id: "44444444-4444-4444-8444-444444444444",
      start: "2026-11-12T09:00:00Z",
      turns: [
        { user: "Look at the tests" },
        { tool: { name: "Read", input: { file_path: "/code/api/src/auth.test.ts" }, output: "test()" } },
      ],
    }),
  )
  const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)
  const found = await search(home, ["--file", "src/auth"])
  const listed = JSON.parse((await dex(home, ["list", "--file", "src/auth", "--json"])).stdout)
  expect(ids(found.results)).toEqual([expect.stringContaining("44444444"), AUTH])
  expect(ids(found.results)).toEqual(ids(listed.conversations))
  expect(found).toMatchObject({ total: 2, mode: "list", results: [{ snippet: "Touched src/auth.test.ts" }, {}] })
  const one = await dex(home, ["search", "--file", "src/auth.ts"])
  expect(one.stdout).toMatch(/Refresh token race[\s\S]*Touched src\/auth\.ts/)
  expect(one.stderr).toContain(`1 of 1 conversation, newest first. Read one: dex show ${AUTH}`)
  expect(await dex(home, ["search", "--file", "src/nosuch.ts"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Nothing found."),
  })
})

test("a project, an agent or a date alone lists its conversations too, and limit and offset apply", async () => {
  expect((await search(HOME, ["--project", "web"])).results).toMatchObject([
    { title: expect.stringMatching(/sidebar/) },
  ])
  expect((await search(HOME, ["--from", "2026-11-01", "--to", "2026-11-05"])).results).toMatchObject([{ id: AUTH }])
  expect((await search(HOME, ["--file", "src/auth.ts", "--project", "web"])).results).toEqual([])
  const all = await search(HOME, ["source:claude_code"])
  expect(all).toMatchObject({ total: 2, notes: [expect.stringMatching(/^Not shown: 1 automated/)] })
  const second = await search(HOME, ["source:claude_code", "--limit", "1", "--offset", "1"])
  expect(second.results).toMatchObject([{ id: all.results[1].id }])
})

test("a search needs words if it has no filters, or has a filter that applies only to messages", async () => {
  for (const words of [[], ["--role", "user"], ["--file", "src/auth.ts", "--tool", "Bash"]])
    expect(await dex(HOME, ["search", ...words])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^dex: A search needs words, or at least a file, project/),
    })
})

test("agents get the same over MCP", async () => {
  const client = await connect(HOME)
  const { content, structuredContent } = await client.call("dex_search", { query: "file:src/auth.ts" })
  expect(structuredContent).toMatchObject({ total: 1, mode: "list", results: [{ id: AUTH }] })
  expect(content[0]!.text).toMatch(
    /^1 of 1 conversations, newest first\.\n.*Refresh token race.*\n {2}Touched src\/auth\.ts/,
  )
})
