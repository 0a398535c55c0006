import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeEach, describe, expect, test } from "vitest"
import { openSuggestions } from "../../../src/store/suggestions/suggestions.ts"
import { dex } from "../../support/dex.ts"
import { claudeSession } from "../../support/home.ts"
import { sharedTempDir, tempDir } from "../../support/temp.ts"
import { canRun, hasTmux, openScreen, program, type TmuxScreen } from "../../support/tmux.ts"
import { syncHome } from "../../support/warm.ts"
import { daysAgo, pickerHome, RACE } from "./home.ts"

// Uses real keys on a real terminal.

if (!hasTmux) console.log("NOT RUN: there is no tmux here, so the picker is not driven by real keys")

async function readHome(home = tempDir()): Promise<string> {
  pickerHome(home)
  await syncHome(home)
  return home
}

const MODES = `echo "modes\${1:+ $1}: $(stty -a | tr ' ;' '\\n\\n' | grep -x -e '-*icanon' -e '-*echo' -e '-*isig' | tr '\\n' ' ')"`

type Opened = {
  home?: string
  columns?: number
  rows?: number
  env?: Record<string, string>
  cwd?: string
  line?: string
  shell?: string[]
  ended?: (close: () => Promise<void>) => void
}

/** A terminal on which the picker is open and has synced. */
async function opened({ home, columns = 80, rows = 24, line = "dex", ...more }: Opened = {}) {
  const at = home ?? (await readHome())
  program(at, "modes", MODES)
  const screen = await openScreen(at, { columns, rows, ...more })
  await screen.keys(line, "Enter")
  await screen.shows(/4\n[─-]/)
  return { home: at, screen }
}

const NEWEST_FIRST = [
  "Invoices round half a cent",
  "OAuth callback loops",
  "日本語 titles 👩‍💻 in the sidebar",
  "Refresh token race",
]

/** The selected row. */
const selected = (text: string) => /^▌ (.*?)(?: {2}|$)/m.exec(text)?.[1]

/** The processes of this screen's shell whose command line contains this text. */
async function below(screen: TmuxScreen, part: string): Promise<number[]> {
  const tty = (await screen.tmux("display", "-p", "#{pane_tty}")).trim()
  const list = execFileSync("ps", ["-t", tty, "-o", "pid=,args=", "-ww"], { encoding: "utf8" })
  return list.split("\n").flatMap((line) => (line.includes(part) ? [Number.parseInt(line, 10)] : []))
}

/** Checks that the terminal is restored: the shell's own screen, line editing, a cursor, no bracketed paste. */
async function isRestored(screen: TmuxScreen, turn = 1): Promise<void> {
  // Waits until the shell has its terminal back: earlier input would be read, and lost, by the picker.
  const state = "#{alternate_on} #{cursor_flag} #{pane_current_command}"
  await expect.poll(() => screen.tmux("display", "-p", state)).toMatch(/^0 1 (ba|da)?sh\n$/)
  await screen.keys(`modes ${turn}`, "Enter")
  await screen.shows(new RegExp(`^modes ${turn}: isig icanon echo$`, "m"))
}

const DATE_AND_TIME = /\d{4}-\d\d-\d\d \d\d:\d\d/g

