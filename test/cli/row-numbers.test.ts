import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { readListing, saveListing } from "../../src/app/listing.ts"
import { dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"

// Numbers stand for rows of the last listing in a terminal. A pipe is none.

test("without a terminal a listing says how to read one by its ref, and that works", async () => {
  const home = await synced((at) => {
    for (const n of [1, 2, 3])
      claudeSession(at, {
        id: `1${n}111111-1111-4111-8111-11111111111${n}`,
        start: `2026-11-1${n}T10:00:00Z`,
        turns: [
          { user: `We decided to keep prices number ${n} as integers of cents.` },
          { assistant: "Noted, the mutex too." },
          {
            tool: {
              name: "Bash",
              input: { command: "npm test" },
              output: "TypeError: quokka is not a function",
              error: true,
            },
          },
          {
            tool: {
              name: "Edit",
              input: { file_path: "/code/api/src/a.ts", old_string: "a", new_string: "b" },
              output: "The file /code/api/src/a.ts has been updated.",
            },
          },
          { tool: { name: "Bash", input: { command: "npm test" }, output: "12 passed" } },
        ],
      })
  })
  for (const args of [["list"], ["search", "mutex"], ["decisions", "--all"], ["fix", "quokka is not a function"]]) {
    const { code, stderr } = await dex(home, args)
    expect([args, code]).toEqual([args, 0])
    const [, command, ref] = /(dex show (\S+))/.exec(stderr) ?? []
    expect([args, stderr, command]).toEqual([
      args,
      stderr,
      expect.stringMatching(/^dex show claude_code:[0-9a-f-]{36}(#\d+)?$/),
    ])
    expect(await dex(home, ["show", ref!])).toMatchObject({ code: 0 })
  }
})

test("what the rows of a terminal stand for is for its owner only", () => {
  const folder = tempDir()
  saveListing(folder, ["claude_code:1f3c"])
  expect(readListing(folder)).toEqual(["claude_code:1f3c"])
  const modes = readdirSync(folder, { recursive: true }).map(
    (name) => statSync(join(folder, String(name))).mode & 0o077,
  )
  expect(modes).toEqual([0, 0])
})
