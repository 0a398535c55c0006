import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { bar, printUsage, sparkline } from "../../src/cli/print/usage.ts"
import { KNOWLEDGE_FILE, SPENDING_FILE } from "../../src/core/formats.ts"
import { widthOf } from "../../src/render/terminal.ts"
import { run as askUsage } from "../../src/tools/usage/run.ts"
import { dollars, shortCount, usageLine } from "../../src/usage/line.ts"
import { listeners } from "../../src/watch/listeners.ts"
import { call, text, writer } from "../support/claude-code.ts"
import { dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"
import { hasTmux, openScreen } from "../support/tmux.ts"
import { warmDex } from "../support/warm.ts"

const OPUS = "claude-opus-4-5-20251101"
const id = (n: number) => `${String(n).repeat(8)}-0000-4000-8000-000000000000`
type Answer = { model?: string; commit?: string; [used: string]: unknown }

/** A session of Claude Code with an answer for each of these, one per minute. */
function session(home: string, n: number, answers: Answer[], more: object = {}) {
  const transcript = writer({ sessionId: id(n), cwd: "/code/shop", gitBranch: "main", ...more }, `s${n}`)
  transcript.prompt(`Task ${n}`, at(n, 0))
  for (const [i, { model = OPUS, commit, ...used }] of answers.entries()) {
    const usage = { input_tokens: 0, output_tokens: 0, ...used }
    const block = commit === undefined ? text("done") : call(`c${n}${i}`, "Bash", { command: "git commit -m x" })
    const message = { id: `m${n}_${i}`, type: "message", role: "assistant", model, content: [block], usage }
    transcript.add({ type: "assistant", requestId: `r${n}_${i}`, message, ...at(n, i + 1) })
    if (commit !== undefined)
      transcript.result(`c${n}${i}`, `[main ${commit}] x`, {
        ...at(n, i + 1),
        toolUseResult: { stdout: `[main ${commit}] step ${commit}`, stderr: "", interrupted: false },
      })
  }
  write(home, `.claude/projects/-code-shop/${id(n)}.jsonl`, transcript.records)
}

/** Session n is on the n-th of November. */
const at = (day: number, minute: number) => ({
  timestamp: new Date(Date.UTC(2026, 10, day, 10, minute)).toISOString(),
})

function write(home: string, path: string, records: readonly unknown[]): void {
  const file = join(home, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(""))
}

async function usage(home: string, args: string[] = [], env: Record<string, string> = {}) {
  const run = await warmDex(home, ["usage", ...args, "--json"], env)
  expect(run.code, run.stderr).toBe(0)
  return JSON.parse(run.stdout)
}

/** The output, and the progress that it reported: none if no conversation was read. */
async function usedIn(home: string): Promise<{ total: { tokens: number }; phases: string[] }> {
  const phases: string[] = []
  const onProgress = ({ phase }: { phase: string }) => phases.push(phase)
  const opened = createDex({ env: { HOME: home }, cwd: home, version: "0", onProgress })
  try {
    const { total } = await askUsage(opened, { by: "day", limit: 100 })
    return { total, phases }
  } finally {
    opened.close()
  }
}

const MILLION = 1_000_000
const rowsOf = ({ rows }: { rows: { key: string; tokens: number; cost: number }[] }) =>
  rows.map(({ key, tokens, cost }) => [key, tokens, cost])

async function shop(): Promise<string> {
  const home = tempDir()
  session(home, 2, [
    { input_tokens: MILLION },
    { output_tokens: MILLION, commit: "aaaaaaa" },
    { cache_read_input_tokens: MILLION },
  ])
  session(home, 3, [{ input_tokens: 7, model: "own-model" }], { cwd: "/code/other", gitBranch: "dev" })
  session(home, 9, [
    {
      cache_creation_input_tokens: 2 * MILLION,
      cache_creation: { ephemeral_5m_input_tokens: MILLION, ephemeral_1h_input_tokens: MILLION },
    },
  ])
  expect((await warmDex(home, ["sync"])).code).toBe(0)
  return home
}

describe("dex usage", () => {
  test("sums up by each of its groups, and every group has the same total", async () => {
    const home = await shop()
    const by = async (group: string) => {
      const output = await usage(home, [group])
      expect([group, output.total.tokens]).toEqual([group, 5 * MILLION + 7])
      return rowsOf(output)
    }
    expect(await by("day")).toEqual([
      ["2026-11-02", 3 * MILLION, 30.5],
      ["2026-11-03", 7, 0],
      ["2026-11-09", 2 * MILLION, 16.25],
    ])
    expect(await by("week")).toEqual([
      ["2026-11-02", 3 * MILLION + 7, 30.5],
      ["2026-11-09", 2 * MILLION, 16.25],
    ])
    expect(await by("month")).toEqual([["2026-11", 5 * MILLION + 7, 46.75]])
    expect((await by("block")).map(([key]) => key)).toEqual([
      "2026-11-02 10:00",
      "2026-11-03 10:00",
      "2026-11-09 10:00",
    ])
    expect(await by("project")).toEqual([
      ["/code/shop", 5 * MILLION, 46.75],
      ["/code/other", 7, 0],
    ])
    expect((await by("branch")).map(([key]) => key)).toEqual(["/code/shop main", "/code/other dev"])
    expect(await by("agent")).toEqual([["claude_code", 5 * MILLION + 7, 46.75]])
    expect(await by("model")).toEqual([
      [OPUS, 5 * MILLION, 46.75],
      ["own-model", 7, 0],
    ])
    expect((await by("conversation")).map(([key]) => key)).toEqual([2, 9, 3].map((n) => `claude_code:${id(n)}`))
    expect(await by("commit")).toEqual([
      ["aaaaaaa", 2 * MILLION, 30],
      ["(not committed)", 3 * MILLION + 7, 16.75],
    ])
  })

  test("sums up by the ticket in the branch or the commit, and prints rows as CSV that no spreadsheet runs", async () => {
    const home = tempDir()
    session(home, 2, [{ input_tokens: 30 }], { gitBranch: "ann/ent-109-text" })
    session(home, 3, [{ input_tokens: 5, commit: "aaaaaaa" }], { gitBranch: "issue-12" })
    session(home, 4, [{ input_tokens: 2 }])
    await warmDex(home, ["sync"])
    expect(rowsOf(await usage(home, ["ticket"])).map(([key, tokens]) => [key, tokens])).toEqual([
      ["ENT-109", 30],
      ["/code/shop #12", 5],
      ["(no ticket)", 2],
    ])
    const { stdout } = await warmDex(home, ["usage", "ticket", "--csv"])
    expect(stdout).toMatch(/^key,title,.*\nENT-109,,false,/)
    const output = await usage(home, ["ticket"])
    const plain = { terminal: { columns: 80, color: false, interactive: false }, home, numbered: false }
    const row = { ...output.rows[0], title: '=cmd|"x",\n\u001b[2J' }
    const lines = printUsage({ ...output, rows: [row] }, plain, { by: "ticket", limit: 30, csv: true }).lines
    expect(lines).toHaveLength(2)
    expect(lines[1]).toMatch(/^ENT-109,"'=cmd\|""x"", ?[^\u001b]*",false,1,/)
  })

  test("warns of a budget that is nearly spent, or overspent, in the current day and week only", async () => {
    const home = tempDir()
    const transcript = writer({ sessionId: id(1), cwd: "/code/shop" })
    const now = { timestamp: new Date().toISOString() }
    transcript.prompt("Task", now)
    const message = {
      id: "m",
      role: "assistant",
      model: OPUS,
      content: [text("done")],
      usage: { input_tokens: MILLION },
    }
    transcript.add({ type: "assistant", requestId: "r", message, ...now })
    write(home, `.claude/projects/-code-shop/${id(1)}.jsonl`, transcript.records)
    await warmDex(home, ["sync"])
    const notes = async () => (await usage(home)).notes.join(" ")
    expect(await notes()).not.toContain("budget")
    await warmDex(home, ["config", "set", "usage.budget", "4/day, 6/week"])
    expect(await notes()).toMatch(
      /OVER BUDGET of the day: \$5\.00 of \$4\.00\. budget of the week: \$5\.00 of \$6\.00\./,
    )
    expect((await dex(home, ["usage", "--line"])).stdout).toMatch(
      /^OVER BUDGET of the day: \$5\.00 of \$4\.00 · budget of the week/,
    )
    await warmDex(home, ["config", "set", "usage.budget", "7/day,6/week"])
    expect(await notes()).not.toContain("of the day")
    expect((await warmDex(home, ["config", "set", "usage.budget", "20/month"])).stderr).toContain("20/day")
    const state = { at: 1, today: { day: "2026-11-03", cost: 9, tokens: 1, unpriced_tokens: 0 } }
    const budgets = [{ period: "day" as const, start: "2026-11-03", limit: 1, spent: 9 }]
    const lineOn = (day: string) => usageLine({ ...state, budgets }, Date.parse(`${day}T12:00:00`))
    expect([lineOn("2026-11-03"), lineOn("2026-11-04")].map((line) => line.includes("OVER"))).toEqual([true, false])
  })

  test("limits groups with a name in brackets like others, and shows what has no group beyond the limit", async () => {
    const home = tempDir()
    session(home, 2, [
      { input_tokens: 30, commit: "aaaaaaa" },
      { input_tokens: 5, model: "(own model)" },
    ])
    const keys = async (...args: string[]) => (await usage(home, args)).rows.map(({ key }: { key: string }) => key)
    await warmDex(home, ["sync"])
    expect(await keys("model", "--limit", "1")).toEqual([OPUS])
    expect(await keys("model")).toEqual([OPUS, "(own model)"])
    expect(await keys("commit", "--limit", "1")).toEqual(["aaaaaaa", "(not committed)"])
  })

  test("prices each kind of use separately, names the source of prices, and never counts an unknown price as zero", async () => {
    const home = await shop()
    const { total, models, notes } = await usage(home)
    expect(total).toMatchObject({
      unpriced_tokens: 7,
      conversations: 3,
      cache_write_5m: MILLION,
      cache_write_1h: MILLION,
    })
    expect(total.cost_of).toEqual({
      input: 5,
      output: 25,
      cache_read: 0.5,
      cache_write_5m: 6.25,
      cache_write_1h: 10,
      web_searches: 0,
      recorded: 0,
    })
    expect(models).toEqual([
      {
        model: OPUS,
        tokens: 5 * MILLION,
        cost: 46.75,
        price_of: "anthropic claude-opus-4-5",
        from: "@pydantic/genai-prices 0.1.8",
      },
      { model: "own-model", tokens: 7, cost: 0 },
    ])
    expect(notes).toEqual([
      expect.stringMatching(/^No price is known for own-model: 7 tokens are not included in the cost\./),
    ])
    const { stdout } = await warmDex(home, ["usage"])
    expect(stdout).toContain("$46.75+")
  })

  test("only the user can set their own prices and plan", async () => {
    const home = await shop()
    const file = join(home, "prices.json")
    writeFileSync(file, JSON.stringify({ "own-model": { input: MILLION, output: 0 } }))
    expect((await warmDex(home, ["config", "set", "usage.prices_file", file])).code).toBe(0)
    expect((await warmDex(home, ["config", "set", "usage.plan", "Max 20x"])).code).toBe(0)
    const { total, plan, models } = await usage(home)
    expect([total.unpriced_tokens, total.cost, plan]).toEqual([0, 53.75, "Max 20x"])
    expect(models.at(-1)).toMatchObject({ model: "own-model", from: file })
    const run = await warmDex(home, ["usage"])
    expect(run.stdout).toContain("$53.75 list price")
    expect(run.stderr).toContain("covered by your plan (Max 20x)")
    const project = join(home, "shop")
    mkdirSync(project)
    writeFileSync(join(project, ".dex.json"), JSON.stringify({ "usage.plan": "Free", "usage.prices_file": "/x" }))
    const inside = await warmDex(home, ["usage", "--json"], {}, project)
    expect(JSON.parse(inside.stdout).plan).toBe("Max 20x")
  })

  test("accepts the group as a word or as a flag, and names the groups if it does not exist", async () => {
    const home = await shop()
    expect(await usage(home, ["--by", "month"])).toEqual(await usage(home, ["month"]))
    const { code, stderr } = await warmDex(home, ["usage", "year"])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/day, week, month, block, .*pull_request/)])
  })

  test("each day lists its models, and their sums add up to the day's", async () => {
    const { days, models } = await usage(await shop())
    expect(days.length).toBeGreaterThan(1)
    for (const { tokens, cost, conversations, models: own } of days) {
      expect(conversations).toBeGreaterThan(0)
      expect(own.reduce((sum: number, one: { tokens: number }) => sum + one.tokens, 0)).toBe(tokens)
      expect(own.reduce((sum: number, one: { cost: number }) => sum + one.cost, 0)).toBeCloseTo(cost, 5)
    }
    const named = new Set(days.flatMap((day: { models: { model: string }[] }) => day.models.map(({ model }) => model)))
    expect(named).toEqual(new Set(models.map(({ model }: { model: string }) => model)))
  })

  test("filters by days, project, agent and model", async () => {
    const home = await shop()
    const tokens = async (...args: string[]) => (await usage(home, args)).total.tokens
    expect(await tokens("--from", "2026-11-03", "--to", "2026-11-03")).toBe(7)
    expect(await tokens("--project", "SHOP")).toBe(5 * MILLION)
    expect(await tokens("--source", "claude", "--model", "own")).toBe(7)
    const none = await warmDex(home, ["usage", "--project", "nowhere"])
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('No project\'s path contains "nowhere"')])
  })

  test("a private project's use counts everywhere, but its name is shown only inside it", async () => {
    const home = await shop()
    expect((await warmDex(home, ["private", "/code/shop"])).code).toBe(0)
    for (const by of ["project", "branch", "conversation", "commit"]) {
      const { rows, total } = await usage(home, [by])
      expect([by, total.tokens]).toEqual([by, 5 * MILLION + 7])
      expect([by, JSON.stringify(rows)]).toEqual([by, expect.not.stringMatching(/shop|aaaaaaa|Task [29]|2222|9999/)])
      expect(rows).toContainEqual(expect.objectContaining({ key: "(private projects)", tokens: 5 * MILLION }))
    }
    expect((await warmDex(home, ["usage", "--project", "shop"])).code).toBe(1)
  })

  test("a month whose files the agent has deleted is still counted, to the token", async () => {
    const home = await shop()
    const before = await usage(home, ["month"])
    rmSync(join(home, ".claude"), { recursive: true })
    expect((await warmDex(home, ["sync"])).code).toBe(0)
    expect(await usage(home, ["month"])).toEqual(before)
    for (const derived of [KNOWLEDGE_FILE, SPENDING_FILE]) {
      rmSync(join(home, ".dex", derived), { force: true })
      expect(await usage(home, ["month"])).toEqual(before)
    }
  })

  test("the first dex usage after a sync reads no conversation, because the sync has recorded the spending", async () => {
    const home = await shop()
    const { total, phases } = await usedIn(home)
    expect([total.tokens, phases]).toEqual([5 * MILLION + 7, []])
    expect(readdirSync(join(home, ".dex"))).not.toContain(KNOWLEDGE_FILE)
    session(home, 3, [{ input_tokens: 7, model: "own-model" }, { input_tokens: 1 }])
    expect((await warmDex(home, ["sync"])).code).toBe(0)
    expect(await usedIn(home)).toMatchObject({ total: { tokens: 5 * MILLION + 8 }, phases: [] })
  })

  test("conversations that an older dex has read are counted by the next sync or the next dex usage", async () => {
    const home = await shop()
    const before = await usage(home, ["commit"])
    const spending = join(home, ".dex", SPENDING_FILE)
    for (const fill of [["sync"], ["usage"]]) {
      rmSync(spending)
      expect((await warmDex(home, fill)).code).toBe(0)
      expect((await usedIn(home)).phases).toEqual([])
      expect(await usage(home, ["commit"])).toEqual(before)
    }
  })

  test("messages that an agent removed from its file are not counted, and a note says how many tokens they had", async () => {
    const home = await shop()
    session(home, 2, [{ input_tokens: MILLION }])
    expect((await warmDex(home, ["sync"])).code).toBe(0)
    const { total, notes } = await usage(home, ["--project", "shop"])
    expect([total.tokens, notes]).toEqual([
      3 * MILLION,
      ["2.00 M tokens of messages that agents have since removed from their files are not counted."],
    ])
    expect((await usage(home, ["--project", "other"])).notes.join()).not.toContain("removed")
  })

  test("forgotten conversations are in no sum", async () => {
    const home = await shop()
    expect((await warmDex(home, ["forget", `claude_code:${id(2)}`, "--yes"])).code).toBe(0)
    expect(existsSync(join(home, ".dex", "usage-line.json"))).toBe(false)
    expect((await usage(home)).total.tokens).toBe(2 * MILLION + 7)
  })
})