describe.skipIf(!hasTmux)("a picker that stays open", () => {
  const home = sharedTempDir()
  let screen: TmuxScreen
  let close = async () => {}

  beforeEach(async () => {
    if (screen) await screen.keys("C-u", "Home")
    else screen = (await opened({ home: await readHome(home), ended: (end) => (close = end) })).screen
    await expect.poll(async () => selected(await screen.shows(/type to search .* 4\n/))).toBe(NEWEST_FIRST[0])
  })

  afterAll(() => close())

  test("80 columns show the list, and the preview below it", async () => {
    const text = await screen.shows("Amounts were floats.")
    expect(text.replaceAll(DATE_AND_TIME, "2026-11-07 09:19")).toMatchInlineSnapshot(`
      "❯ type to search                                                               4
      ────────────────────────────────────────────────────────────────────────────────
      ▌ Invoices round half a cent                                            2d  api
        OAuth callback loops                                                  3d  web
        日本語 titles 👩‍💻 in the sidebar                                       5d  web
        Refresh token race                                                    9d  api







      ────────────────────────────────────────────────────────────────────────────────
        Invoices round half a cent
        Claude Code · api · 2026-11-07 09:19 · main · 2 messages

        You · #1 · 2026-11-07 09:19
        │ An invoice of three thirds is a cent short

        Claude Code · #2 · 2026-11-07 09:19
        Amounts were floats.
      ────────────────────────────────────────────────────────────────────────────────
      Enter resume  Tab read  ^O more  Esc leave  Alt-H hand over  Alt-C copy"
    `)
  })

  test("keys move, and edit the line", async () => {
    await screen.keys("Down", "C-n", "C-j", "C-p")
    await expect.poll(async () => selected(await screen.text())).toBe(NEWEST_FIRST[2])
    await screen.type("zzz race")
    await screen.keys("C-a", "M-d", "C-e", "C-h")
    await screen.shows(/^❯ {2}rac /m)
    await screen.keys("C-u")
    await screen.shows("type to search")
  })

  test("finds a title by half a word", async () => {
    await screen.type("callba loo")
    expect(selected(await screen.shows(/^❯ callba loo .* \d+$/m))).toBe("OAuth callback loops")
  })

  test("Tab reads it in less, and leaving less comes back to the row", async () => {
    if (!canRun("less", "--version")) return console.log("NOT RUN: there is no less here")
    await screen.keys("Down", "Tab")
    await screen.shows("Its state parameter was dropped.")
    await screen.keys("q")
    const text = await screen.shows(/4\n─/)
    expect(selected(text)).toBe("OAuth callback loops")
  })

  test("copies the command to the clipboard", async () => {
    await screen.tmux("set", "-g", "set-clipboard", "on")
    await screen.keys("End", "M-c")
    await screen.shows("Copied, if the terminal allows it")
    await expect.poll(() => screen.tmux("show-buffer")).toBe(`dex resume claude_code:${RACE}\n`)
  })

  test("pasted text is text, whatever it contains", async () => {
    await screen.tmux("set-buffer", "refresh\ntoken\u0003\u001b")
    await screen.tmux("paste-buffer", "-p")
    expect(selected(await screen.shows(/^❯ refresh token /m))).toBeDefined()
    await expect.poll(async () => selected(await screen.text())).toBe("Refresh token race")
  })

  test("a search process that dies is started again", async () => {
    const [lookUp] = await below(screen, "look-up-process")
    process.kill(lookUp!, "SIGKILL")
    await screen.type("logged out")
    await screen.shows(/^❯ logged out .* 1$/m)
    expect(await below(screen, "look-up-process")).not.toContain(lookUp)
  })
})

