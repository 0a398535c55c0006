import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { shellOnTerminal } from "../integrations/terminal.ts"
import { DEX } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

// Numbers name the rows of the last listing in a terminal. An agent's shell and a script have none.

test("without a terminal a listing says how to read one by its ref, and that works", async () => {
  const home = await synced((at) => {
    for (const n of [1, 2, 3])
      claudeSession(at, {
        id: `1${n}111111-1111-4111-8111-11111111111${n}`,
        start: `2026-11-1${n}T10:00:00Z`,
        turns: [
          { user: `We decided to keep the prices of shop ${n} as integers of cents.` },
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
    const { code, stderr } = await warmDex(home, args)
    expect([args, code]).toEqual([args, 0])
    const [, command, ref] = /(dex show (\S+))/.exec(stderr) ?? []
    expect([args, stderr, command]).toEqual([
      args,
      stderr,
      expect.stringMatching(/^dex show claude_code:[0-9a-f-]{36}(#\d+)?$/),
    ])
    expect(await warmDex(home, ["show", ref!])).toMatchObject({ code: 0 })
  }
})

const IDS = ["1aaaaaaa", "2bbbbbbb", "13cccccc"].map((begin) => `${begin}-1111-4111-8111-111111111111`)

/** Three conversations whose ids begin like row numbers; the last one is the newest. */
function threeRows(at: string): void {
  for (const [n, id] of IDS.entries())
    claudeSession(at, {
      id,
      start: `2026-11-0${n + 1}T10:00:00Z`,
      turns: [{ user: `Why is the quagga of number ${n} striped?` }, { assistant: "Nobody knows." }],
    })
}

async function threeSynced(): Promise<string> {
  const home = tempDir()
  threeRows(home)
  await syncHome(home)
  return home
}

describe("a number", () => {
  test("is never the beginning of an id if nothing was listed", async () => {
    const home = await threeSynced()
    expect((await warmDex(home, ["list"])).stdout).toContain("quagga")
    for (const command of ["show", "read", "resume", "forget", "handover"])
      for (const number of ["1", "2", "13", "999"]) {
        const args = command === "read" ? [command, number, "1"] : [command, number]
        expect([args, await warmDex(home, args)]).toEqual([
          args,
          {
            code: 2,
            stdout: "",
            stderr: expect.stringMatching(new RegExp(`^dex: There is no row ${number}: this terminal has no listing`)),
          },
        ])
      }
    expect((await warmDex(home, ["show", IDS[1]!.slice(0, 4)])).stdout).toContain("number 1")
  })

  test("opens the row that the screen showed, through a pipe too, and whatever program starts dex", async () => {
    const home = await threeSynced()
    const run = await shellOnTerminal(home, [
      "dex search number 0 --limit 1 >/dev/null",
      "dex list | head -1",
      "dex show 1 | cat",
      "dex list > rows.txt",
      `sh -c '"$0" "$@" show 2' '${process.execPath}' '${DEX}' | cat`,
      "dex show 9",
    ])
    if (!run) return console.log("NOT RUN: rows on a terminal, which cannot be made here")
    expect(run.screen).toMatch(/Read one: dex show 1/)
    const opened = [...run.screen.matchAll(/quagga of number (\d) striped/g)].map(([, number]) => number)
    // Each row number, then the title and message that it opened.
    expect(opened).toEqual(["2", "2", "2", "1", "1"])
    expect(run.screen).toContain(`claude_code:${IDS[2]}`)
    expect(run.screen).toContain(`claude_code:${IDS[1]}`)
    expect(run.screen).not.toContain(`claude_code:${IDS[0]}`)
    expect(run.screen).toMatch(/There is no row 9: the last listing in this terminal had 3 rows/)
  })

  test("is stored for its owner only", async () => {
    const home = await threeSynced()
    if (!(await shellOnTerminal(home, ["dex list"]))) return
    const folder = join(home, ".dex", "listings")
    const paths = [folder, ...readdirSync(folder).map((name) => join(folder, name))]
    expect(paths.map((path) => statSync(path).mode & 0o077)).toEqual([0, 0])
  })

  test("of one terminal means nothing in another", async () => {
    const home = await threeSynced()
    if (!(await shellOnTerminal(home, ["dex list"]))) return
    const other = await shellOnTerminal(home, ["dex show 1"])
    expect(other!.screen).toMatch(/There is no row 1: this terminal has no listing/)
  })

  test("opens nothing after a search that found nothing", async () => {
    const home = await threeSynced()
    const run = await shellOnTerminal(home, ["dex list >/dev/null", "dex search zzzqqq", "dex show 1 | cat"])
    if (!run) return
    expect(run.screen).toMatch(/There is no row 1: this terminal has no listing/)
  })

  test("of the first screen works at once", async () => {
    const home = tempDir()
    threeRows(home)
    const run = await shellOnTerminal(home, [
      "dex --plain",
      "dex show 1 | cat",
      "dex search striped >/dev/null; dex show 3 | cat",
    ])
    if (!run) return
    const { screen } = run
    expect(screen).toMatch(/Newest\s+1 .*number 2[\s\S]*2 .*number 1[\s\S]*3 .*number 0[\s\S]*Try\s+dex show 1/)
    const tried = /dex search (\w+)/.exec(screen)![1]!
    expect((await warmDex(home, ["search", tried])).stdout).toContain("quagga")
    expect(screen.slice(screen.indexOf("Try"))).toContain(`claude_code:${IDS[2]}`)
  })
})

test("before deleting, shows the conversations with title, agent, project, date and size", async () => {
  const home = await threeSynced()
  const unconfirmed = await warmDex(home, ["forget", IDS[0]!])
  expect(unconfirmed.stdout).toBe(
    `  Why is the quagga of number 0 striped?\n    claude_code · api · 2026-11-01 10:01 · 2 messages · claude_code:${IDS[0]}\n`,
  )
  expect(unconfirmed.stderr).toMatch(
    /This would permanently\s+delete 1 conversation.*Nothing was\s+deleted.*Add\s+--yes/s,
  )
  const run = await shellOnTerminal(home, ["dex list >/dev/null", "dex forget 2"], [[/Permanently delete/, "n"]])
  if (!run) return
  expect(run.screen).toMatch(/quagga of number 1 striped\?\s+claude_code · api · 2026-11-02 10:01 · 2 messages/)
  expect(run.screen).toContain("Nothing was deleted.")
  expect((await warmDex(home, ["list"])).stdout).toContain("number 1")
})