describe("the status line", () => {
  test("shows what the last sync wrote, with its age, and opens no database", async () => {
    const home = tempDir()
    const none = await dex(home, ["usage", "--line"])
    expect([none.code, none.stdout, none.stderr]).toEqual([1, "", expect.stringContaining("Run `dex usage` once")])
    const now = new Date().toISOString()
    const transcript = writer({ timestamp: now })
    transcript.prompt("Now", { timestamp: now })
    const used = { input_tokens: MILLION, output_tokens: 0 }
    const message = { id: "m", type: "message", role: "assistant", model: OPUS, content: [text("yes")], usage: used }
    transcript.add({ type: "assistant", message, timestamp: now })
    write(home, ".claude/projects/-home-dev-proj/11111111-2222-4333-8444-555555555555.jsonl", transcript.records)
    await warmDex(home, ["sync"])
    await warmDex(home, ["usage"])
    const line = /^today \$5\.00 · 1\.00 M tokens · block \$5\.00 until \d\d:\d\d · 0 min old\n$/
    expect((await dex(home, ["usage", "--line"])).stdout).toMatch(line)
    const again = { ...message, id: "m2", usage: { input_tokens: MILLION, output_tokens: 0 } }
    transcript.add({ type: "assistant", message: again, timestamp: now })
    write(home, ".claude/projects/-home-dev-proj/11111111-2222-4333-8444-555555555555.jsonl", transcript.records)
    await warmDex(home, ["sync"])
    for (const name of ["history.db", SPENDING_FILE]) rmSync(join(home, ".dex", name))
    expect((await dex(home, ["usage", "--line"])).stdout).toMatch(/^today \$10\.00 · 2\.00 M tokens/)
    expect(readFileSync(join(home, ".dex", "usage-line.json"), "utf8")).not.toContain("proj")
  })

  test("is updated by dex watch too, after the first request", async () => {
    const home = await shop()
    const file = join(home, ".dex", "usage-line.json")
    const watching = async () => {
      const opened = createDex({ env: { HOME: home }, cwd: home, version: "0" })
      try {
        for (const listen of listeners.messages) await listen(opened, [])
      } finally {
        opened.close()
      }
    }
    await watching()
    expect(existsSync(file)).toBe(false)
    await usage(home)
    rmSync(file)
    await watching()
    expect(existsSync(file)).toBe(true)
  })

  test("does not show an ended block as if it continued", () => {
    const now = Date.parse("2026-11-03T10:00:00Z")
    const today = { day: "2026-11-03", cost: 1.5, tokens: 1234, unpriced_tokens: 1 }
    const block = { end: now + 60_000, cost: 1 }
    const state = { at: now - 180_000, today, block, plan: "Max" }
    expect(usageLine(state, now)).toMatch(
      /^today \$1\.50\+ · 1\.23 k tokens · block \$1\.00 until \d\d:\d1 · list price · 3 min old$/,
    )
    expect(usageLine(state, now + 24 * 3_600_000)).toBe("2026-11-03 $1.50+ · 1.23 k tokens · list price · 24 h old")
    expect([0, 0.001, 1.2, 1234.5, 12_345.6].map(dollars)).toEqual(["$0.00", "<$0.01", "$1.20", "$1,234.50", "$12,346"])
    expect([999, 1e3, 12_345, 2e8, 1.5e9].map(shortCount)).toEqual(["999", "1.00 k", "12.3 k", "200 M", "1.50 B"])
  })
})

