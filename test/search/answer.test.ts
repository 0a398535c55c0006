import fc from "fast-check"
import { expect, test } from "vitest"
import { estimateTokens } from "../../src/core/tokens.ts"
import { clipSnippet, MATCH_MARK } from "../../src/store/index/snippets.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

test("a default search answer takes at most 1,600 tokens, whatever was found", async () => {
  const home = tempDir()
  for (let i = 0; i < 14; i++) {
    claudeSession(home, {
      id: `${String(i).padStart(8, "0")}-1111-4111-8111-111111111111`,
      cwd: `/home/developer/workspace/a-rather-long-project-name-${i}`,
      start: `2026-11-${String(i + 1).padStart(2, "0")}T10:00:00Z`,
      turns: [
        {
          user: `${i} how do we rotate the refresh token ${`internalRefreshTokenRotationCoordinator${i} "quoted\\path" `.repeat(30)}`,
        },
        {
          assistant: `Rotate the refresh token in step ${i}, then ${"explain each of the many considerations ".repeat(40)}`,
        },
      ],
    })
  }
  await syncHome(home)
  const { stdout } = await dex(home, ["search", "rotate refresh token", "--json"])
  const answer = JSON.parse(stdout) as { results: { snippet: string }[] }
  expect(answer.results).toHaveLength(10)
  expect(estimateTokens(stdout)).toBeLessThanOrEqual(1_600)
  for (const { snippet } of answer.results) expect(snippet).toContain(MATCH_MARK)
})

test("a clipped snippet keeps its first marked word and no half mark", () => {
  const word = fc
    .string({ unit: "grapheme-ascii", minLength: 1, maxLength: 12 })
    .map((text) => text.replace(/[\s*]/g, "x"))
  fc.assert(
    fc.property(
      fc.array(word, { maxLength: 60 }),
      fc.array(word, { maxLength: 60 }),
      fc.integer({ min: 60, max: 300 }),
      (before, after, chars) => {
        const snippet = [...before, `${MATCH_MARK}match${MATCH_MARK}`, ...after].join(" ")
        const clipped = clipSnippet(snippet, chars)
        expect(clipped).toContain(`${MATCH_MARK}match${MATCH_MARK}`)
        expect(JSON.stringify(clipped).length).toBeLessThanOrEqual(chars + 4)
        expect(clipped.split(MATCH_MARK).length % 2).toBe(1)
      },
    ),
  )
})

test("--explain prints every score as a sum", async () => {
  const home = tempDir()
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-11-01T10:00:00Z",
    turns: [{ user: "rotate the refresh token" }, { assistant: "The refresh token is rotated." }],
  })
  await syncHome(home)
  const { stdout } = await dex(home, ["search", "refresh token", "--explain"])
  expect(stdout).toMatch(
    /words \d+\.\d+ \+ pairs \d+\.\d+ \+ neighbours \d+\.\d+ \+ others \d+\.\d+ \+ title \d+\.\d+ =\s+\d+\.\d+/,
  )
})

test("a title in a search is as long as in a list", async () => {
  const home = tempDir()
  const title =
    "Make the refresh of tokens wait for the one that is under way before it asks the server for another one"
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-11-04T10:00:00Z",
    title,
    turns: [{ user: "Why is the zeppelin late?" }],
  })
  await syncHome(home)
  const search = JSON.parse((await dex(home, ["search", "zeppelin", "--json"])).stdout)
  const list = JSON.parse((await dex(home, ["list", "--json"])).stdout)
  expect([search.results[0].title, list.conversations[0].title]).toEqual([title, title])
})
