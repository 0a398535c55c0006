import { cpSync, mkdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { aiderConnector, splitRun } from "../../packages/more-agents/src/aider.ts"
import { claudeSession } from "../support/home.ts"
import { makeRepository } from "../support/repository.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { homeOf, readAll, testConnector } from "./contract.ts"

const FIXTURES = "test/fixtures/aider"
const BLOCKS = join(FIXTURES, "0.86-search-replace")
const NAME = ".aider.chat.history.md"
testConnector(aiderConnector, FIXTURES)

const runsOf = async (home: string) =>
  (await readAll(aiderConnector, home)).flatMap(({ conversations }) => conversations)

test("searches the home, the known projects, and the file that a variable names", () => {
  const at = (machine: { env?: Record<string, string>; projects?: string[] }) =>
    aiderConnector.roots({ home: join("/home/dev"), env: {}, platform: "linux", ...machine })
  expect(at({})).toEqual([join("/home/dev", NAME)])
  expect(at({ projects: ["/code/a", "/home/dev", "github.com/x"] })).toEqual([
    join("/home/dev", NAME),
    join("/code/a", NAME),
  ])
  expect(at({ env: { AIDER_CHAT_HISTORY_FILE: "/else/chat.md" } })[0]).toBe("/else/chat.md")
  expect(at({ env: { AIDER_CHAT_HISTORY_FILE: "chat.md" } })).toHaveLength(1)
})

test("each run is a conversation, unless it has no messages", async () => {
  const runs = await runsOf(await homeOf(BLOCKS))
  expect(runs.map(({ messages }) => messages.length)).toEqual([10, 2])
  expect(runs.map(({ started_at }) => started_at)).toEqual([1_794_744_000_000, 1_794_747_600_000])
  expect(new Set(runs.map(({ id }) => id)).size).toBe(2)
})

test("headings and code in an answer belong to it, and a cut answer ends at the next prompt", async () => {
  const [run] = await runsOf(await homeOf(BLOCKS))
  const prompts = run!.messages.filter(({ role }) => role === "user").map(({ parts }) => parts[0]!.text)
  expect(prompts).toEqual(["The tax is wrong.\nCorrect it, please", "/ask why?", "Thanks"])
})

test("if no prompt line ends in blanks, every line with the mark is a prompt", () => {
  expect(splitRun("#### one\nanswer\n#### two\n> report").map(({ by }) => by)).toEqual([
    "person",
    "model",
    "person",
    "aider",
  ])
})

test("only applied blocks are edits; commits and tokens come from Aider's report", async () => {
  const [run] = await runsOf(await homeOf(BLOCKS))
  const effects = run!.messages.flatMap(({ effects = [] }) => effects)
  expect(effects.map((effect) => (effect.type === "file" ? effect.path.replace(/^.*[/\\]/, "") : effect.type))).toEqual(
    ["tax.py", "rates.py", "commit"],
  )
  const usages = run!.messages.flatMap(({ usage }) => usage ?? [])
  expect(usages).toEqual([{ input: 2200, output: 245, cache_read: 2000, cache_write: 1000, cost: 0.02 }])
})

test("finds a history in a known project; blame finds its lines, and usage counts its tokens", async () => {
  const home = await homeOf(BLOCKS)
  const project = join(home, "proj")
  mkdirSync(project)
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    cwd: project,
    start: "2026-11-03T10:00:00Z",
    turns: [{ user: "hi" }],
  })
  renameSync(join(home, NAME), join(project, NAME))
  const { git, gitAt } = makeRepository(project)
  writeFileSync(join(project, "tax.py"), 'RATE = {"book": 7, "wine": 19}\n')
  git("add", "tax.py")
  gitAt("2026-11-16T12:00:00Z", "commit", "-q", "-m", "Tax")
  await syncHome(home) // the first sync learns of the project
  await syncHome(home)
  const ask = async (...args: string[]) => JSON.parse((await warmDex(home, [...args, "--json"], {}, project)).stdout)
  expect(await ask("blame", "tax.py")).toMatchObject({ lines: [{ agent: "Aider" }] })
  expect(await ask("usage", "--source", "aider")).toMatchObject({ total: { input: 2_200, output: 245 } })
})

const sample = sampleAt("aider/aider.chat.history.md")
test.skipIf(sample === undefined)("reads another project's sample: two runs with their edited files", async () => {
  const home = tempDir()
  cpSync(sample!, join(home, NAME))
  const runs = await runsOf(home)
  const edited = runs.map(({ messages }) =>
    messages.flatMap(({ effects = [] }) =>
      effects.flatMap((one) => (one.type === "file" ? one.path.replace(`${home}/`, "") : [])),
    ),
  )
  expect(edited).toEqual([["src/webhook.py", "src/retry.py"], ["src/config.py"]])
})
