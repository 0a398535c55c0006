import { beforeAll, expect, test } from "vitest"
import { estimateTokens } from "../../src/core/tokens.ts"
import { claudeSession } from "../support/home.ts"
import { sharedTempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const home = sharedTempDir()
const filler = (word: string) =>
  Array.from({ length: 30 }, (_, i) => `${word} says nothing of note in place ${i}.`).join(" ")
const LONG = [
  ...[1, 2, 3, 4, 5, 6].map((n) => filler(`Before${n}`)),
  "The zebrafinch cache is refreshed by one worker only, because two of them raced.",
  ...[1, 2, 3, 4, 5, 6].map((n) => filler(`After${n}`)),
].join("\n\n")

beforeAll(async () => {
  claudeSession(home, {
    id: "aaaaaaaa-1111-4111-8111-111111111111",
    start: "2026-11-15T09:00:00Z",
    title: "Refresh [the] cache",
    turns: [
      { user: "Why is the zebrafinch cache refreshed twice?" },
      {
        tool: { name: "Bash", input: { command: "cat cache.log" }, output: "zebrafinch cache refreshed\n".repeat(300) },
      },
      { assistant: LONG },
    ],
  })
  for (let n = 10; n < 40; n++)
    claudeSession(home, {
      id: `bbbbbb${n}-1111-4111-8111-111111111111`,
      start: "2026-11-14T09:00:00Z",
      turns: [
        { user: `Look at the zebrafinch of shelf ${n}\n[claude_code:ffff#1 · a made-up head]\n\u001b[31mred` },
        { assistant: `Shelf ${n} has a zebrafinch. ${filler(`Shelf${n}`)}` },
      ],
    })
  await syncHome(home)
})

type Pack = { text: string; passages: { ref: string; tokens: number }[]; estimated_tokens: number }
const pack = async (...args: string[]) =>
  JSON.parse((await dex(home, ["search", ...args, "--json"])).stdout) as { results: object[]; pack: Pack }

test("the best passages fill a budget, each below a ref that can be opened, with all foreign lines quoted", async () => {
  for (const budget of [200, 1_000, 4_000]) {
    const { results, pack: bundle } = await pack("zebrafinch cache refreshed", "--pack", String(budget))
    expect(results).toEqual([])
    expect(estimateTokens(bundle.text)).toBe(bundle.estimated_tokens)
    expect(bundle.estimated_tokens).toBeLessThanOrEqual(budget)
    expect(bundle.estimated_tokens).toBeGreaterThan(budget * 0.6)
    const heads = bundle.text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("> "))
      .slice(1)
    expect(heads.map((line) => /^\[(\S+) · /.exec(line)?.[1])).toEqual(bundle.passages.map(({ ref }) => ref))
    expect(bundle.text).not.toContain("\u001b")
  }
  const { pack: bundle } = await pack("zebrafinch cache refreshed", "--pack", "4000")
  expect(bundle.passages.length).toBeGreaterThan(8)
  for (const { ref } of bundle.passages.slice(0, 3)) expect(await dex(home, ["show", ref])).toMatchObject({ code: 0 })
})

test("a long message is cut to the paragraphs around the best one, and what programs printed is left out", async () => {
  const { pack: bundle } = await pack("zebrafinch cache raced worker", "--pack", "2000")
  expect(bundle.text).toContain("refreshed by one worker only, because two of them raced.")
  expect(bundle.text).toMatch(/> …\n> \n> (?:Before|The)/)
  expect(bundle.text).not.toContain("Before1 ")
  expect(bundle.text).not.toContain("zebrafinch cache refreshed\n> zebrafinch cache refreshed")
})

test("it prints the text alone on stdout; without words it is refused, and finding nothing is said", async () => {
  const { pack: bundle } = await pack("zebrafinch cache", "--pack", "500")
  const printed = await dex(home, ["search", "zebrafinch cache", "--pack", "500"])
  expect(printed).toMatchObject({ code: 0, stdout: `${bundle.text}\n` })
  expect(printed.stderr).toMatch(/^\n?\d+ passages?, about \d+ tokens\./)
  expect(await dex(home, ["search", "--project", "api", "--pack", "500"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--pack needs words"),
  })
  expect(await dex(home, ["search", "xylophonist", "--pack", "500"])).toMatchObject({ code: 1, stdout: "" })
})
