import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import type { ProjectFacts } from "../../src/answers/digest/facts.ts"
import { type DigestInput, run } from "../../src/answers/digest.run.ts"
import { createDex } from "../../src/app/dex.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
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
    id: "55555555-1111-4111-8111-111111111111",
    cwd: "/code/web",
    start: "2026-11-11T12:00:00Z",
    turns: [{ user: "It still flickers" }, { assistant: "The sidebar is drawn twice." }],
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

test("a week includes more than the day, what was committed first, and a project can be chosen", async () => {
  const week = await digest({ period: "week" })
  expect(week.projects.map(({ project }) => project)).toEqual(["/code/api", "/code/web", "/code/jobs"])
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

test("test runs that failed last are left open; commands that only read, only compile or do not exist are not", async () => {
  const [jobs] = (await digest({ period: "yesterday" })).projects
  expect(jobs!.failed_commands.map(({ command }) => command)).toEqual(["go test ./lib/... -run TestStill"])
  expect(jobs!.failed_commands[0]).toMatchObject({ error: expect.stringContaining("TestStill"), times: 1 })
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
        bash(`go vet ./p${n}`, "Exit code 1\nundefined: y", true),
      ],
    })
  await syncHome(at)
  const days = ["digest", "--from", "2026-11-15", "--to", "2026-11-15", "--facts"]
  const early = await dex(at, days)
  expect(early.stderr).toContain("Decisions may be missing")
  expect(early.stdout).not.toContain("20 decisions")
  expect(await dex(at, ["decisions", "--all"])).toMatchObject({ code: 0 })
  const { stdout, stderr } = await dex(at, days)
  expect(stderr).not.toContain("Decisions may be missing")
  expect(stdout).toMatch(/^2026-11-15: 20 conversations, \d+ messages, 20 decisions and 20 commits in 7 projects\n/)
  expect(stdout.split("\n").length).toBeLessThanOrEqual(40)
  // The plan's heading is the topic's title, so it is not repeated as a decision.
  const topics = stdout.match(/^ +\d+ Keep one queue \(claude_code:[0-9a-f]{8}\)\n {6}1 commit: step \d+$/gm)!
  expect(stderr).toContain(`${20 - topics.length} topics`)
  expect(stdout + stderr).not.toMatch(/Decided: |\d decisions? and \d+ conv/)
  const all = await dex(at, [...days, "--all"])
  expect(all.stdout.match(/^- [0-9a-f]{7} step \d+$/gm)).toHaveLength(20)
  expect(all.stderr).not.toContain("Not shown")
})

test("with a model, it says what was done, decided and left open, each with its refs, and lists the facts below", async () => {
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
  expect(day.stdout).toContain("1 commit: auth: one at a time")
  expect(day.stdout).toContain("npm run lint, 2 times: ")
  expect(page.stdout + text.stdout + day.stdout).not.toContain("\u001b")
  expect(existsSync(join(home, ".dex/map"))).toBe(true)
})

const PR = "https://github.com/ann/tool/pull/"
const wrote = (filePath: string) => ({
  tool: {
    name: "Write",
    input: { file_path: filePath, content: "a\nb\n" },
    output: "ok",
    result: { type: "create", filePath, content: "a\nb\n", structuredPatch: [] },
  },
})
const commit = (branch: string, hash: string, subject: string) =>
  bash(`git commit -m '${subject}'`, `[${branch} ${hash}] ${subject}\n 1 file changed`)
const ID = "1111-4111-8111-111111111111"

