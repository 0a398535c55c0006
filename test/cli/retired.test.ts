import { describe, expect, test } from "vitest"
import { commands } from "../../src/cli/commands.ts"
import { hasOldName } from "../../src/cli/forms.ts"
import { listedCommands } from "../../src/cli/other-commands.ts"
import { quickCommands } from "../../src/cli/quick-commands.ts"
import { onTerminal } from "../integrations/terminal.ts"
import { syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

const REF = "claude_code:11111111-1111-4111-8111-111111111111"
const home = syncedOnce()
/** A call by the old name, and the same call by the new one. Some have nothing to list here, or refuse: both do the same. */
const CALLS: Record<string, [old: string[], now: string[]]> = {
  scan: [
    ["scan", REF],
    ["show", REF, "--lines"],
  ],
  read: [
    ["read", REF, "5-10"],
    ["show", REF, "--messages", "5-10"],
  ],
  timeline: [
    ["timeline", REF],
    ["show", REF, "--timeline"],
  ],
  traces: [
    ["traces", "--limit", "1"],
    ["trace", "--list", "--limit", "1"],
  ],
  subscriptions: [
    ["subscriptions", "--all"],
    ["subscribe", "--all"],
  ],
  unsubscribe: [
    ["unsubscribe", "7c1f"],
    ["subscribe", "--off", "7c1f"],
  ],
  suggestions: [
    ["suggestions", "--all"],
    ["suggest", "--list", "--all"],
  ],
  feedback: [
    ["feedback", "3f2a", "used"],
    ["suggest", "--feedback", "3f2a", "used"],
  ],
  report: [["report"], ["suggest", "--report"]],
  mute: [
    ["mute", "--list"],
    ["suggest", "--mute", "--list"],
  ],
  tests: [
    ["tests", "--limit", "3"],
    ["fix", "--limit", "3"],
  ],
  chat: [["chat"], ["ask"]],
  gc: [["gc"], ["doctor", "gc"]],
  stats: [
    ["stats", "--summary"],
    ["doctor", "stats", "--summary"],
  ],
  sources: [["sources"], ["doctor", "sources"]],
  secrets: [["secrets"], ["doctor", "secrets"]],
  reindex: [["reindex"], ["doctor", "reindex"]],
  restore: [
    ["restore", "nothing.db"],
    ["backup", "--restore", "nothing.db"],
  ],
}
const retired = commands.map(({ tool }) => tool).filter(hasOldName)
const nowOf = (name: string) => retired.find((tool) => tool.name === name)!.cli.formOf!.now

test("every old name has an example here", () => {
  expect(Object.keys(CALLS).sort()).toEqual(retired.map(({ name }) => name).sort())
})

test("a quick command includes all its forms, and is in the list of all commands", () => {
  const quick = new Set(quickCommands.map(({ tool }) => tool.name))
  const missing = commands.filter(({ tool }) => quick.has(tool.cli.formOf?.command ?? "") && !quick.has(tool.name))
  expect(missing.map(({ tool }) => tool.name)).toEqual([])
  expect(quickCommands.filter((one) => !commands.includes(one))).toEqual([])
})

test("help lists at most 41 commands", () => {
  expect(listedCommands(commands).length).toBeLessThanOrEqual(41)
})

test("a command without words runs the form that lists, but --help describes the command itself", async () => {
  expect(JSON.parse((await dex(home, ["subscribe", "--json"])).stdout)).toHaveProperty("subscriptions")
  expect((await dex(home, ["subscribe", "--help"])).stdout).toMatch(/^dex subscribe <pattern…>/)
  expect((await dex(home, ["fix", "--json"])).stdout).toContain('"failing"')
  expect((await dex(home, ["fix", "some error", "--json"])).stdout).toContain('"fixes"')
})

test("the word that chooses a form has no effect elsewhere", async () => {
  expect(await dex(home, ["doctor", "sourdough"])).toMatchObject({ code: 2 })
  expect((await dex(home, ["search", "gc", "--json"])).stdout).toContain("results")
})

describe.each(Object.keys(CALLS))("dex %s", (name) => {
  test("still works, and gives the same answer as its form", async () => {
    const [old, now] = CALLS[name]!
    const plain = ({ code, stdout, stderr }: Awaited<ReturnType<typeof dex>>) => ({
      code,
      hasNotes: stderr !== "",
      // Times, sizes and ids of two runs differ.
      stdout: stdout.replaceAll(/T-[0-9a-f]+|\d+(?:[.,]\d+)* ?(?:ms|s|kB|MB|bytes)?\b/g, "N"),
    })
    for (const more of [["--json"], []]) {
      const before = await dex(home, [...old, ...more])
      expect(before.stdout + before.stderr).toMatch(/\S/)
      expect(plain(await dex(home, [...now, ...more]))).toEqual(plain(before))
    }
  })

  test("is in no list of commands and no completion", async () => {
    expect(commands.map(({ tool }) => tool.name)).toContain(name)
    expect(listedCommands(commands).filter((one) => one.name === name)).toEqual([])
    expect((await dex(home, ["help", "all"])).stdout).not.toMatch(new RegExp(`^(?:[A-Z][a-z]+)? +${name} `, "m"))
    const script = async (shell: string) => (await dex(home, ["completions", shell])).stdout
    expect(/compgen -W "([^"]+)"/.exec(await script("bash"))![1]!.split(" ")).not.toContain(name)
    expect(await script("zsh")).not.toContain(`'${name}:`)
    expect(await script("fish")).not.toMatch(new RegExp(`subcommand(?:_from [^']*\\b| -a )${name}\\b`))
    expect((await dex(home, ["help", name])).stdout).toMatch(new RegExp(`^dex ${name} `))
  })

  test("says what it is called now, only on a terminal", async () => {
    const [old, now] = CALLS[name]!
    const note = `\`dex ${name}\` is now \`${nowOf(name)}\`.`
    for (const args of [old, [name, "--help"]]) expect((await dex(home, args)).stderr).not.toContain("is now")
    const screen = async (args: string[]) => (await onTerminal(tempDir(), args, []))?.screen
    const shown = await screen([name, "--help"])
    if (shown === undefined) return
    expect(shown.split("\r\n")[0]).toBe(note)
    expect(await screen([...now, "--help"])).not.toContain("is now")
  })
})
