import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { canRun, hasTmux, openScreen } from "../support/tmux.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const RACE = "11111111-1111-4111-8111-111111111111"
const HOSTILE = "22222222-2222-4222-8222-222222222222"
const FOLDER = "my $(touch hit) `touch hit`; touch hit"
const TITLE = "Odd: $(touch hit) `touch hit` 'one\" %F{red} \\a b:c"

async function readHome(): Promise<string> {
  const home = tempDir()
  const [api, odd] = ["api", FOLDER].map((name) => join(home, "code", name))
  for (const folder of [api!, odd!]) mkdirSync(folder, { recursive: true })
  const turns = [{ user: "Why are there two of them?" }, { assistant: "One is enough." }]
  claudeSession(home, { id: RACE, cwd: api!, title: "Refresh token race", turns, start: "2026-03-02T10:00:00.000Z" })
  const title = `${TITLE}\x1b[31m\u202e\nand a second line`
  claudeSession(home, { id: HOSTILE, cwd: odd!, title, turns, start: "2026-03-01T10:00:00.000Z" })
  await syncHome(home)
  return home
}

const values = async (home: string, ...words: string[]) => dex(home, ["completions", "--values", ...words])

describe("the values for a shell", () => {
  test("are the newest conversations with their titles, the projects with their paths, and the agents", async () => {
    const home = await readHome()
    const refs = (await values(home, "refs")).stdout.split("\n")
    expect(refs[0]).toBe(`${RACE}\tRefresh token race`)
    expect(refs[1]).toBe(`${HOSTILE}\t${TITLE} and a second line`)
    expect((await values(home, "refs", "claude_code:1")).stdout).toContain(`claude_code:${RACE}\t`)
    const projects = (await values(home, "projects")).stdout.split("\n")
    expect(projects).toContain(`api\t${join(home, "code", "api")}`)
    expect(projects.some((line) => line.startsWith(`${FOLDER}\t`))).toBe(true)
    expect((await values(home, "agents")).stdout).toMatch(/^claude_code\tClaude Code\ncodex\tCodex/)
  })

  test("do not include private projects elsewhere", async () => {
    const home = await readHome()
    await dex(home, ["private", join(home, "code", "api")])
    expect((await values(home, "refs")).stdout).not.toContain(RACE)
    expect((await values(home, "projects")).stdout).not.toMatch(/^api\t/m)
  })

  test("are empty, without a message, if nothing is known or readable", async () => {
    const none = { code: 0, stdout: "", stderr: "" }
    const home = tempDir()
    expect(await values(home, "refs")).toMatchObject(none)
    expect(await values(home, "nonsense")).toMatchObject(none)
    expect(existsSync(join(home, ".dex"))).toBe(false)
    mkdirSync(join(home, ".dex"))
    writeFileSync(join(home, ".dex", "history.db"), "no database ".repeat(1000))
    expect(await values(home, "refs")).toMatchObject(none)
    expect(await values(home, "projects")).toMatchObject(none)
  })
})

describe.skipIf(!hasTmux)("a shell", () => {
  test.each([
    ["bash", ["bash", "--norc", "--noprofile", "-i"]],
    ["zsh", ["zsh", "-f"]],
    ["fish", ["fish", "--no-config"]],
  ])("%s completes refs, projects and agents, and executes none of their text", async (name, shell) => {
    if (!canRun(name, "-c", "exit")) return console.log(`NOT RUN: there is no ${name} here`)
    const home = await readHome()
    writeFileSync(join(home, "script"), (await dex(home, ["completions", name])).stdout)
    const screen = await openScreen(home, { columns: 160, rows: 30, shell })
    const init = name === "zsh" ? "autoload -Uz compinit; compinit -u -D; " : ""
    await screen.keys(`${init}source ~/script; clear; echo is; echo ready`, "Enter")
    await screen.shows(/^is\nready/m)
    /** Runs the line as arguments of echo, so that the shell evaluates the completed text. */
    const echoed = async () => {
      await screen.keys("C-a")
      await screen.type("echo ")
      await screen.keys("Enter")
    }
    await screen.type("dex show 111")
    await screen.keys("Tab")
    await screen.shows(`dex show ${RACE}`)
    await echoed()
    await screen.shows(new RegExp(`^dex show ${RACE}`, "m"))
    await screen.type("dex search --source gemini_c")
    await screen.keys("Tab")
    await screen.shows("dex search --source gemini_cli")
    await echoed()
    await screen.type("dex search --project my")
    await screen.keys("Tab")
    await screen.shows(/--project '?my(\\? )/)
    await echoed()
    await screen.shows(`\ndex search --project ${FOLDER}`)
    await screen.type("dex resume ")
    await screen.keys("Tab", "Tab")
    await screen.shows(HOSTILE)
    if (name !== "bash") await screen.shows(TITLE.slice(0, 40))
    // A key, not a signal: the shell handles it after the keys before it.
    await screen.keys("C-u")
    await screen.keys("clear; echo end", "Enter")
    await screen.shows(/^end$/m)
    for (const folder of [home, join(home, "code", FOLDER)]) expect(existsSync(join(folder, "hit"))).toBe(false)
  })
})