describe("a week of several clones", () => {
  const at = sharedTempDir()
  const days = ["digest", "--from", "2026-11-15", "--to", "2026-11-15", "--facts"]
  const deep = (clone: string) => ["a", "b", "c"].map((name) => wrote(`${clone}/cmd/tool/cli/${name}.go`))

  beforeAll(async () => {
    const session = (
      id: string,
      cwd: string,
      rest: Omit<Parameters<typeof claudeSession>[1], "id" | "cwd" | "start"> & { start?: string },
    ) => claudeSession(at, { id: `${id}-${ID}`, cwd, start: "2026-11-15T09:00:00Z", ...rest })
    session("aaaaaaaa", "/gone/one/tool", {
      pr: `${PR}12`,
      title: "Keep one queue",
      turns: [
        { user: "Which queue do we need?" },
        ...deep("/gone/one/tool"),
        commit("ann/queue", "1a2b3c4", "Add the queue"),
        commit("ann/queue", "2a2b3c4", "Add the queue"),
        commit("ann/queue", "3a2b3c4", "Merge branch 'main' into ann/queue"),
      ],
    })
    session("bbbbbbbb", "/gone/two/tool", {
      start: "2026-11-15T10:00:00Z",
      pr: `${PR}12`,
      turns: [
        { user: "Review the queue on that branch please" },
        commit("ann/queue", "4a2b3c4", "Name the queue"),
        commit("main", "5a2b3c4", "Fix the docs"),
      ],
    })
    session("cccccccc", "/gone/three/tool", {
      turns: [{ user: "What does the queue do with a poisoned job?" }, ...deep("/gone/three/tool")],
    })
    session("dddddddd", "/gone/other", {
      turns: [{ user: "Draw a sidebar" }, wrote("/gone/other/cmd/tool/cli/a.go"), wrote("/gone/other/src/b.ts")],
    })
    await syncHome(at)
    expect(await dex(at, ["decisions", "--all"])).toMatchObject({ code: 1 })
  })
  const facts = async () => JSON.parse((await dex(at, [...days, "--json"])).stdout).projects as ProjectFacts[]

  test("clones of one repository are reported together: by pull requests, or by the files that were edited in them", async () => {
    const [tool, other, ...more] = await facts()
    expect(more).toEqual([])
    expect(tool).toMatchObject({ repository: "github.com/ann/tool", conversations: { length: 3 } })
    expect(tool!.folders!.toSorted()).toEqual(["/gone/one/tool", "/gone/three/tool", "/gone/two/tool"])
    expect(tool!.files.map(({ path, added }) => [path, added])).toEqual(
      ["a", "b", "c"].map((name) => [`cmd/tool/cli/${name}.go`, 4]),
    )
    expect(other).toMatchObject({ project: "/gone/other" })
    expect(other).not.toHaveProperty("repository")
  })

  test("work on one branch is one topic, an amended commit counts once, and merges do not count", async () => {
    const [tool] = await facts()
    expect(tool!.topics[0]).toMatchObject({ title: "Keep one queue", branch: "ann/queue", pull_requests: [`${PR}12`] })
    const subjects = (place: number) =>
      tool!.commits.filter(({ topic }) => topic === place).map(({ hash, subject }) => `${hash} ${subject}`)
    expect(subjects(0)).toEqual(["2a2b3c4 Add the queue", "4a2b3c4 Name the queue", "5a2b3c4 Fix the docs"])
  })

  test("the page begins with the topics, and no line has a complete ref", async () => {
    const { stdout } = await dex(at, days)
    expect(stdout.split("\n").slice(2, 5)).toEqual([
      "ann/tool: 1 pull request, 3 commits, 3 conversations, in 3 folders",
      "    1 #12 Keep one queue (claude_code:aaaaaaaa)",
      "      3 commits: Fix the docs; Name the queue; Add the queue",
    ])
    const all = (await dex(at, [...days, "--all"])).stdout
    expect(all).toContain(`### #12 Keep one queue (claude_code:aaaaaaaa)\n\n- ${PR}12\n- 2a2b3c4 Add the queue\n`)
    expect(stdout + all).not.toContain(ID)
    expect(await dex(at, ["show", "claude_code:aaaaaaaa"])).toMatchObject({ code: 0 })
  })

  test("a clone that the user split is reported apart", async () => {
    const store = openStore(join(at, ".dex", "history.db"))
    await store.keepApart("/gone/three/tool")
    store.close()
    expect((await facts()).map(({ project }) => project)).toContain("/gone/three/tool")
  })
})
