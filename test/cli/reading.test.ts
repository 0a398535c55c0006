import { utimesSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { synced, syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const SIDEBAR = "claude_code:22222222-2222-4222-8222-222222222222"

const json = async (home: string, args: string[], env: Record<string, string> = {}) =>
  JSON.parse((await dex(home, [...args, "--json"], env)).stdout)

const SMALL = syncedOnce()

describe("dex scan", () => {
  test("shows a conversation as numbered lines", async () => {
    const run = await dex(SMALL, ["scan", "11111111"])
    expect(run.code).toBe(0)
    expect(run.stdout.split("\n").slice(3, 9)).toEqual([
      ' 1\t[user] 2026-11-03 10:00:00 ~22 | "Two requests refresh the token at once and one of them is logged out. Why?"',
      " 2\t[assistant] 10:01:00 ~21 | The refresh token is rotated, so the second request presents a used one.",
      " 3\t[assistant] 10:02:00 ~7 | [Bash: npm test]",
      " 4\t[tool] 10:03:00 ~14 | [Bash → failed, 2 lines] FAIL src/auth.test.ts Error: token already used",
      " 5\t[assistant] 10:04:00 ~11 | [Read: src/auth.ts]",
      " 6\t[tool] 10:05:00 ~8 | [Read → ok]",
    ])
    expect(run.stderr).toMatch(/10 messages, about \d+ tokens. Read some: dex read 11111111 5-10/)
  })

  test("cuts texts in proportion to tokens a message", async () => {
    const home = await synced((at) =>
      claudeSession(at, {
        id: "77777777-7777-4777-8777-777777777777",
        start: "2026-11-01T00:00:00Z",
        turns: [{ user: "x".repeat(999) }],
      }),
    )
    const cut = async (...args: string[]) =>
      /"(x+)…"/.exec((await json(home, ["scan", "77777777", ...args])).lines[0])![1]!.length
    expect([await cut(), await cut("--tokens-per-msg", "100"), await cut("--tokens-per-msg=25")]).toEqual([
      200, 400, 100,
    ])
  })

  test("says what a budget cut and which call continues, which shows the rest", async () => {
    const home = SMALL
    type Scan = { lines: string[]; left_out?: { messages: number }[] }
    const numbers: number[] = []
    let between = 0
    const count = ({ lines, left_out = [] }: Scan) => {
      numbers.push(...lines.map((line) => Number.parseInt(line, 10)))
      between += left_out.reduce((sum, { messages }) => sum + messages, 0)
    }
    const first = await json(home, ["scan", AUTH, "--max-tokens", "160"])
    expect(first.estimated_tokens).toBeLessThanOrEqual(160)
    expect(first.truncated.messages_left_out).toBe(11 - first.truncated.next_message_index)
    count(first)
    for (let next = first.truncated; next; ) {
      const more = await json(home, next.continue_with.split(" ").slice(1))
      count(more)
      next = more.truncated
    }
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
    expect(numbers.length + between).toBe(10)
    expect(await dex(home, ["scan", AUTH, "--max-tokens", "20"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/20 tokens are too few: the smallest answer takes about \d+. Try --max-tokens \d+/),
    })
  })

  test("omits messages before it shortens text, the least informative first, and says which", async () => {
    const all = await json(SMALL, ["scan", AUTH, "--max-tokens", "400"])
    expect(all).toMatchObject({ lines: { length: 10 } })
    expect(all).not.toHaveProperty("left_out")
    const fewer = await json(SMALL, ["scan", AUTH, "--max-tokens", "230"])
    expect(fewer.left_out).toContainEqual({ kind: "results", messages: 2 })
    expect(fewer).not.toHaveProperty("truncated")
    expect(fewer.tokens_per_msg).toBeGreaterThanOrEqual(20)
    const words = (await json(SMALL, ["scan", AUTH, "--max-tokens", "200"])).lines
    expect(words.map((line: string) => Number.parseInt(line, 10))).toEqual([1, 2, 7, 8])
    expect(words[0]).toContain("Two requests refresh the token at once and one of them is logged out. Why?")
    expect((await dex(SMALL, ["scan", AUTH, "--max-tokens", "200"])).stderr.replace(/\s+/g, " ")).toContain(
      "Left out between these lines, to keep the others readable: 2 tool results, 2 tool calls, 2 failed calls and their outputs.",
    )
  })

  test("shows and hides parts, and says how many are hidden", async () => {
    const home = SMALL
    const roles = async (...args: string[]) =>
      (await json(home, ["scan", AUTH, ...args])).lines.map((line: string) => /\[(\w+)\]/.exec(line)![1])
    expect(await roles("--show", "text")).toEqual(["user", "assistant", "assistant", "user"])
    expect(await roles("--show", "tool:Bash", "--hide", "tool:Bash:call")).toEqual(["tool", "tool"])
    expect(await roles("--show", "text,tool:Read:call")).toEqual([
      "user",
      "assistant",
      "assistant",
      "assistant",
      "user",
    ])
    const run = await dex(home, ["scan", AUTH, "--hide", "tool_result", "--hide", "tool_call"])
    expect(run.stderr).toMatch(/6 parts hidden/)
    expect((await dex(home, ["scan", AUTH, "--show", "thoughts"])).stderr).toMatch(
      /"thoughts" is not a part.*The parts are text/s,
    )
  })
})

describe("dex read", () => {
  const indexes = async (home: string, args: string[]) =>
    (await json(home, ["read", ...args])).messages.map((message: { index: number }) => message.index)

  test("gives chosen messages in full", async () => {
    const home = SMALL
    expect(await indexes(home, [AUTH, "5"])).toEqual([5])
    expect(await indexes(home, [AUTH, "5-7"])).toEqual([5, 6, 7])
    expect(await indexes(home, [AUTH, "1,5,8-9"])).toEqual([1, 5, 8, 9])
    expect(await indexes(home, [AUTH, "1", "9-"])).toEqual([1, 9, 10])
    expect(await indexes(home, [`${AUTH}#4`])).toEqual([4])
    expect((await dex(home, ["read", AUTH, "4"])).stdout).toContain(
      "[Bash failed] FAIL src/auth.test.ts\nError: token already used",
    )
  })

  test("prints the stored entries as JSON", async () => {
    const read = await json(SMALL, ["read", AUTH, "9,10"])
    expect(read.messages[0]).toMatchObject({
      index: 9,
      role: "assistant",
      model: "model-a",
      parts: [{ type: "tool_call", tool: "Bash", text: expect.stringContaining("git commit") }],
    })
    expect(JSON.stringify(read.messages)).toContain('"type":"commit"')
    expect(read.estimated_tokens).toBeGreaterThan(50)
  })

  test("continues inside a message that is longer than the budget", async () => {
    const long = Array.from({ length: 3000 }, (_, i) => `w${i}`).join(" ")
    const home = await synced((at) =>
      claudeSession(at, {
        id: "77777777-7777-4777-8777-777777777777",
        start: "2026-11-01T00:00:00Z",
        turns: [{ user: long }, { assistant: "short" }],
      }),
    )
    let text = ""
    let args = ["read", "77777777", "1-2", "--max-tokens", "2000"]
    for (;;) {
      const read = await json(home, args)
      expect(read.estimated_tokens).toBeLessThanOrEqual(2000)
      for (const message of read.messages) text += message.parts.map((part: { text: string }) => part.text).join("")
      if (!read.truncated) break
      args = read.truncated.continue_with.split(" ").slice(1)
    }
    expect(text).toBe(`${long}short`)
  })

  test("says which numbers do not exist, and how to name messages", async () => {
    const home = SMALL
    expect((await json(home, ["read", AUTH, "9,99"])).not_found).toBe("99")
    expect((await dex(home, ["read", AUTH, "50-60"])).stderr).toMatch(/no message 50-60.*the last one is 10/)
    expect((await dex(home, ["read", AUTH, "first"])).stderr).toMatch(/Write 5, 5-10 or 1,5,10-15/)
    expect((await dex(home, ["read", AUTH])).stderr).toMatch(/Which messages\?.*dex scan/)
    expect((await dex(home, ["read"])).stderr).toMatch(/Which conversation\?/)
  })
})

describe("dex timeline", () => {
  test("shows what came before and after, with the message marked", async () => {
    const home = SMALL
    const output = await json(home, ["timeline", `${AUTH}#5`, "--before", "1", "--after", "2"])
    expect(output.lines.map((line: string) => line.split("\t")[0]?.trim())).toEqual(["4", ">5", "6", "7"])
    expect(output).toMatchObject({ message_index: 5, has_more_before: true, has_more_after: true })
    const last = await json(home, ["timeline", AUTH, "--before", "1"])
    expect(last.lines.map((line: string) => line.split("\t")[0]?.trim())).toEqual(["9", ">10"])
    expect((await dex(home, ["timeline", `${AUTH}#77`])).stderr).toMatch(/no message 77.*last one is 10/)
  })

  test("shows messages of the project's other conversations at that time, each with a ref that can be read", async () => {
    const home = await synced((at) =>
      claudeSession(at, {
        id: "88888888-8888-4888-8888-888888888888",
        start: "2026-11-03T10:04:30Z",
        title: "Meanwhile",
        turns: [{ user: "the other window" }, { assistant: "yes" }],
      }),
    )
    const output = await json(home, ["timeline", `${AUTH}#5`, "--before", "1", "--after", "3", "--session", "all"])
    const labels = output.lines.map((line: string) => line.split("\t")[0]?.trim())
    expect(labels).toEqual(["4", ">5", "88888888#1", "6", "88888888#2"])
    expect(output.others).toEqual([{ id: "claude_code:88888888-8888-4888-8888-888888888888", title: "Meanwhile" }])
    expect((await dex(home, ["read", labels[2]])).stdout).toContain("the other window")
    const other = await json(home, ["timeline", `${AUTH}#5`, "--before", "1", "--after", "1", "--session", "88888888"])
    expect(other.lines.map((line: string) => line.split("\t")[0]?.trim())).toEqual(["88888888#1"])
  })

  test("cuts from both ends to a budget, keeps the middle, and names the calls for both sides", async () => {
    const home = SMALL
    const output = await json(home, ["timeline", `${AUTH}#5`, "--max-tokens", "200"])
    expect(output.estimated_tokens).toBeLessThanOrEqual(200)
    expect(output.lines.some((line: string) => line.trim().startsWith(">5\t"))).toBe(true)
    const sides = [output.truncated.continue_before, output.truncated.continue_with]
    const seen = output.lines.map((line: string) => Number.parseInt(line.replace(">", ""), 10))
    for (const side of sides) {
      const more = await json(
        home,
        side
          .replace(/ --max-tokens \d+/, "")
          .split(" ")
          .slice(1),
      )
      seen.push(...more.lines.map((line: string) => Number.parseInt(line.replace(">", ""), 10)))
    }
    expect([...new Set(seen)].sort((a, b) => Number(a) - Number(b))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })
})

describe("dex show and list in a budget", () => {
  test("show prints requested parts completely, and omits hidden ones", async () => {
    const home = SMALL
    const only = await json(home, ["show", AUTH, "--show", "tool:Bash:result"])
    expect(only.conversations[0].messages.map((message: { content: string }) => message.content)).toEqual([
      "[Bash failed] FAIL src/auth.test.ts\nError: token already used",
      expect.stringContaining("[main 1a2b3c4] auth: one refresh at a time"),
    ])
    expect(only.conversations[0].hidden_parts).toBe(8)
    expect((await dex(home, ["show", AUTH, "--hide", "tool_call,tool_result"])).stdout).not.toContain("[Bash")
  })

  test("show names the conversations that did not fit", async () => {
    const home = SMALL
    const output = await json(home, ["show", AUTH, SIDEBAR, "--max-tokens", "400"])
    expect(output.estimated_tokens).toBeLessThanOrEqual(400)
    expect(output.left_out).toEqual({
      conversations: 1,
      continue_with: `dex show ${SIDEBAR} --format stripped --max-tokens 400`,
    })
  })

  test("list shows changed lines, files and commits, and stays within a budget", async () => {
    const home = await synced((at) =>
      claudeSession(at, {
        id: "99999999-9999-4999-8999-999999999999",
        start: "2026-11-12T09:00:00Z",
        title: "Edits",
        turns: [
          {
            tool: {
              name: "Write",
              input: { file_path: "/code/api/new.ts", content: "one\ntwo\n" },
              output: "File created successfully at: /code/api/new.ts",
            },
          },
        ],
      }),
    )
    const listed = await json(home, ["list"])
    expect(listed.conversations.find((row: { id: string }) => row.id === AUTH)).toMatchObject({ commits: 1 })
    expect(listed.conversations[0]).toMatchObject({ title: "Edits", files: 1 })
    const run = await dex(home, ["list"])
    expect(run.stdout).toMatch(/Refresh token race .*11111111 .* 1c {2}\d+ msg/m)
    expect(run.stderr).toMatch(/f files edited, c commits made/)
    const cut = await json(home, ["list", "--max-tokens", "200"])
    expect(cut.estimated_tokens).toBeLessThanOrEqual(200)
    expect(cut.next_offset).toBe(cut.conversations.length)
    expect(cut.continue_with).toBe(`dex list --limit 20 --offset ${cut.next_offset} --max-tokens 200`)
  })
})

describe("--session", () => {
  const ENV = { CLAUDE_CODE_SESSION_ID: "11111111-1111-4111-8111-111111111111" }

  test("current is the session that the agent reports, in every view", async () => {
    const home = SMALL
    expect((await json(home, ["scan", "--session", "current"], ENV)).id).toBe(AUTH)
    expect((await json(home, ["scan", "current"], ENV)).id).toBe(AUTH)
    expect((await json(home, ["read", "4", "--session", "current"], ENV)).messages[0].index).toBe(4)
    expect((await json(home, ["read", "current#4"], ENV)).messages[0].index).toBe(4)
    expect((await json(home, ["show", "--session", "current"], ENV)).conversations[0].id).toBe(AUTH)
    expect((await json(home, ["timeline", "--session", "current"], ENV)).message_index).toBe(10)
    expect((await json(home, ["list", "--session", "current"], ENV)).conversations).toMatchObject([{ id: AUTH }])
    expect((await json(home, ["list", "--session", "all"], ENV)).conversations.length).toBe(2)
    expect((await json(home, ["search", "token", "--session", "current"], ENV)).results).toMatchObject([{ id: AUTH }])
    expect((await dex(home, ["scan", SIDEBAR, "--session", "current"], ENV)).stderr).toMatch(
      /is not part of the session/,
    )
  })

  test("current is the project's newest live conversation if no agent reports one, and nothing if none is live", async () => {
    const home = tempDir()
    const started = new Date(Date.now() - 7_200_000).toISOString()
    const live = (id: string, cwd = home) => claudeSession(home, { id, cwd, start: started, turns: [{ user: id }] })
    const older = live("aaaaaaaa-0000-4000-8000-000000000001")
    const newer = live("aaaaaaaa-0000-4000-8000-000000000002")
    live("aaaaaaaa-0000-4000-8000-000000000003", "/code/elsewhere")
    await syncHome(home)
    const none = await dex(home, ["scan", "current"])
    expect(none).toMatchObject({ code: 2, stderr: expect.stringMatching(/There is no current session.*last hour/s) })
    const now = Date.now() / 1000
    utimesSync(older, now - 600, now - 600)
    utimesSync(newer, now - 60, now - 60)
    expect((await json(home, ["scan", "current"])).id).toBe("claude_code:aaaaaaaa-0000-4000-8000-000000000002")
    utimesSync(older, now, now)
    expect((await json(home, ["scan", "current"])).id).toBe("claude_code:aaaaaaaa-0000-4000-8000-000000000001")
  })
})

test("no view prints a control sequence from a transcript", async () => {
  const home = tempDir()
  const hostile = "\u001b[2J\u001b]0;owned\u0007 \u009b31m \u202egnp.exe zebra \u0000 \r over \u{e0041}"
  claudeSession(home, {
    id: "66666666-6666-4666-8666-666666666666",
    start: "2026-11-01T00:00:00Z",
    title: hostile,
    turns: [{ user: hostile }, { tool: { name: `Bash${hostile}`, input: { command: hostile }, output: hostile } }],
  })
  await syncHome(home)
  for (const args of [
    ["scan", "66666666"],
    ["read", "66666666", "1-"],
    ["timeline", "66666666#2"],
    ["scan", "66666666", "--json"],
  ]) {
    const run = await dex(home, args)
    expect(run.stdout).toContain("zebra")
    expect([args, /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/.test(run.stdout)]).toEqual([
      args,
      false,
    ])
  }
})