describe("how it looks", () => {
  test("bars are exact to an eighth and never empty for a value; a sparkline combines values if there is no room", () => {
    expect([bar(1, 4), bar(0.5, 4), bar(0.0001, 4), bar(0, 4), bar(0.53, 4)]).toEqual(["████", "██", "▏", "", "██▏"])
    expect(sparkline([0, 1, 8, 4], 10)).toBe(" ▂█▅")
    expect(sparkline([1, 1, 2, 2], 2)).toBe("▅█")
  })

  test("a pull request is named by its number, so that a column cannot cut it off", async () => {
    const home = await shop()
    const output = await usage(home, ["day"])
    const rows = ["https://github.com/acme/shop/pull/284", "https://gitlab.com/acme/tools/shop/-/merge_requests/7"]
    const all = { ...output, rows: rows.map((key) => ({ ...output.rows[0]!, key })) }
    const terminal = { columns: 80, color: false, interactive: true }
    const text = printUsage(all, { terminal, home, numbered: true }).lines.join("\n")
    expect(text).toContain("acme/shop#284 ")
    expect(text).toContain("acme/tools/shop#7 ")
  })

  test.skipIf(!hasTmux).each([
    [80, 24],
    [140, 40],
  ])(
    "on a terminal of %i columns: a sparkline, a row for each week, and bars to their share",
    async (columns, rows) => {
      const home = await shop()
      const screen = await openScreen(home, { columns, rows })
      await screen.type("clear; dex usage week 2>/dev/null; echo done")
      await screen.keys("Enter")
      const lines = (await screen.shows(/^done$/m)).split("\n").map((line) => line.trimEnd())
      expect(lines).toContain("2026-11-02 to 2026-11-09 · $46.75+ · 5.00 M tokens · 3 conversations with usage")
      expect(lines).toContain("█      ▅")
      const bars = lines
        .filter((line) => /^2026-11-0\d {2}/.test(line))
        .map((line) => /[█▏▎▍▌▋▊▉]+$/.exec(line)?.[0].length)
      expect(bars).toEqual([40, 22])
    },
  )

  test("rows fit at every width, with bars on a terminal and without in a pipe", async () => {
    const home = await shop()
    for (const by of ["day", "conversation", "commit", "project", "pull_request"]) {
      const output = await usage(home, [by])
      for (let columns = 40; columns <= 200; columns += 5) {
        const terminal = { columns, color: false, interactive: true }
        const { lines } = printUsage(output, { terminal, home, numbered: true })
        for (const line of lines.slice(1)) expect(widthOf(line), `${columns} ${line}`).toBeLessThanOrEqual(columns)
        if (columns >= 60) expect(lines.join("\n")).toContain("█")
      }
    }
    const { stdout } = await warmDex(home, ["usage"], { NO_COLOR: "", FORCE_COLOR: "0" })
    expect(stdout).not.toMatch(/[█▁\x1b]/)
    expect(stdout).toMatch(/^2026-11-02 to 2026-11-09 · \$46\.75\+ · 5\.00 M tokens · 3 conversations with usage\n/)
  })
})
