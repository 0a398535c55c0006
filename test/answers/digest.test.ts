import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, test } from "vitest"
import { type DigestInput, run } from "../../src/answers/digest.run.ts"
import { createDex } from "../../src/app/dex.ts"
import { claudeSession } from "../support/home.ts"
import { modelServer } from "../support/model-server.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { refsIn } from "./map-script.ts"

const WORK = "11111111-1111-4111-8111-111111111111"
const QUEUE = "44444444-1111-4111-8111-111111111111"
const NOW = Date.parse("2026-11-15T18:00:00Z")
const home = sharedTempDir()

const plan = "# Keep one queue\n\nWe keep a single queue for all jobs."
const edit = (path: string) => ({
  tool: {
    name: "Edit",
    input: { file_path: path, old_string: "a", new_string: "b" },
    output: `The file ${path} has been updated.`,
  },
})

const bash = (command: string, output: string, error = false) => ({
  tool: { name: "Bash", input: { command }, output, error },
})

beforeAll(async () => {
  claudeSession(home, {
    id: WORK,
    start: "2026-11-15T09:00:00Z",
    title: "Mend \u001b[31mthe race",
    turns: [
      { user: "Mend the race" },
      bash("npm test", "Exit code 1\nFAIL", true),
      {
        tool: {
          name: "Edit",
          input: { file_path: "/code/api/src/auth.ts", old_string: "a", new_string: "b" },
          output: "The file /code/api/src/auth.ts has been updated.",
        },
      },
      bash("npm test", "ok"),
      bash("npm run lint", "Exit code 2\nunused variable", true),
      bash("npm run lint", "Exit code 2\nunused variable", true),
      bash("git commit -m 'auth: one at a time'", "[main 1a2b3c4] auth: one at a time\n 1 file changed"),
    ],
  })
  claudeSession(home, {
    id: "22222222-1111-4111-8111-111111111111",
    cwd: "/code/web",
    start: "2026-11-11T09:00:00Z",
    turns: [{ user: "The sidebar flickers" }, bash("make", "Exit code 1\nboom", true)],
  })
  claudeSession(home, {
    id: QUEUE,
    cwd: "/code/jobs",
    start: "2026-11-14T09:00:00Z",
    turns: [
      { user: "Which queue do we need?" },
      {
        tool: {
          name: "ExitPlanMode",
          input: { plan },
          output: `User has approved your plan.\n\n## Approved Plan:\n${plan}`,
        },
      },
      edit("/code/jobs/.worktrees/2/cmd/x.go"),
      edit("/code/jobs/cmd/x.go"),
      edit(join(home, ".claude/plans/merry-fox.md")),
      bash("gh pr diff 343 -- cmd/x.go 2>/dev/null", "Exit code 1", true),
      bash("ls docs/missing", "Exit code 1\nls: docs/missing: No such file or directory", true),
      bash("golangci-lint run ./...", "Exit code 127\ncommand not found: golangci-lint", true),
      bash("go test ./cmd/... -run TestQueue", "Exit code 1\n--- FAIL: TestQueue (0.00s)\nFAIL", true),
      bash("go test ./...", "ok  \texample.com/jobs/cmd\t0.2s"),
      bash("go test ./lib/... -run TestStill", "Exit code 1\n--- FAIL: TestStill (0.00s)\nFAIL", true),
      bash("cd /code/jobs && go build ./...", "Exit code 1\ncmd/x.go:3:1: undefined: y", true),
      bash("go build ./... | head -5", "fine"),
    ],
  })
  claudeSession(home, {
    id: "33333333-1111-4111-8111-111111111111",
    start: "2026-10-01T09:00:00Z",
    turns: [{ user: "Long ago" }],
  })
  await syncHome(home)
})

async function digest(input: Partial<DigestInput>, env: Record<string, string> = {}) {
  const opened = createDex({ env: { HOME: home, DEX_HOME: join(home, ".dex"), ...env }, cwd: home, version: "test" })
  try {
    const at = Object.create(opened, { now: { value: () => NOW } })
    return await run(at, { batch_tokens: 80_000, parallel: 1, ...input })
  } finally {
    opened.close()
  }
}

test("without a model, it lists the day's conversations, commits, files and unresolved failures, and no other day's", async () => {
  const { projects, notes } = await digest({})
  expect(projects.map(({ project }) => project)).toEqual(["/code/api"])
  const [api] = projects
  expect(api).toMatchObject({
    conversations: [{ id: `claude_code:${WORK}`, source: "claude_code" }],
    commits: [{ hash: "1a2b3c4", subject: "auth: one at a time", ref: expect.stringContaining(`${WORK}#`) }],
    files: [{ path: "src/auth.ts" }],
    failed_commands: [{ command: "npm run lint", times: 2 }],
    failed_commands_total: 1,
  })
  expect(notes.join()).toContain("No model is set up")
})

test("a week includes more than the day, and a project can be chosen", async () => {
  const week = await digest({ period: "week" })
  expect(week.projects.map(({ project }) => project).sort()).toEqual(["/code/api", "/code/jobs", "/code/web"])
  expect(week.projects.find(({ project }) => project === "/code/web")!.failed_commands).toMatchObject([
    { command: "make" },
  ])
  expect((await digest({ period: "week", project: "web" })).projects).toHaveLength(1)
})

