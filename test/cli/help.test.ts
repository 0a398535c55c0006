import { describe, expect, test } from "vitest"
import { readArguments } from "../../src/cli/args.ts"
import { commands } from "../../src/cli/commands.ts"
import { allHelp, shortHelp, toolHelp } from "../../src/cli/help.ts"
import { listedCommands } from "../../src/cli/other-commands.ts"
import { COMMAND_GROUPS } from "../../src/core/tool.ts"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"
import { onTerminal } from "../integrations/terminal.ts"
import { dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const NARROW = { columns: 60, color: false, interactive: true }
const named = (name: string) => commands.find(({ tool }) => tool.name === name)!.tool
const help = (name: string, terminal = { ...NARROW, columns: 80 }) => toolHelp(named(name), terminal)
const everything = listedCommands(commands)
/** The commands that a list of them shows. */
const namesIn = (shown: string) =>
  [...shown.matchAll(/^(?:[A-Z][a-z]+)? +([a-z]+) +[A-Z]\w+ /gm)].map(([, name]) => name!)
const errorOf = (name: string, ...argv: string[]): string => {
  try {
    readArguments(named(name), argv)
    return ""
  } catch (error) {
    return (error as Error).message
  }
}

test("every command that is declared for agents is offered to agents", () => {
  const declared = commands.flatMap(({ tool }) => (tool.mcp ? [tool.mcp.name] : []))
  expect(offeredTools.map(({ mcp }) => mcp.name).sort()).toEqual(declared.sort())
})

describe("dex --help", () => {
  test("fits a screen of 24 rows and 80 columns, including the prompt", async () => {
    const shown = shortHelp(everything, { ...NARROW, columns: 80 })
    const lines = shown.split("\n").slice(0, -1)
    expect(lines.length).toBeLessThanOrEqual(23)
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    expect(lines[0]).toMatch(/^dex .*coding agents/)
    const home = tempDir()
    for (const word of ["--help", "-h", "help"]) {
      const run = await onTerminal(home, [word], [], 80)
      if (run) expect(run).toEqual({ code: 0, screen: shown.replaceAll("\n", "\r\n") })
    }
  })

  test("shows about ten commands, a line each, and says how to see the others", () => {
    const shown = shortHelp(everything, { ...NARROW, columns: 80 })
    expect(namesIn(shown)).toEqual(
      COMMAND_GROUPS.flatMap((group) => everything.filter((one) => one.common && one.group === group)).map(
        ({ name }) => name,
      ),
    )
    expect(namesIn(shown).length).toBeGreaterThanOrEqual(9)
    expect(namesIn(shown).length).toBeLessThanOrEqual(13)
    for (const group of COMMAND_GROUPS.slice(0, -1)) expect(shown).toMatch(new RegExp(`^${group} +[a-z]+ +[A-Z]`, "m"))
    expect(shown).toMatch(/^dex help all +List all \d\d commands$/m)
    expect(shown).toMatch(/^dex help COMMAND /m)
  })

  test("dex help all lists every command once, below its group", async () => {
    const { code, stdout } = await warmDex(tempDir(), ["help", "all"])
    expect(code).toBe(0)
    expect(namesIn(stdout).sort()).toEqual(everything.map(({ name }) => name).sort())
  })

  test("every command has a group, and a summary that begins with a verb", () => {
    expect(everything.filter(({ group }) => !COMMAND_GROUPS.includes(group)).map(({ name }) => name)).toEqual([])
    const verbs =
      "Add Answer Ask Check Connect Continue Delete Draft Explain Find Free Get Hide Keep List Measure Merge Open Outline Print Read Rebuild Remove Replace Report Run Say Serve Share Show Suggest Turn Write"
    const odd = everything.filter(({ summary }) => !verbs.split(" ").includes(summary.split(" ")[0]!))
    expect(odd.map(({ name, summary }) => `${name}: ${summary}`)).toEqual([])
  })
})

describe("--help", () => {
  test("shows optional arguments in brackets", () => {
    expect(help("decisions")).toMatch(/^dex decisions \[word…\] \[options\]/)
    expect(help("install")).toMatch(/^dex install \[agent…\] \[options\]/)
    expect(help("subscribe")).toMatch(/^dex subscribe <pattern…> \[options\]/)
    expect(help("fix")).toMatch(/^dex fix <error> \[options\]/)
  })

  test("describes a second positional argument once, and not as a flag, although the flag still works", () => {
    const shown = help("feedback")
    expect(shown).toMatch(/^dex feedback \[id\] \[verdict\] \[options\]/)
    expect(shown).toContain("verdict: One of: used, dismissed.")
    expect(shown).not.toContain("--verdict")
    expect(readArguments(named("feedback"), ["3f2a", "--verdict", "used"]).input).toEqual({
      id: "3f2a",
      verdict: "used",
    })
  })

  test("fits the terminal", () => {
    for (const { tool } of commands)
      for (const line of toolHelp(tool, NARROW).split("\n"))
        if (!/^(?:Example|dex )/.test(line))
          expect([tool.name, line, line.length <= 60]).toEqual([tool.name, line, true])
    for (const line of [...shortHelp(everything, NARROW).split("\n"), ...allHelp(everything, NARROW).split("\n")])
      expect([line, line.length <= 60]).toEqual([line, true])
  })

  test("shows the value of a numeric option as N", () => {
    expect(help("subscribe")).toMatch(/--min-relevance N +\S/)
  })

  test("every option has a description that is understandable on its own", () => {
    const shown = help("suggest")
    for (const phrase of [
      /--symbol … +.*symbol/i,
      /--line N +.*cursor/i,
      /--recent … +.*files/i,
      /--session … +.*session/i,
    ])
      expect(shown).toMatch(phrase)
    expect(help("subscribe")).toMatch(/--cooldown-ms N +.*milliseconds/i)
  })

  test.each([
    ["completions", /dex completions bash/],
    ["hook", /Agents call it/],
    ["serve", /--behind-tls/],
  ])("dex %s has help too, although it is not a tool", async (name, text) => {
    const home = tempDir()
    for (const args of [
      [name, "--help"],
      [name, "-h"],
      ["help", name],
    ]) {
      const run = args[0] === "help" ? warmDex : dex
      expect(await run(home, args)).toMatchObject({ code: 0, stdout: expect.stringMatching(text), stderr: "" })
    }
    expect((await warmDex(home, ["help", "all"])).stdout).toMatch(new RegExp(`^(?:[A-Z][a-z]+)? +${name} `, "m"))
  })

  test("dex hook shows its help to a person, never to an agent that omits the event", async () => {
    const home = tempDir()
    expect(await dex(home, ["hook", "claude_code", "--help"])).toMatchObject({
      stdout: expect.stringMatching(/Agents call/),
    })
    for (const args of [["hook"], ["hook", "claude_code"]])
      expect(await dex(home, args, {}, undefined, "{}")).toEqual({ code: 0, stdout: "", stderr: "" })
  })

  test.each([
    ["serve", "agent"],
    ["mcp", "agent"],
  ])("dex %s %s has help of its own", async (...command) => {
    expect(await dex(tempDir(), [...command, "--help"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^dex serve agent \[options\][\s\S]*--collections NAME/),
    })
  })

  test("dex serve names every tool that agents get", async () => {
    const { stdout } = await dex(tempDir(), ["serve", "--help"])
    expect(offeredTools.filter(({ mcp }) => !stdout.includes(mcp.name)).map(({ name }) => name)).toEqual([])
  })
})

describe("errors in arguments", () => {
  test("name positional arguments as such, not as flags that do not exist", () => {
    expect(errorOf("fix", "")).toMatch(/^<error> must not be empty\. See: dex fix --help/)
    expect(errorOf("unsubscribe", "")).toMatch(/^<id> must not be empty/)
    expect(errorOf("feedback", "3f2a", "loved")).toMatch(/^<verdict> must be one of: used, dismissed/)
  })

  test("name a flag as it is typed, even if its field is nested", () => {
    expect(errorOf("suggest", "--line", "0")).toMatch(/^--line must be at least 1/)
    expect(errorOf("list", "--limit", "0")).toMatch(/^--limit must be at least 1/)
  })

  test("say which option needs another", () => {
    expect(errorOf("suggest", "--column", "3")).toMatch(/^--column needs --line as well\. See: dex suggest --help/)
  })

  test("a value that begins with a dash is reported in one line that says how to write it", async () => {
    expect(errorOf("subscribe", "x", "--cooldown-ms", "-1")).toBe(
      "--cooldown-ms needs a value. If the value begins with a dash, write --cooldown-ms=-1. See: dex subscribe --help",
    )
    expect(errorOf("list", "-l", "-1")).toMatch(/^--limit needs a value. .* write --limit=-1\./)
    expect(errorOf("subscribe", "x", "--cooldown-ms=-1")).toMatch(/^--cooldown-ms must be at least 0/)
    const { code, stderr } = await dex(tempDir(), ["serve", "--port", "-1"])
    expect([code, stderr.split("\n").length]).toEqual([2, 2])
    expect(stderr).toContain("--port=-1")
  })
})
