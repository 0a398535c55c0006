import { readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest"
import { readArguments } from "../../src/cli/args.ts"
import { commands } from "../../src/cli/commands.ts"
import { pagerCommand, showInPager, withLessCharset } from "../../src/cli/terminal/pager.ts"
import { onTerminal, shellOnTerminal } from "../integrations/terminal.ts"
import { dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"

const PASTED = ["```", ...Array(40).fill("what was pasted ".repeat(6)), "```"].join("\n")
const HOME = syncedOnce((at) =>
  claudeSession(at, {
    id: "77777777-7777-4777-8777-777777777777",
    start: "2026-11-01T00:00:00Z",
    // More than fits into a pipe.
    turns: Array.from({ length: 100 }, (_, i) => ({ user: `question ${i} of many${i < 75 ? "" : `\n\n${PASTED}`}` })),
  }),
)
const FIRST = "question 0 of many"
const LAST = "question 99 of many"
/** The text that less shows below a page while it waits for a key. */
const PROMPT = /q: leave/
/** The prompt of a page without a title, as an option of less. */
const PLAIN = "-Psline %lb?L of %L.  /\\: search  q\\: leave"
/** Tests are skipped if `script` is not there to make a terminal. */
const isWithout = (run: unknown): run is undefined => run === undefined

describe("dex show on a terminal", () => {
  let inLess: ReturnType<typeof onTerminal>
  beforeAll(() => {
    inLess = onTerminal(HOME, ["show", "77777777"], [[PROMPT, "q"]])
  })

  test("opens in less, and q leaves it", async () => {
    const run = await inLess
    if (isWithout(run)) return
    expect(run.code).toBe(0)
    expect(run.screen).toContain(FIRST)
    expect(run.screen).not.toContain(LAST)
    expect(run.screen).toMatch(/Question 75 of many ``` what was pasted {2}line \d+ {2}\/: search {2}q: leave/)
  })

  test("is printed without waiting for a key if it fits on the screen", async () => {
    const run = await onTerminal(HOME, ["show", "77777777#1"], [])
    if (isWithout(run)) return
    expect(run.code).toBe(0)
    expect(run.screen).toMatch(/question 2 of many[\s\S]*There is more after: dex show/)
  })

  test.each([
    ["--no-pager", [], "--no-pager"],
    ["PAGER=cat", ["export PAGER=cat"], ""],
    ["an empty PAGER", ["export PAGER="], ""],
    ["DEX_PAGER=cat, whatever PAGER says", ["export DEX_PAGER=cat PAGER=false"], ""],
    ["a pager that does not exist", ["export PAGER=there-is-none"], ""],
    ["a shell that does not find the pager", ["export PAGER='there-is-none \"$HOME\"'"], ""],
    ["no less on the PATH", ["export PATH=/nowhere"], ""],
  ])("prints everything with %s", async (_, lines, flag) => {
    const run = await shellOnTerminal(HOME, [...lines, `dex show 77777777 ${flag}`, 'echo "ended $?"'])
    if (isWithout(run)) return
    expect(run.screen).toContain(FIRST)
    expect(run.screen).toContain(LAST)
    expect(run.screen.trimEnd()).toMatch(/ended 0$/)
  })

  test.each([
    ["plain words are started as they are", "export PAGER='head -n 6'"],
    ["a line for the shell is given to the shell", "export PAGER='cat | head -n $((3 + 3))'"],
  ])("a pager that ends early is not an error: %s", async (_, line) => {
    const run = await shellOnTerminal(HOME, [line, "dex show 77777777", 'echo "ended $?"'])
    if (isWithout(run)) return
    expect(run.screen).toContain(FIRST)
    expect(run.screen).not.toContain("question 3 of many")
    expect(run.screen.trimEnd()).toMatch(/ended 0$/)
    expect(run.screen).not.toMatch(/EPIPE|error/i)
  })

  test("Ctrl-C goes to the pager, and dex ends normally with it", async () => {
    const lines = ["export PAGER='echo waiting; exec sleep 100'", "trap : INT", "dex show 77777777", 'echo "ended $?"']
    const run = await shellOnTerminal(HOME, lines, [[/waiting/, "\x03"]])
    if (isWithout(run)) return
    expect(run.screen.trimEnd()).toMatch(/ended 0$/)
  })

  test("less keeps the options from LESS, and gets the one that colours need", async () => {
    const lines = ["export LESS=-M", "unset NO_COLOR", "dex show 77777777", 'echo "ended $?"']
    const run = await shellOnTerminal(HOME, lines, [[/lines 1-\d+/, "q"]])
    if (isWithout(run)) return
    expect(run.screen).toContain("\x1b[32m") // not ESC[32m, spelled out
    expect(run.screen).not.toContain("ESC")
    expect(run.screen.trimEnd()).toMatch(/ended 0$/)
  })

  test("has no colours with NO_COLOR, in less too", async () => {
    const run = await inLess
    if (isWithout(run)) return
    expect(run.screen).not.toMatch(/\x1b\[3\dm/)
  })

  test("less shows letters beyond ASCII even if no locale is set", async () => {
    const run = await inLess
    if (isWithout(run)) return
    expect(run.screen).toContain(`│ ${FIRST}`)
    expect(run.screen).not.toContain("<E2>")
  })

  test("--json never goes through a pager", async () => {
    const lines = ["export PAGER='sed s/^/PAGED/'", "dex show 77777777#1 --json", "dex show 77777777#1"]
    const run = await shellOnTerminal(HOME, lines)
    if (isWithout(run)) return
    expect(run.screen).toContain('{"conversations"')
    expect(run.screen).not.toContain('PAGED{"')
    expect(run.screen).toContain("PAGEDYou · #1")
  })
})

test("output to a pipe goes through no pager", async () => {
  const args = ["show", "77777777"]
  const plain = await dex(HOME, args)
  expect(plain.stdout).toContain(LAST)
  expect(await dex(HOME, args, { PAGER: "false", DEX_PAGER: "false" })).toEqual(plain)
  expect(await dex(HOME, [...args, "--no-pager"])).toEqual(plain)
})

describe("the pager", () => {
  test.runIf(process.platform !== "win32")(
    "is closed when a line cannot be generated, and shows the earlier lines",
    async () => {
      const file = join(tempDir(), "read")
      vi.stubEnv("DEX_PAGER", `cat > '${file}'`)
      onTestFinished(() => void vi.unstubAllEnvs())
      const lines = function* () {
        yield "first\n".repeat(2_000)
        throw new Error("the second is damaged")
      }
      await expect(showInPager(lines, true)).rejects.toThrow("the second is damaged")
      expect(readFileSync(file, "utf8")).toMatch(/^first\n/)
    },
  )

  test.each([
    [{}, ["less", "-RFX", PLAIN]],
    [{ PAGER: "less" }, ["less", "-RFX", PLAIN]],
    [{ PAGER: "/usr/bin/less" }, ["/usr/bin/less", "-RFX", PLAIN]],
    [{ PAGER: "less -S" }, ["less", "-R", "-S"]],
    [{ LESS: "-i" }, ["less", "-R"]],
    [{ PAGER: "more" }, ["more"]],
    [{ PAGER: "more", DEX_PAGER: "most -s" }, ["most", "-s"]],
    [{ PAGER: " " }, undefined],
    [{ TERM: "dumb" }, undefined],
  ])("with %o the command is %o", (env, command) => {
    expect(pagerCommand(env, true)).toEqual(command)
  })

  test("the prompt has the title, whose signs mean nothing to less", () => {
    expect(pagerCommand({}, true, "Why: 50 % of $x…?")?.at(-1)).toBe(
      "-PsWhy\\: 50 \\% of x\\?  line %lb?L of %L.  /\\: search  q\\: leave",
    )
  })

  test("sets UTF-8 for less only if nothing else sets a charset", () => {
    expect(withLessCharset({ LANG: "" })).toEqual({ LESSCHARSET: "utf-8" })
    for (const set of [{ LANG: "C" }, { LC_ALL: "de_DE.UTF-8" }, { LESSCHARSET: "latin1" }])
      expect(withLessCharset(set)).toEqual({})
  })

  test("only commands with paged output accept --no-pager", () => {
    const named = (name: string) => commands.find(({ tool }) => tool.name === name)!.tool
    expect(readArguments(named("show"), ["1", "--no-pager"]).pager).toBe(false)
    expect(readArguments(named("show"), ["1"]).pager).toBe(true)
    expect(() => readArguments(named("stats"), ["--no-pager"])).toThrow("has no option --no-pager")
  })
})
