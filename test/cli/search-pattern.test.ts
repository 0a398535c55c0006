import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"

const SECRET = `ghp_${"Ab3dE6gH9jK2mN5pQ8rS".repeat(2).slice(0, 36)}`

const home = syncedOnce((at) => {
  claudeSession(at, {
    id: "77777777-7777-4777-8777-777777777777",
    start: "2026-11-05T10:00:00Z",
    turns: [
      { user: "Why does the deploy stop?\nIt says EQUOKKA: no room\nand ends." },
      { assistant: `The quokka_lock is held. The token was ${SECRET}.` },
      { user: `${"a".repeat(60)}!` },
    ],
  })
  claudeSession(at, {
    id: "88888888-8888-4888-8888-888888888888",
    start: "2026-11-07T10:00:00Z",
    turns: [{ user: "Is quokka_lock free \x1b[31mnow?" }, { assistant: "Yes." }],
  })
})

const search = (...args: string[]) => dex(home, ["search", ...args])

test("finds a regular expression, newest first, and says how many there are", async () => {
  const { stdout, stderr, code } = await search("-e", "quokka_\\w+")
  expect(code).toBe(0)
  expect(stdout.indexOf("8888")).toBeLessThan(stdout.indexOf("7777"))
  expect(stdout).toContain("Is **quokka_lock** free")
  expect(stdout).not.toContain("\x1b")
  expect(stderr).toContain("2 conversations shown, newest first. Found: 2 messages in 2 conversations.")
})

test("-F finds a text as it is written, -w only whole words, -C the lines around it", async () => {
  expect((await search("-F", "quokka_", "-w")).code).toBe(1)
  expect((await search("-F", "quokka", "-w")).code).toBe(1)
  const { stdout } = await search("-F", "EQUOKKA:", "-w", "-C", "1", "--project", "api")
  expect(stdout).toContain("    Why does the deploy stop?\n    It says **EQUOKKA:** no room\n    and ends.\n")
  const { results } = JSON.parse((await search("-F", "equokka", "-C", "0", "--json")).stdout)
  expect(results).toMatchObject([{ lines: ["It says **EQUOKKA**: no room"], snippet: "It says **EQUOKKA**: no room" }])
})

test("--count only counts", async () => {
  expect((await search("--count", "-e", "quokka")).stdout).toBe("3 messages in 2 conversations\n")
  expect(JSON.parse((await search("--count", "-F", "quokka", "--json")).stdout)).toMatchObject({
    results: [],
    total: 3,
    conversations: 2,
    mode: "pattern",
  })
  const none = await search("--count", "-e", "wombat")
  expect(none).toMatchObject({ code: 1, stdout: "" })
  expect(none.stderr).toContain("Searched all 5 conversations")
})

test("what was redacted stays hidden", async () => {
  expect((await search("-F", SECRET.slice(4, 20))).code).toBe(1)
  expect((await search("-e", "token was \\S+")).stdout).not.toContain(SECRET.slice(4, 20))
})

test("names the messages in which a pattern would never end", async () => {
  const { stderr, code } = await search("-e", "(a+)+$")
  expect(code).toBe(1)
  expect(stderr.replace(/\s+/g, " ")).toMatch(/Not searched, .* 1 message \(claude_code:7777\S+#3\)\./)
})

test("filters narrow it; words beside it, or an option without it, are an error that says what to type", async () => {
  expect((await search("-e", "quokka", "to:2026-11-06", "--count")).stdout).toBe("2 messages in 1 conversation\n")
  for (const args of [
    ["-w", "quokka"],
    ["-e", "a", "-F", "b"],
    ["-e", "a", "quokka"],
    ["-e", "(a"],
  ])
    expect(await search(...args)).toMatchObject({ code: 2, stdout: "" })
})