describe.skipIf(!hasTmux)("the picker's screen", () => {
  test("140 columns show the list with a preview", async () => {
    const { screen } = await opened({ columns: 140, rows: 40 })
    await screen.keys("End")
    const text = await screen.shows("mutex around")
    expect(text.replaceAll(DATE_AND_TIME, "2026-11-07 09:19")).toMatchInlineSnapshot(`
      "❯ type to search                                                                                                                           4
      ───────────────────────────────────────────────────────────────────────────────────────────────────┬────────────────────────────────────────
        Invoices round half a cent                                                               2d  api │ Refresh token race
        OAuth callback loops                                                                     3d  web │ Claude Code · api · 2026-11-07 09:19 ·
        日本語 titles 👩‍💻 in the sidebar                                                          5d  web │ main · 5 messages
      ▌ Refresh token race                                                                       9d  api │
                                                                                                         │ You · #1 · 2026-11-07 09:19
                                                                                                         │ │ Two requests refresh the token at
                                                                                                         │ │ once and one of them is logged out.
                                                                                                         │ │ Why?
                                                                                                         │
                                                                                                         │ Claude Code · #2 · 2026-11-07 09:19
                                                                                                         │ The refresh token is rotated, so the
                                                                                                         │ second request presents a used one.
                                                                                                         │
                                                                                                         │ ▸ Bash npm test ✗ failed · 1 line  #3
                                                                                                         │
                                                                                                         │ Claude Code · #5 · 2026-11-07 09:19
                                                                                                         │ I put a mutex around the refresh, so
                                                                                                         │ that the second request waits for the
                                                                                                         │ first.
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
                                                                                                         │
      ───────────────────────────────────────────────────────────────────────────────────────────────────┴────────────────────────────────────────
      Enter resume  Tab read  ^O more  Esc leave  Alt-H hand over  Alt-C copy  Alt-A agent  Alt-P project  Alt-T time"
    `)
  })

  test("40 columns show a narrow list, and the layout follows the size of the terminal", async () => {
    const { screen } = await opened({ columns: 40, rows: 12 })
    expect(await screen.text()).toMatchInlineSnapshot(`
      "❯ type to search                       4
      ────────────────────────────────────────
      ▌ Invoices round half a cent    2d  api
        OAuth callback loops          3d  web
        日本語 titles 👩‍💻 in the sid…  5d  web
        Refresh token race            9d  api




      ────────────────────────────────────────
      Enter resume  Tab read  ^O more"
    `)
    await screen.keys("?")
    expect(await screen.shows("hand over")).toMatchInlineSnapshot(`
      "❯ type to search                       4
      ────────────────────────────────────────
        h  Alt-H     hand over to an agent
        v  Alt-V     view in the browser
        c  Alt-C     copy its resume command
        s  Alt-S     give or remove a star
        g  Alt-G     edit its tags
        n  Alt-N     give it a title
        a  Alt-A     agent: all, or one
        p  Alt-P     project, folder, or all
      ────────────────────────────────────────"
    `)
    await screen.keys("Escape")
    await screen.tmux("resize-window", "-x", "100", "-y", "20")
    expect(await screen.shows("An invoice of three thirds")).toMatch(/┬/)
    await screen.tmux("resize-window", "-x", "50", "-y", "10")
    await expect.poll(() => screen.text()).not.toMatch(/┬|three thirds/)
    expect(selected(await screen.text())).toBe("Invoices round half a cent")
  })

  test.each([
    [80, 45],
    [100, 50],
    [140, 70],
  ])(
    "at %i columns the picker and dex list show %i columns of titles, and a resize leaves nothing behind",
    async (columns, least) => {
      const home = tempDir()
      pickerHome(home)
      const title =
        "When two requests refresh the token at once one of them is logged out, which the mobile client then shows"
      const [id, turns] = ["66666666-6666-4666-8666-666666666666", [{ user: "Why is it logged out?" }]]
      claudeSession(home, { id, start: daysAgo(400), cwd: join(home, "old", "api"), title, turns })
      await syncHome(home)
      const screen = await openScreen(home, { columns, rows: 24 })
      await screen.keys("dex", "Enter")
      await screen.shows(/5\n─/)
      await screen.keys("End")
      const preview = /You · #1[\s\S]*Why is it logged out\?/
      const before = await screen.shows(preview)
      expect(before).toContain(`▌ ${title.slice(0, least - 2).trimEnd()}`)
      await screen.tmux("resize-window", "-x", "60", "-y", "20")
      await screen.shows(/^❯ type to search {43}5\n/)
      const narrow = await screen.shows(preview)
      await screen.keys("C-l")
      await screen.keys("Home", "End")
      expect(await screen.shows(preview)).toBe(narrow)
      await screen.tmux("resize-window", "-x", `${columns}`, "-y", "24")
      await expect.poll(() => screen.text()).toBe(before)
      await screen.keys("C-c")
      await screen.shows(/\n\$$/)
      await screen.keys("clear; dex list", "Enter")
      expect(await screen.shows("5 of 5 conversations")).toContain(title.slice(0, least - 2).trimEnd())
    },
  )

  test("uses ASCII lines if the locale has no UTF-8, and no colours with NO_COLOR", async () => {
    const { screen } = await opened({ columns: 100, env: { LANG: "C", NO_COLOR: "1" } })
    const text = await screen.shows("An invoice of three thirds")
    expect(text.replace(/日本語.*sidebar/, "")).toMatch(/^[\n\x20-\x7e]*$/)
    expect(await screen.text("-e")).not.toMatch(/\x1b\[(?!0?m|39m|49m)/)
  })
})

describe.skipIf(!hasTmux)("keys", () => {
  test("typing finds messages, and Enter resumes the conversation in its folder", async () => {
    const home = await readHome()
    program(home, "claude", 'echo "claude $* in $PWD"; modes')
    const { screen } = await opened({ home, columns: 130 })
    await screen.type("logged out")
    const found = await screen.shows(/one of them is\s*logged/)
    expect(selected(found)).toBe("Refresh token race")
    await screen.keys("Enter")
    const text = await screen.shows(/^modes: isig icanon echo$/m)
    expect(text).toContain(`claude --resume ${RACE} in ${join(home, "code", "api")}`)
    expect(await screen.tmux("display", "-p", "#{alternate_on}")).toBe("0\n")
  })

  test("a question is repeated if the search process dies", async () => {
    const home = await readHome()
    program(home, "claude", 'echo "claude $*"')
    const { screen } = await opened({ home })
    const lookUps = await below(screen, "look-up-process")
    for (const pid of lookUps) process.kill(pid, "SIGSTOP")
    await screen.keys("Enter", "Down")
    // By now Enter has requested whether it can be resumed.
    await expect.poll(async () => selected(await screen.text())).toBe(NEWEST_FIRST[1])
    for (const pid of lookUps) process.kill(pid, "SIGKILL")
    await screen.shows("claude --resume 44444444-4444-4444-8444-444444444444")
  })

  test("says why a conversation cannot be resumed, and can hand it over", async () => {
    const home = await readHome()
    program(home, "codex", 'echo "codex in $PWD: $1" | head -3')
    const { screen } = await opened({ home, columns: 120 })
    await screen.keys("C-c")
    await screen.shows(/\n\$$/)
    await screen.keys(`rm -r code/api`, "Enter", "dex", "Enter")
    await screen.shows(/4\n─/)
    await screen.keys("Enter")
    await screen.shows("This conversation cannot be resumed")
    await screen.keys("h")
    expect(await screen.shows("Hand over to")).toMatch(/▌ 1 {2}Codex\n\n/)
    await screen.keys("Escape", "Down", "M-h", "1")
    await screen.shows(`codex in ${join(home, "code", "web")}: `)
    await isRestored(screen)
  })

  test("Tab on a match opens less at that message", async () => {
    if (!canRun("less", "--version")) return console.log("NOT RUN: there is no less here")
    const home = await readHome()
    claudeSession(home, {
      id: "66666666-6666-4666-8666-666666666666",
      start: daysAgo(1),
      title: "A long one",
      turns: Array.from({ length: 40 }, (_, i) => ({ user: i === 30 ? "the needle is here" : `question ${i}` })),
    })
    await syncHome(home)
    const screen = await openScreen(home, { columns: 80, rows: 24 })
    await screen.keys("dex", "Enter")
    await screen.shows(/5\n─/)
    await screen.type("needle")
    await screen.shows(/^❯ needle .* 1$/m)
    await screen.keys("Tab")
    expect(await screen.shows("the needle is here")).not.toContain("question 28")
  })

  test("filters narrow the list; Tab with a pager that does not wait asks for a key", async () => {
    const home = await readHome()
    const { screen } = await opened({ home, cwd: join(home, "code", "web"), env: { PAGER: "head -5" } })
    await screen.keys("Tab")
    await screen.shows("Press any key to go back")
    await screen.keys("x")
    expect(await screen.shows(/4\n─/)).toContain("type to search")
    await screen.keys("M-p")
    const here = await screen.shows(/this project {2}2\n/)
    expect(here).toContain("OAuth")
    expect(here).not.toContain("Invoices")
    await screen.keys("M-t", "M-t")
    await screen.shows(/this project · 7d {2}2\n/)
    await screen.keys("M-p")
    await screen.shows(/this folder · 7d {2}2\n/)
    await screen.keys("M-p", "C-o", "t", "C-o", "t", "M-a")
    await screen.shows(/claude {2}4\n/)
  })

  test("the next picker begins with the same project or folder, unless nothing is there", async () => {
    const home = await readHome()
    const web = join(home, "code", "web")
    const { screen } = await opened({ home, cwd: web })
    await screen.keys("M-p")
    await screen.shows(/this project {2}2\n/)
    await screen.keys("M-p")
    await screen.shows(/this folder {2}2\n/)
    await screen.keys("C-c")
    await isRestored(screen)
    await screen.keys("clear; dex", "Enter")
    expect(await screen.shows(/this folder {2}2\n[─-]/)).not.toContain("Invoices")
    await screen.type("callback")
    await screen.shows(/^❯ callback .*this folder {2}1$/m)
    await screen.keys("C-c")
    const elsewhere = await opened({ home, cwd: home })
    expect(elsewhere.screen).toBeDefined()
  })

  test("a star, tags and a title by keys, at once and after the next sync", async () => {
    const home = await readHome()
    const { screen } = await opened({ home })
    await screen.keys("M-s")
    await screen.shows(/^▌ ★ Invoices/m)
    await screen.keys("M-g")
    await screen.shows(/^Tags ❯ /m)
    await screen.type("Money q4")
    await screen.keys("Enter")
    await screen.shows(/^▌ ★ #money #q4 Invoices/m)
    await screen.keys("M-n", "C-u")
    await screen.type("My own words")
    await screen.shows(/^Title ❯ My own words .*\n[\s\S]*Enter save {2}Esc back/m)
    await screen.keys("Enter")
    await screen.shows(/^▌ ★ #money #q4 My own words/m)
    await screen.keys("M-s")
    await screen.shows(/^▌ #money #q4 My own words/m)
    await screen.keys("C-c")
    await isRestored(screen)
    expect((await dex(home, ["list", "--tag", "money"])).stdout).toContain("#money #q4 My own words")
    await screen.keys("clear; dex", "Enter")
    await screen.shows(/#money #q4 My own words/)
  })
})

describe.skipIf(!hasTmux)("leaving", () => {
  test.each([
    ["^D on an empty line", ["C-d"]],
    ["Escape", ["Escape"]],
    ["Escape twice, with words", ["x", "Escape", "Escape"]],
  ])("%s restores the terminal", async (_, keys) => {
    const { screen } = await opened()
    for (const key of keys) {
      await screen.keys(key)
      if (key === "x") await screen.shows(/^❯ x /m)
    }
    await screen.shows(/\n\$$/)
    await isRestored(screen)
  })

  test.each(["TERM", "HUP", "INT"])("SIG%s restores the terminal and ends the process", async (signal) => {
    const { screen } = await opened()
    const [picker] = await below(screen, "dist/dex.js")
    process.kill(picker!, `SIG${signal}`)
    await screen.shows(/\n\$$/)
    await screen.keys("echo ended $?", "Enter")
    await screen.shows(`ended ${128 + { TERM: 15, HUP: 1, INT: 2 }[signal]!}`)
    await isRestored(screen)
  })

  test("an uncaught error restores the terminal, and is printed on the shell's own screen", async () => {
    const screen = await openScreen(tempDir(), { columns: 120, rows: 24 })
    await screen.keys(`${process.execPath} ${join(import.meta.dirname, "crash.ts")}; echo ended $?`, "Enter")
    expect(await screen.shows("ended 2")).toMatch(/^reported: it broke$/m)
    expect(await screen.tmux("display", "-p", "#{alternate_on} #{cursor_flag}")).toBe("0 1\n")
  })

  test("^Z suspends, and fg returns to the same screen", async () => {
    // bash would restore the terminal itself.
    const { screen } = await opened({ shell: ["sh", "-i"] })
    await screen.type("token")
    await screen.shows(/^❯ token .* 1$/m)
    await screen.keys("C-z")
    await screen.shows(/Stopped|Suspended/)
    await isRestored(screen)
    await screen.keys("fg", "Enter")
    expect(selected(await screen.shows(/^❯ token .* 1$/m))).toBe("Refresh token race")
    await screen.keys("C-c")
    await isRestored(screen, 2)
  })
})

describe.skipIf(!hasTmux)("the first time", () => {
  test("the picker opens at once, fills while dex reads, and then finds", async () => {
    const home = tempDir()
    pickerHome(home)
    const screen = await openScreen(home, { columns: 80, rows: 24 })
    await screen.keys("dex", "Enter")
    const text = await screen.shows(/^❯ type to search +4(?: {2}⟳.*)?\n/)
    expect(NEWEST_FIRST.map((title) => text.indexOf(title)).toSorted((a, b) => a - b)).toEqual(
      NEWEST_FIRST.map((title) => text.indexOf(title)),
    )
    expect(selected(text)).toBe(NEWEST_FIRST[0])
    await screen.shows(/new messages, read in/)
    await screen.type("logged out")
    expect(selected(await screen.shows(/^❯ logged out .* 1$/m))).toBe("Refresh token race")
  })

  test("if there is nothing to read, dex says where it looked", async () => {
    const screen = await openScreen(tempDir(), { columns: 80, rows: 24 })
    await screen.keys("dex; echo ended $?", "Enter")
    expect(await screen.shows("ended 1")).toContain("No conversations were found yet")
  })
})

describe.skipIf(!hasTmux)("in the background", () => {
  test("a sync reads what is new, and the selected row stays under the cursor", async () => {
    const home = await readHome()
    claudeSession(home, {
      id: "55555555-5555-4555-8555-555555555555",
      start: daysAgo(0),
      title: "The newest of all",
      turns: [{ user: "Why is the sky blue?" }, { assistant: "It scatters." }],
    })
    const screen = await openScreen(home, { columns: 80, rows: 24 })
    await screen.keys("dex", "Enter")
    await screen.shows("2 new messages, read in")
    const text = await screen.shows("The newest of all")
    expect(selected(text)).toBe("Invoices round half a cent")
  })
})

describe.skipIf(!hasTmux)("the line above the list", () => {
  test("says after the first week how many suggestions dex would have made, and where to answer", async () => {
    const home = await readHome()
    const at = Date.now() - 8 * 86_400_000
    writeFileSync(
      join(home, ".dex", "integrations.json"),
      JSON.stringify({ version: 1, files: {}, hooks: { wanted: true, at } }),
    )
    const suggestions = openSuggestions(join(home, ".dex", "suggest.db"))
    const moment = { event: "failed_command", project: "/x", source: "codex", session: "s", at: at + 1_000 } as const
    const item = { kind: "fix", key: "k", title: "t", summary: "", reason: "r", features: {} } as const
    const items = [{ ...item, relevance: 0.9, estimated_tokens: 9 }]
    suggestions.save({ id: "one", moment, items, status: "pending", latency_ms: 1 }, { would: true })
    suggestions.close()
    const { screen } = await opened({ home })
    await screen.shows("─ dex would have made 1 suggestion to agents. To allow this: `dex --plain` ─")
  })
})

describe.skipIf(!hasTmux)("the plain screen", () => {
  test.each(["dex --plain", "DEX_NO_PICKER=1 dex", "TERM=dumb dex"])("%s", async (line) => {
    const screen = await openScreen(await readHome(), { columns: 80, rows: 24 })
    await screen.keys(line, "Enter")
    expect(await screen.shows(/Try\n {2}dex show 1/)).toContain("Newest")
  })

  test("dex search without words opens the picker, or says what it needs if there is no terminal", async () => {
    const { screen, home } = await opened({ line: "dex search" })
    await screen.keys("C-c")
    await screen.shows(/\n\$$/)
    await screen.keys("DEX_NO_PICKER=1 dex search", "Enter")
    await screen.shows("A search needs words")
    expect(await dex(home, ["search"])).toMatchObject({ code: 2 })
  })
})

describe.skipIf(!hasTmux)("in a shell", () => {
  test.each([
    ["bash", ["bash", "--norc", "--noprofile", "-i"]],
    ["zsh", ["zsh", "-f"]],
    ["fish", ["fish", "--no-config"]],
  ])("^G in %s inserts the command, or only the ref if something is typed", async (name, shell) => {
    if (!canRun(name, "-c", "exit")) return console.log(`NOT RUN: there is no ${name} here`)
    const home = await readHome()
    const script = (await dex(home, ["completions", name, "--widget"])).stdout
    writeFileSync(join(home, "widget"), script)
    const screen = await openScreen(home, { columns: 100, rows: 24, shell })
    await screen.keys("source ~/widget; clear; echo is; echo ready", "Enter")
    await screen.shows(/^is\nready/m)
    await screen.keys("C-g")
    await screen.shows(/4\n─/)
    await screen.keys("End", "Enter")
    await screen.shows(`dex resume claude_code:${RACE}`)
    await screen.keys("C-u")
    await screen.type("echo ")
    await screen.keys("C-g")
    await screen.shows(/4\n─/)
    await screen.keys("C-c")
    await screen.shows(/ready\n.*echo$/m)
    await screen.keys("C-g")
    await screen.shows(/4\n─/)
    await screen.keys("End", "Enter")
    await screen.shows(new RegExp(`echo claude_code:${RACE}`))
    await screen.keys("Enter")
    await screen.shows(new RegExp(`^claude_code:${RACE}`, "m"))
  })
})

describe.skipIf(!hasTmux)("dex pick", () => {
  test("prints the ref that was chosen, inside a command", async () => {
    const { screen } = await opened({ line: 'echo "got $(dex pick)"' })
    await screen.keys("End", "Enter")
    await screen.shows(`got claude_code:${RACE}`)
    await isRestored(screen)
  })

  test("starts with the given words, and exits with 1 if nothing is chosen", async () => {
    const screen = await openScreen(await readHome(), { columns: 80, rows: 24 })
    await screen.keys("dex pick token rotated; echo ended $?", "Enter")
    expect(selected(await screen.shows(/^❯ token rotated .* 1$/m))).toBe("Refresh token race")
    await screen.keys("C-z", "C-c")
    await screen.shows("ended 1")
  })

  test("without a terminal it says so", async () => {
    const run = await dex(tempDir(), ["pick"])
    expect(run).toMatchObject({ code: 2, stdout: "" })
    expect(run.stderr).toContain("The picker needs a terminal")
  })
})
