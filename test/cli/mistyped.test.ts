import { describe, expect, test } from "vitest"
import { dex as dexAlone } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const errorBy = async (run: typeof dex, args: string[]) => {
  const { code, stdout, stderr } = await run(tempDir(), args)
  expect([args, code, stdout]).toEqual([args, 2, ""])
  return stderr.trimEnd()
}
const error = (...args: string[]) => errorBy(dex, args)
const errorAlone = (...args: string[]) => errorBy(dexAlone, args)

test("quoted text that begins with a dash is text, and an option with a space in its value stays an option", async () => {
  const home = tempDir()
  smallHome(home)
  await syncHome(home)
  const { code, stderr } = await dex(home, ["fix", "--- FAIL: TestCommitted_FallsBack", "--limit", "2"])
  expect([code, stderr]).toEqual([1, expect.stringContaining("No fix found")])
  expect((await dex(home, ["search", "--from=7 days ago", "-x y"])).stderr).not.toContain("has no option")
})

describe("a mistyped command", () => {
  test("suggests the nearest command, with the other words as typed", async () => {
    expect(await error("serach", "foo")).toBe('dex: There is no command "serach". Did you mean `dex search foo`?')
    expect(await error("serach", "refresh token", "--from", "7d")).toBe(
      "dex: There is no command \"serach\". Did you mean `dex search 'refresh token' --from 7d`?",
    )
    expect(await error("hadnover", "2")).toMatch(/Did you mean `dex handover 2`\?$/)
    expect(await error("fnid", "x")).toMatch(/Did you mean `dex find x`\?$/)
    expect(await error("comletions", "zsh")).toMatch(/Did you mean `dex completions zsh`\?$/)
    expect(await error("--hlep")).toMatch(/Did you mean `dex --help`\?$/)
    expect(await error("help", "serach")).toMatch(/Did you mean `dex search --help`\?$/)
  })

  test("is completed if it is the beginning of a command", async () => {
    expect(await error("sugg")).toMatch(/Did you mean `dex suggest`\?$/)
    expect(await error("searching", "x")).toMatch(/Did you mean `dex search x`\?$/)
  })

  test("that resembles none is suggested as a search for all the words", async () => {
    expect(await error("webhooks", "retry twice")).toBe(
      "dex: There is no command \"webhooks\". `dex help all` lists all commands. To search: dex search webhooks 'retry twice'",
    )
    expect(await error("-x")).toBe('dex: There is no command "-x". `dex help all` lists all commands.')
  })
})

describe("a mistyped option", () => {
  test("suggests the nearest option, without a list", async () => {
    expect(await error("search", "x", "--limt", "3")).toBe(
      "dex: dex search has no option --limt. Did you mean --limit?",
    )
    expect(await error("list", "--form=7d")).toBe("dex: dex list has no option --form. Did you mean --from?")
    expect(await error("show", "1", "--max", "9")).toMatch(/no option --max\. Did you mean --max-tokens\?$/)
    expect(await error("list", "--jsno")).toMatch(/Did you mean --json\?$/)
    expect(await errorAlone("serve", "--prot", "7337")).toBe(
      "dex: dex serve has no option --prot. Did you mean --port?",
    )
    expect(await errorAlone("mcp", "agent", "--colections", "x")).toMatch(/Did you mean --collections\?$/)
  })

  test("that other programs use for dates suggests dex's option, with examples", async () => {
    expect(await error("search", "x", "--after", "foo")).toMatch(
      /^dex: dex search has no option --after\. Did you mean --from\? It takes a day \(2026-11-03, .*7d, 2w\)\.$/,
    )
    expect(await error("list", "--until", "7d")).toMatch(/no option --until\. Did you mean --to\? It takes a day/)
    expect(await error("list", "--from", "foo")).toMatch(
      /^dex: "foo" is not a date that dex understands\. Write a day .*a month \(2026-11\).*how long ago \(30m, 12h, 7d, 2w\)\.$/,
    )
  })

  test("that resembles none points to the help", async () => {
    expect(await error("list", "--colour")).toBe("dex: dex list has no option --colour. See: dex list --help")
    expect(await error("list", "-x")).toBe("dex: dex list has no option -x. See: dex list --help")
  })
})

describe("--source", () => {
  const synced = async () => {
    const home = tempDir()
    smallHome(home)
    claudeSession(home, {
      id: "77777777-7777-4777-8777-777777777777",
      start: "2026-11-01T00:00:00Z",
      turns: [{ user: "where does the axolotl sleep" }, { assistant: "In the pond." }],
    })
    await syncHome(home)
    return home
  }

  test("accepts an agent's id, its name, or a unique part of one", async () => {
    const home = await synced()
    const exact = await dex(home, ["list", "--source", "claude_code", "--json"])
    expect(JSON.parse(exact.stdout).total).toBeGreaterThan(0)
    for (const word of ["claude", "Claude Code", "claude-code", "CLAUDE", "clau"])
      expect([word, await dex(home, ["list", "--source", word, "--json"])]).toEqual([word, exact])
    for (const word of ["gemini", "gem", "opencod", "cursor"])
      expect(await dex(home, ["list", "-s", word, "--json"])).toMatchObject({ code: 1, stderr: "" })
  })

  test("is understood in a query too, if it is unambiguous", async () => {
    const home = await synced()
    const found = async (...words: string[]) =>
      JSON.parse((await dex(home, ["search", ...words, "--json"])).stdout).results.map(({ id }: { id: string }) => id)
    const [only] = await found("axolotl")
    expect(await found("axolotl", "source:claude")).toEqual([only])
    expect(await found("axolotl", "--source", "claude")).toEqual([only])
    expect(await found("axolotl", "source:gemini")).toEqual([])
  })

  test("with an unknown agent suggests the nearest one, or lists all", async () => {
    const home = await synced()
    const errorFor = async (word: string) => (await dex(home, ["list", "--source", word])).stderr.trimEnd()
    expect(await errorFor("cladue")).toBe('dex: No agent is called "cladue". Did you mean claude_code?')
    expect(await errorFor("gemni-cli")).toMatch(/Did you mean gemini_cli\?$/)
    expect(await errorFor("codx")).toMatch(/Did you mean codex or vscode\?$/)
    expect(await errorFor("opencl")).toBe(
      'dex: "opencl" matches several agents: openclaw, openclaude. Type more of it.',
    )
    expect(await errorFor("vim")).toMatch(/No agent is called "vim"\. The agents are: claude_code, .*docs\.$/)
  })
})
