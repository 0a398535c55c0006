import { execFileSync } from "node:child_process"
import { appendFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { dex } from "../test/support/dex.ts"
import { openScreen, program, type TmuxScreen } from "../test/support/tmux.ts"
import { AGENTS, type Agent } from "./agents.ts"
import { makeProject, setUpMachine } from "./machine.ts"
import type { Asked } from "./model.ts"

// Each agent has a conversation in one clone, which a person continues in another: on a terminal, as a person does.

type Name = "claude_code" | "codex" | "opencode" | "gemini_cli" | "qwen_code"
type Resumed = Agent & { name: Name }
/** A question that the agent asks, and the keys that answer it. */
type Question = { asks: RegExp; keys: string[] }
type Expected = {
  program: string
  /** What dex asks before it opens the conversation. Absent if the agent finds it from any folder. */
  asks?: RegExp
  env?: Record<string, string>
  questions: Question[]
  /** The screen when the agent waits for a prompt. */
  ready: RegExp
  exit: string
}

const EXPECTED: Record<Name, Expected> = {
  claude_code: { program: "claude", questions: [], ready: /^❯/, exit: "/exit" },
  codex: {
    program: "codex",
    questions: [],
    ready: /for shortcuts/,
    exit: "/quit",
  },
  opencode: {
    program: "opencode",
    asks: /OpenCode does not find .* with opencode export and opencode import; the original stays as it is\./,
    questions: [],
    ready: /ctrl\+p commands/,
    exit: "/exit",
  },
  gemini_cli: {
    program: "gemini",
    asks: /Gemini CLI does not find .*\.gemini\/tmp\/.*\.jsonl; the original stays as it is\./,
    // Without a model, it asks another model which one to use.
    env: { GEMINI_MODEL: "gemini-2.5-flash" },
    questions: [{ asks: /Allow (?:once|execution)/, keys: ["Enter"] }],
    ready: /Type your message/,
    exit: "/quit",
  },
  qwen_code: {
    program: "qwen",
    asks: /Qwen Code does not find .*\.qwen\/projects\/.*\.jsonl; the original stays as it is\./,
    questions: [],
    ready: /Type your message/,
    exit: "/quit",
  },
}
/** Agents take seconds to start on a busy machine. */
const PATIENCE = { timeout: 100_000, interval: 100 }

const agents = AGENTS.filter((agent): agent is Resumed => agent.name in EXPECTED)
let machine: Awaited<ReturnType<typeof setUpMachine>>
const report: string[] = []

beforeAll(async () => {
  machine = await setUpMachine()
  answerFirstQuestions(machine.home)
  for (const agent of agents) {
    const env = Object.entries({ ...agent.env(machine.model.url), ...EXPECTED[agent.name].env }).map(
      ([name, value]) => `${name}='${value}'`,
    )
    const command = agent.command.map((word) => `'${word}'`)
    program(machine.home, EXPECTED[agent.name].program, `exec env ${env.join(" ")} ${command.join(" ")} "$@"`)
  }
})

afterAll(async () => {
  await machine.takeDown()
  console.log(report.join("\n"))
})

describe.each(agents)("$title", (agent) => {
  const { asks } = EXPECTED[agent.name]

  test("continues a conversation of another clone in this one, and every message counts once", async () => {
    const { first, clone } = clonesOf(agent, "there")
    const ref = await begin(agent, first, "there")
    await continueIn(clone, agent, ref, "there")
    // Later, it is found without a question.
    if (asks) expect(JSON.parse((await dexIn(clone, "resume", ref, "--json")).stdout)).not.toHaveProperty("copy")
  })

  test("continues a conversation whose folder is gone, and every message counts once", async () => {
    const { first, clone } = clonesOf(agent, "gone")
    const ref = await begin(agent, first, "gone")
    renameSync(first, `${first}-renamed`)
    await continueIn(clone, agent, ref, "gone")
  })

  test.runIf(asks)("changes nothing if the answer is no, or without a terminal", async () => {
    const { first, clone } = clonesOf(agent, "no")
    const ref = await begin(agent, first, "no")
    const before = await originalOf(agent, ref)
    const { code, stdout, stderr } = await dexIn(clone, "resume", ref)
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
    expect(stderr).toMatch(/add --yes/)
    const screen = await terminalIn(clone)
    await enter(screen, `dex resume ${ref}`)
    await shows(screen, /Copy it\?/)
    await screen.keys("Enter")
    await shows(screen, /Nothing was copied/)
    expect(await originalOf(agent, ref)).toEqual(before)
    expect(transcriptsOf(agent, ref)).toHaveLength(agent.name === "opencode" ? 0 : 1)
  })
})

/** Resumes the conversation on a terminal, says one thing to the agent, and checks what the model, the disk and dex then contain. */
async function continueIn(folder: string, agent: Resumed, ref: string, label: string): Promise<void> {
  const { asks, questions, ready, exit } = EXPECTED[agent.name]
  const [before, original] = [await countsOf(agent), await originalOf(agent, ref)]
  const screen = await terminalIn(folder)
  await enter(screen, `dex resume ${ref}`)
  if (asks) {
    expect(unwrapped(await shows(screen, /Copy it\?/))).toMatch(asks)
    await screen.keys("y")
  }
  await answer(screen, questions, ready)

  const prompt = `Go on with the ${wordOf(agent, label, "prompt")} now`
  machine.model.play({
    prompt,
    steps: [{ call: agent.shell("pwd") }, { text: `It is ${wordOf(agent, label, "end")}.` }],
  })
  const earlier = machine.model.asked.length
  await screen.type(prompt)
  await shows(screen, new RegExp(wordOf(agent, label, "prompt")))
  await screen.keys("Enter")
  await answer(screen, questions, new RegExp(wordOf(agent, label, "end")))
  // Agents show an answer before they have stored all of it.
  const storedAnswers = async () => {
    await machine.dex("sync")
    return (await countsOf(agent)).answers - before.answers
  }
  await expect.poll(storedAnswers, PATIENCE).toBe(2)
  await enter(screen, exit)
  await shows(screen, /\$$/)

  const asked = machine.model.asked.slice(earlier).filter((one) => isAbout(prompt, one))
  const texts = asked.at(-1)!.turns.map(({ text }) => text)
  expect(texts.join("\n"), "the old messages").toContain(wordOf(agent, label, "begin"))
  expect(texts.join("\n"), "the old answer").toContain(wordOf(agent, label, "first"))
  expect(asked.at(-1)!.turns.findLast(({ role }) => role === "tool")?.text, "where it works").toContain(folder)
  if (asks)
    expect(Object.fromEntries(await originalOf(agent, ref)), "the original").toMatchObject(Object.fromEntries(original))

  await machine.dex("sync")
  const after = await countsOf(agent)
  report.push(`${agent.title}, ${label}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`)
  expect(after.answers - before.answers).toBe(2)
  expect(after.conversations - before.conversations).toBe(agent.name === "opencode" ? 1 : 0)
  for (const place of ["begin", "first", "prompt", "end"] as const)
    expect((await machine.json("search", wordOf(agent, label, place))).total, place).toBe(1)
}

type Counts = { conversations: number; answers: number }

async function countsOf({ name }: Agent): Promise<Counts> {
  const { conversations } = await machine.json("list", "--all", "--source", name)
  const { total } = await machine.json("usage", "--source", name)
  return { conversations: conversations.length, answers: total.answers }
}

/** A word that only one message contains: the prompt or the answer in the first clone, or in the second. */
function wordOf({ name }: Agent, label: string, place: "begin" | "first" | "prompt" | "end"): string {
  return `${place}moor${label}${name.replace("_", "")}`
}

async function begin(agent: Resumed, folder: string, label: string): Promise<string> {
  const [prompt, text] = [`Look at the ${wordOf(agent, label, "begin")}`, `It is ${wordOf(agent, label, "first")}.`]
  machine.model.play({ prompt, steps: [{ call: agent.shell("pwd") }, { text }] })
  const ran = await machine.runAgent(agent, agent.args(prompt), {}, folder)
  expect(ran.code, `${ran.stdout.slice(-2000)}\n${ran.stderr.slice(-2000)}`).toBe(0)
  await machine.dex("sync")
  const { results } = await machine.json("search", wordOf(agent, label, "begin"))
  return results[0].id
}

function clonesOf({ name }: Agent, label: string): { first: string; clone: string } {
  const first = join(machine.root, "code", `${name}-${label}`)
  const clone = `${first}-clone`
  makeProject(first, machine.home)
  execFileSync("git", ["clone", "-q", first, clone], {
    env: { PATH: process.env.PATH, HOME: machine.home },
    stdio: "ignore",
  })
  return { first, clone }
}

/** The original as its agent stores it: the content of its files by path, or what OpenCode exports from its database. */
async function originalOf(agent: Agent, ref: string): Promise<Map<string, string>> {
  if (agent.name !== "opencode")
    return new Map(transcriptsOf(agent, ref).map((path) => [path, readFileSync(path, "latin1")]))
  const { stdout } = await machine.runAgent(agent, ["export", idOf(ref)])
  return new Map([["export", stdout]])
}

function transcriptsOf(agent: Agent, ref: string): string[] {
  const folder = { gemini_cli: ".gemini", qwen_code: ".qwen" }[agent.name as string]
  if (folder === undefined) return []
  const below = join(machine.home, folder)
  return readdirSync(below, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".jsonl") && path.includes("chats") && path.includes(idOf(ref).slice(0, 8)))
    .map((path) => join(below, path))
}

