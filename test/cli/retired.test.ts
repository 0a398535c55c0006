import { describe, expect, test } from "vitest"
import { commands } from "../../src/cli/commands.ts"
import { everyCommand } from "../../src/cli/other-commands.ts"
import { RETIRED } from "../../src/cli/retired.ts"
import { onTerminal } from "../integrations/terminal.ts"
import { syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

const REF = "claude_code:11111111-1111-4111-8111-111111111111"
/** The arguments for each old name that do the same as the form in the table. */
const WORDS: Record<string, string[]> = { scan: [REF], read: [REF, "5-10"], timeline: [REF] }
const home = syncedOnce()
const formOf = (name: string) => RETIRED[name]!.replace("REF", REF).split(" ").slice(1)

test("every retired name has an example here", () => {
  expect(Object.keys(WORDS).sort()).toEqual(Object.keys(RETIRED).sort())
})

describe.each(Object.keys(RETIRED))("dex %s", (name) => {
  test("still works, and its form answers the same", async () => {
    for (const more of [["--json"], []]) {
      const old = await dex(home, [name, ...WORDS[name]!, ...more])
      const { code, stdout } = await dex(home, [...formOf(name), ...more])
      expect(old).toMatchObject({ code: 0, stdout: expect.stringMatching(/\S/) })
      expect({ code, stdout }).toEqual({ code: 0, stdout: old.stdout })
    }
  })

  test("is in no list of commands and no completion", async () => {
    expect(commands.map(({ tool }) => tool.name)).toContain(name)
    expect(everyCommand().filter((one) => one.name === name)).toEqual([])
    expect((await dex(home, ["help", "all"])).stdout).not.toMatch(new RegExp(`^(?:[A-Z][a-z]+)? +${name} `, "m"))
    const script = async (shell: string) => (await dex(home, ["completions", shell])).stdout
    expect(/compgen -W "([^"]+)"/.exec(await script("bash"))![1]!.split(" ")).not.toContain(name)
    expect(await script("zsh")).not.toContain(`'${name}:`)
    expect(await script("fish")).not.toMatch(new RegExp(`subcommand(?:_from [^']*\\b| -a )${name}\\b`))
    expect((await dex(home, ["help", name])).stdout).toMatch(new RegExp(`^dex ${name} `))
  })

  test("says what it is called now, only on a terminal", async () => {
    const note = `\`dex ${name}\` is now \`${RETIRED[name]}\`.`
    for (const args of [[name, ...WORDS[name]!], [name, "--help"], [name]])
      expect((await dex(home, args)).stderr).not.toContain("is now")
    const screen = async (args: string[]) => (await onTerminal(tempDir(), args, []))?.screen
    const shown = await screen([name, "--help"])
    if (shown === undefined) return
    expect(shown.split("\r\n")[0]).toBe(note)
    expect(await screen([...formOf(name), "--help"])).not.toContain("is now")
  })
})