test("yesterday and dates choose the period; contradictions are refused", async () => {
  const names = async (input: Partial<DigestInput>) => (await digest(input)).projects.map(({ project }) => project)
  expect(await names({ period: "yesterday" })).toEqual(["/code/jobs"])
  expect(await names({ from: "2026-11-11", to: "2026-11-11" })).toEqual(["/code/web"])
  expect(await names({ from: "2026-10-01", to: "2026-10" })).toEqual(["/code/api"])
  expect(await names({ from: "2d" })).toEqual(["/code/api", "/code/jobs"])
  await expect(digest({ period: "week", from: "2d" })).rejects.toThrow("Use either --period")
  await expect(digest({ to: "today" })).rejects.toThrow("--to needs --from")
  await expect(digest({ from: "today", to: "yesterday" })).rejects.toThrow("end before it starts")
})

test("the period's decisions are listed; a worktree counts as its checkout; agents' plans are not files", async () => {
  const [jobs] = (await digest({ period: "yesterday" })).projects
  expect(jobs!.decisions).toMatchObject([
    { kind: "plan", quote: expect.stringContaining("Keep one queue"), ref: expect.stringContaining(`${QUEUE}#`) },
  ])
  expect(jobs!.files.map(({ path }) => path)).toEqual(["cmd/x.go"])
  expect(jobs!.plan_files).toBe(1)
  expect((await digest({})).projects[0]!.decisions).toEqual([])
})

test("test runs and builds that failed last are left open; commands that only read or do not exist are not", async () => {
  const [jobs] = (await digest({ period: "yesterday" })).projects
  expect(jobs!.failed_commands.map(({ command }) => command)).toEqual([
    "cd /code/jobs && go build ./...",
    "go test ./lib/... -run TestStill",
  ])
  expect(jobs!.failed_commands[1]).toMatchObject({ error: expect.stringContaining("TestStill"), times: 1 })
})

test("it does not wait for much learning, and says so", async () => {
  const at = tempDir()
  for (let n = 10; n < 30; n++)
    claudeSession(at, {
      id: `${n}000000-1111-4111-8111-111111111111`,
      cwd: `/code/p${n % 7}`,
      start: "2026-11-15T09:00:00Z",
      turns: [
        { user: `Do ${n}` },
        {
          tool: {
            name: "ExitPlanMode",
            input: { plan },
            output: `User has approved your plan.\n\n## Approved Plan:\n${plan}`,
          },
        },
        edit(`/code/p${n % 7}/a${n}.go`),
        bash(`git commit -m 'step ${n}'`, `[main ${n}2b3c4] step ${n}\n 1 file changed`),
        bash(`go build ./p${n}`, "Exit code 1\nundefined: y", true),
      ],
    })
  await syncHome(at)
  const days = ["digest", "--from", "2026-11-15", "--to", "2026-11-15", "--facts"]
  const early = await dex(at, days)
  expect(early.stderr).toContain("Decisions may be missing")
  expect(early.stdout).not.toContain("Decided")
  expect(await dex(at, ["decisions", "--all"])).toMatchObject({ code: 0 })
  const { stdout, stderr } = await dex(at, days)
  expect(stderr).not.toContain("Decisions may be missing")
  expect(stdout).toMatch(/^2026-11-15: 20 conversations, \d+ messages, 20 decisions and 20 commits in 7 projects\n/)
  expect(stdout.split("\n").length).toBeLessThanOrEqual(40)
  expect(stdout).toMatch(/ {2}Decided +1 Keep one queue {2}claude_code:/)
  const rows = (label: RegExp) => stdout.match(label)?.length ?? 0
  const commits = rows(/ step \d+ {2}claude_code/g)
  expect(stderr).toContain(`${20 - commits} commits`)
  const all = await dex(at, [...days, "--all"])
  expect(all.stdout.match(/ step \d+ \(/g)).toHaveLength(20)
  expect(all.stderr).not.toContain("Not shown")
})

test("with a model, it says what was done, decided and left open, each with its refs, and the facts below", async () => {
  const server = await modelServer((asked) => [
    {
      text: JSON.stringify({
        done: [{ text: "The race is mended.", project: "api", refs: refsIn(asked).slice(0, 1) }],
        decided: [],
        left_open: [{ text: "Lint fails.", project: "api", refs: refsIn(asked).slice(-1) }],
      }),
    },
  ])
  const env = { DEX_LLM_PROVIDER: server.url }
  const output = await digest({ output: "digest.md" }, env)
  expect(output.mapped!.result!.done).toMatchObject([{ text: "The race is mended.", refs: [`claude_code:${WORK}#1`] }])
  expect(server.requests).toHaveLength(1)
  const page = readFileSync(join(home, "digest.md"), "utf8")
  expect(page).toContain(`## Done\n\n### api\n\n- The race is mended. (claude_code:${WORK}#1)`)
  expect(page).toContain("- npm run lint, 2 times")
  await digest({ output: "digest.md" }, env)
  expect(server.requests).toHaveLength(1)
  const facts = await digest({ facts: true }, env)
  expect(facts).not.toHaveProperty("mapped")
  expect(server.requests).toHaveLength(1)
})

test("the built program prints the facts without control characters, and says if nothing was done", async () => {
  const page = await dex(home, ["digest", "--period", "week", "--json"])
  expect(JSON.parse(page.stdout)).toHaveProperty("projects")
  const text = await dex(home, ["digest", "--period", "week", "--project", "nowhere"])
  expect(text).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("No conversations") })
  const day = await dex(home, ["digest", "--from", "2026-11-15", "--to", "2026-11-15"])
  expect(day.stdout).toContain("Worked on")
  expect(day.stdout).toContain("npm run lint, 2 times: ")
  expect(page.stdout + text.stdout + day.stdout).not.toContain("\u001b")
  expect(existsSync(join(home, ".dex/map"))).toBe(true)
})
