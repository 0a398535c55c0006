import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { readArguments } from "../../src/cli/args.ts"
import { commands } from "../../src/cli/commands.ts"
import { hasOldName } from "../../src/cli/forms.ts"
import { listedCommands } from "../../src/cli/other-commands.ts"
import { WORDS_AFTER_DEX } from "../../src/cli/print/words.ts"
import { dex as dexAlone } from "../support/dex.ts"
import { smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const retired = commands.flatMap(({ tool }) => (hasOldName(tool) ? [tool.name] : []))
const TRIED = { ls: "list", find: "search", open: "show", rm: "forget", index: "list", get: "show" }

describe("names that people try", () => {
  test("do what the command does, and its help names them", async () => {
    const home = tempDir()
    smallHome(home)
    await syncHome(home)
    const same = async (alias: string[], command: string[]) => {
      const run = await dex(home, alias)
      expect([alias, run]).toEqual([alias, await dex(home, command)])
      return run
    }
    const { stdout } = await same(["ls", "--json"], ["list", "--json"])
    const ref = JSON.parse(stdout).conversations[0].id as string
    await same(["find", "sidebar"], ["search", "sidebar"])
    await same(["open", ref], ["show", ref])
    expect(await dex(home, ["rm", ref, "--yes"])).toMatchObject({ code: 0 })
    expect(await dex(home, ["open", ref])).toMatchObject({ code: 2 })
    for (const [alias, name] of Object.entries(TRIED)) {
      const help = await same([alias, "--help"], [name, "--help"])
      expect(help.stdout).toMatch(new RegExp(`^Also: .*\\bdex ${alias}\\b`, "m"))
    }
    const { stdout: all } = await dex(home, ["help", "all"])
    expect(all).toMatch(/^ +list +.*\(also: ls, index\)$/m)
  })

  test("-v, -V, --version and version print the version", async () => {
    const home = tempDir()
    for (const word of ["-v", "-V", "--version", "version"])
      expect(await dexAlone(home, [word])).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^dex \d+\.\d+\.\d+\n$/),
      })
  })

  test("a name belongs to one command only", () => {
    const listed = listedCommands(commands).flatMap(({ name, aliases = [] }) => [name, ...aliases])
    const names = [...listed, ...retired]
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
  })

  test("`asTyped` knows every alias", () => {
    const names = listedCommands(commands).flatMap(({ name, aliases = [] }) => [name, ...aliases])
    expect([...WORDS_AFTER_DEX].sort()).toEqual(
      [...names, ...retired, "version", "-v", "-V", "--version", "--plain"].sort(),
    )
  })

  test("every shell completes them, and the options after them", async () => {
    const home = tempDir()
    const script = async (shell: string) => (await dex(home, ["completions", shell])).stdout
    const [bash, zsh, fish] = [await script("bash"), await script("zsh"), await script("fish")]
    for (const alias of [...Object.keys(TRIED), "serve", "hook", "help"]) {
      expect(zsh).toMatch(new RegExp(`'${alias}:[A-Z]`))
      expect(fish).toMatch(new RegExp(`__fish_use_subcommand -a ${alias} -d '[A-Z]`))
    }
    expect(fish).toMatch(/__fish_seen_subcommand_from list ls index' -l limit/)
    expect(zsh).toMatch(/^ {4}list\|ls\|index\) compadd -- .*--limit/m)
    writeFileSync(join(home, "dex.bash"), bash)
    const complete = (...words: string[]) =>
      execFileSync(
        "bash",
        [
          "-c",
          `. ./dex.bash; COMP_WORDS=(${words.join(" ")}); COMP_CWORD=${words.length - 1}; _dex; echo "\${COMPREPLY[@]}"`,
        ],
        { cwd: home, encoding: "utf8" },
      ).trim()
    expect(complete("dex", "fi")).toBe("find fix")
    expect(complete("dex", "ls", "--lim")).toBe("--limit")
  })
})

describe("-n", () => {
  const limited = commands.map(({ tool }) => tool).filter(({ input }) => input.properties?.limit !== undefined)

  test.each(limited.map((tool) => [tool.name, tool] as const))("is --limit in dex %s", (_, tool) => {
    const { positional } = tool.cli
    const words = positional === undefined ? [] : [tool.input.properties![positional]?.enum?.[0] ?? "x"]
    const letters = ["n", ...Object.keys(tool.cli.short ?? {}).filter((letter) => tool.cli.short![letter] === "limit")]
    for (const typed of letters.flatMap((letter) => [[`-${letter}`, "12"], [`-${letter}12`]]))
      expect(readArguments(tool, [...words, ...typed]).input).toMatchObject({ limit: 12 })
    expect(readArguments(tool, [...words, "--limit", "12"]).input).toMatchObject({ limit: 12 })
  })

  test("is shown by help, next to the older letter", async () => {
    expect(limited.length).toBeGreaterThan(7)
    const { stdout } = await dex(tempDir(), ["list", "--help"])
    expect(stdout).toMatch(/-n, --limit N +.* Also: -l\./)
  })

  test("without a number is an error that names --limit", async () => {
    for (const letter of ["-n", "-l"]) {
      const { code, stderr } = await dex(tempDir(), ["list", letter])
      expect([code, stderr]).toEqual([2, expect.stringMatching(/--limit <value>' argument missing/)])
    }
  })

  test("limits dex trace --list too", () => {
    const { tool } = commands.find(({ tool: { name } }) => name === "traces")!
    expect(readArguments(tool, ["-n", "3"]).input).toEqual({ limit: 3 })
  })
})