function idOf(ref: string): string {
  return ref.slice(ref.indexOf(":") + 1)
}

function isAbout(prompt: string, { turns, offered }: Asked): boolean {
  return offered.length > 0 && turns.some(({ role, text }) => role === "user" && text.includes(prompt))
}

/** Answers the questions that Claude Code and Codex ask when they are first used in a folder. */
function answerFirstQuestions(home: string): void {
  const agent = agents.find(({ name }) => name === "claude_code")!
  const key = agent.env(machine.model.url).ANTHROPIC_API_KEY!
  const foldersOf = (name: Name) =>
    ["there", "gone"].map((label) => join(machine.root, "code", `${name}-${label}-clone`))
  const settings = {
    hasCompletedOnboarding: true,
    theme: "dark",
    customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] },
    projects: Object.fromEntries(foldersOf("claude_code").map((folder) => [folder, { hasTrustDialogAccepted: true }])),
  }
  writeFileSync(join(home, ".claude.json"), JSON.stringify(settings))
  const trusted = foldersOf("codex").map((folder) => `[projects."${folder}"]\ntrust_level = "trusted"\n`)
  const model = '[notice.model_migrations]\n"gpt-5.5" = "gpt-6-sol"\n'
  appendFileSync(join(home, ".codex/config.toml"), `\n${[...trusted, model].join("\n")}`)
}

