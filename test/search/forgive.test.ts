import { beforeAll, describe, expect, test } from "vitest"
import { editDistance } from "../../src/core/nearest.ts"
import { claudeSession } from "../support/home.ts"
import { sharedTempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const home = sharedTempDir()
const SAID = [
  "Two checkpoints had the same id after the rebase. The checkpoint is written twice.",
  "The authentication of the webhook fails; authenticated calls pass.",
  "Wingman reviews each commit. The wingman found a mistake.",
  "We keep the configuration in one repository.",
]

beforeAll(async () => {
  for (const [n, user] of SAID.entries())
    claudeSession(home, {
      id: `${n}aaaaaaa-1111-4111-8111-111111111111`,
      cwd: n === 1 ? "/code/website" : "/code/api",
      start: `2026-10-0${n + 1}T10:00:00Z`,
      turns: [{ user }, { assistant: "Noted." }],
    })
  claudeSession(home, {
    id: "9aaaaaaa-1111-4111-8111-111111111111",
    cwd: "/code/secret",
    start: "2026-10-09T10:00:00Z",
    turns: [{ user: "The zanzibar launch is on Friday." }, { assistant: "Noted." }],
  })
  await syncHome(home)
})

async function found(...args: string[]) {
  const { stdout } = await dex(home, ["search", ...args, "--json"])
  const { results, notes, replaced } = JSON.parse(stdout)
  return { ids: results.map(({ id }: { id: string }) => id.slice(12, 13)), notes: notes.join(" "), replaced }
}

describe("a word that occurs nowhere", () => {
  test.each([
    ["checkpont", "checkpoint", "0"],
    ["hceckpoints", "checkpoints", "0"],
    ["wingmn", "wingman", "2"],
    ["authenticaton", "authentication", "1"],
    ["repositiry", "repository", "3"],
  ])("%s is replaced by %s, and the answer says so", async (typed, meant, id) => {
    const { ids, notes, replaced } = await found(typed)
    expect(ids).toEqual([id])
    expect(replaced[0].by[0]).toBe(meant)
    expect(notes).toContain(`No message contains "${typed}". Showing results for "${meant}".`)
  })

  test("is replaced, and the other words stay as they are", async () => {
    const { ids, replaced } = await found("wingmn reviews commit")
    expect(ids[0]).toBe("2")
    expect(replaced).toEqual([{ typed: "wingmn", by: ["wingman"] }])
  })

  test("that is similar to nothing finds nothing, and is not guessed", async () => {
    expect(await found("xylophone")).toMatchObject({ ids: [], replaced: undefined })
  })

  test("is never replaced by a word of a project that is private elsewhere", async () => {
    expect((await found("zanzibr")).replaced).toEqual([{ typed: "zanzibr", by: ["zanzibar"] }])
    expect(await dex(home, ["private", "/code/secret"])).toMatchObject({ code: 0 })
    const { stdout, stderr } = await dex(home, ["search", "zanzibr"])
    expect(`${stdout}${stderr}`).not.toContain("zanzibar")
    expect(await dex(home, ["private", "/code/secret", "--off"])).toMatchObject({ code: 0 })
  })
})

test.each([
  ["authentication", "1"],
  ["configuration", "3"],
  ["repository", "3"],
  ["wingman", "2"],
])("%s is found from its third letter on, at every letter", async (word, id) => {
  for (let length = 3; length <= word.length; length++) {
    const { ids } = await found(word.slice(0, length))
    expect([word.slice(0, length), ids]).toEqual([word.slice(0, length), expect.arrayContaining([id])])
  }
})

test("a word that occurs is searched for as it is, even if few messages have it", async () => {
  expect(await found("webhook fails")).toMatchObject({ ids: ["1"], notes: "", replaced: undefined })
  expect(await found("checkpoints rebase written")).toMatchObject({ ids: ["0"], notes: "", replaced: undefined })
})

test("filters that leave nothing are named, with the results without them", async () => {
  const { notes } = await found("wingman", "--source", "codex", "--project", "api")
  expect(notes).toContain("1 message matches without source:codex.")
  expect(notes).not.toContain("without project:api")
  expect((await dex(home, ["search", "wingman", "--from", "2026-10-20"])).stderr).toContain(
    "1 message matches without from:2026-10-20.",
  )
})

test("an unknown project is named, with similar ones, but no private one", async () => {
  expect((await found("wingman", "--project", "websit3")).notes).toMatch(
    /^No project's path contains "websit3"\. Similar projects: website\. 1 message matches without project:websit3\.$/,
  )
  expect(await dex(home, ["private", "/code/secret"])).toMatchObject({ code: 0 })
  expect((await found("wingman", "--project", "secert")).notes).not.toContain("secret")
  expect(await dex(home, ["private", "/code/secret", "--off"])).toMatchObject({ code: 0 })
})

test("the distance of words counts inserted, omitted, replaced and swapped letters", () => {
  const pairs: [string, string, number][] = [
    ["abc", "abc", 0],
    ["abc", "abcd", 1],
    ["abc", "ac", 1],
    ["abc", "axc", 1],
    ["abc", "acb", 1],
    ["abc", "cab", 2],
    ["kitten", "sitting", 3],
    ["", "ab", 2],
  ]
  for (const [a, b, distance] of pairs) {
    expect([a, b, editDistance(a, b, 5)]).toEqual([a, b, distance])
    expect(editDistance(b, a, 5)).toBe(distance)
    expect(editDistance(a, b, 1)).toBe(Math.min(2, distance))
  }
})
