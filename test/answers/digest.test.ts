import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, test } from "vitest"
import { type DigestInput, run } from "../../src/answers/digest.run.ts"
import { createDex } from "../../src/app/dex.ts"
import { dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { modelServer } from "../support/model-server.ts"
import { sharedTempDir } from "../support/temp.ts"
import { refsIn } from "./map-script.ts"

const WORK = "11111111-1111-4111-8111-111111111111"
const NOW = Date.parse("2026-11-15T18:00:00Z")
const home = sharedTempDir()

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
    id: "33333333-1111-4111-8111-111111111111",
    start: "2026-10-01T09:00:00Z",
    turns: [{ user: "Long ago" }],
  })
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
})

async function digest(input: Partial<DigestInput>, env: Record<string, string> = {}) {
  const opened = createDex({ env: { HOME: home, DEX_HOME: join(home, ".dex"), ...env }, cwd: home, version: "test" })
  try {
    const at = Object.create(opened, { now: { value: () => NOW } })
    return await run(at, { period: "today", batch_tokens: 80_000, parallel: 1, ...input })
  } finally {
    opened.close()
  }
}

test("without a model: conversations, commits, files and what failed and stayed so, of the day alone", async () => {
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

test("a week has what the day has not, and a project can be chosen", async () => {
  const week = await digest({ period: "week" })
  expect(week.projects.map(({ project }) => project).sort()).toEqual(["/code/api", "/code/web"])
  expect(week.projects.find(({ project }) => project === "/code/web")!.failed_commands).toMatchObject([
    { command: "make" },
  ])
  expect((await digest({ period: "week", project: "web" })).projects).toHaveLength(1)
})

test("with a model: what was done, decided and left open, each with its refs, and the facts below", async () => {
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
  expect(server.asked).toHaveLength(1)
  const page = readFileSync(join(home, "digest.md"), "utf8")
  expect(page).toContain(`## Done\n\n### api\n\n- The race is mended. (claude_code:${WORK}#1)`)
  expect(page).toContain("- npm run lint, 2 times")
  await digest({ output: "digest.md" }, env)
  expect(server.asked).toHaveLength(1)
  const facts = await digest({ facts: true }, env)
  expect(facts).not.toHaveProperty("mapped")
  expect(server.asked).toHaveLength(1)
})

test("the built program prints the facts, without control characters, and says where nothing was done", async () => {
  const page = await dex(home, ["digest", "--period", "week", "--json"])
  expect(JSON.parse(page.stdout)).toHaveProperty("projects")
  const text = await dex(home, ["digest", "--period", "week", "--project", "nowhere"])
  expect(text).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("No conversations") })
  expect(page.stdout + text.stdout).not.toContain("\u001b")
  expect(existsSync(join(home, ".dex/map"))).toBe(true)
})