function dexIn(folder: string, ...args: string[]) {
  return dex(machine.home, args, { PATH: `${join(machine.home, "bin")}:${process.env.PATH}` }, undefined, "", folder)
}

function terminalIn(folder: string): Promise<TmuxScreen> {
  const env = { TMPDIR: join(machine.root, "tmp"), npm_config_cache: join(machine.root, "npm") }
  return openScreen(machine.home, { columns: 160, rows: 50, cwd: folder, env })
}

async function enter(screen: TmuxScreen, text: string): Promise<void> {
  await screen.type(text)
  await shows(screen, new RegExp(text.replace(/[$.*+?^()|[\]{}]/g, "\\$&")))
  await screen.keys("Enter")
}

async function shows(screen: TmuxScreen, expected: RegExp): Promise<string> {
  let last = ""
  await expect.poll(async () => (last = await screen.text()), PATIENCE).toMatch(expected)
  return last
}

/** Waits until the screen shows what is expected, and answers the agent's own questions before that. */
async function answer(screen: TmuxScreen, questions: Question[], expected: RegExp): Promise<void> {
  const all = new RegExp(
    [expected, ...questions.map(({ asks }) => asks)].map(({ source }) => `(?:${source})`).join("|"),
    "m",
  )
  for (;;) {
    const text = await shows(screen, all)
    const question = questions.find(({ asks }) => asks.test(text))
    if (question === undefined) return
    await screen.keys(...question.keys)
    await expect.poll(() => screen.text(), PATIENCE).not.toMatch(question.asks)
  }
}

/** A screen's text without the line breaks of a narrow terminal. */
function unwrapped(text: string): string {
  return text.replace(/\s*\n\s*/g, " ")
}
