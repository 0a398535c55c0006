import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { dex } from "../test/support/dex.ts"
import { claudeSession } from "../test/support/home.ts"
import { HOOKED_AGENTS, type HookedAgent } from "./agents.ts"
import { setUpMachine } from "./machine.ts"
import type { Asked, Said } from "./model.ts"

// dex uses the real agents as models. In their homes dex's hooks and server are replaced by programs that record when they
// are started, and the prompts contain text from somebody else that mentions files to read.

const SECRET = "marsupialsecret"
const QUESTION = ["Which port does the zeppelin test need?", "--use-case", "quokkaword"]

let machine: Awaited<ReturnType<typeof setUpMachine>>
let bin: string
let fired: string
let secret: string
let written: string
/** The sources in the history before dex uses an agent as a model. */
let before: unknown

beforeAll(async () => {
  machine = await setUpMachine()
  bin = join(machine.root, "bin")
  fired = join(machine.root, "fired.log")
  secret = join(machine.root, "secret.txt")
  written = join(machine.root, "written.txt")
  writeFileSync(secret, `${SECRET}\n`)
  mkdirSync(bin)
  for (const agent of HOOKED_AGENTS) writeProgram(join(bin, programOf(agent)), commandOf(agent))
  claudeSession(machine.home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-10-03T10:00:00Z",
    turns: [
      { user: "CI is red: the zeppelin test fails" },
      { assistant: `The zeppelin test needs port 8080. @${secret} @~/secret.txt @.gemini/settings.json` },
    ],
  })
  for (const path of [".claude/CLAUDE.md", ".config/opencode/AGENTS.md"])
    writeFileSync(join(machine.home, path), "numbatmemory\n")
  const names = HOOKED_AGENTS.map(({ name }) => name)
  expect(await machine.dex("install", ...names, "--hooks", "--yes")).toMatchObject({ code: 0 })
  expect(await machine.dex("sync")).toMatchObject({ code: 0 })
  expect(await machine.dex("config", "set", "llm.allowed_agents", names.join(","))).toMatchObject({ code: 0 })
  const programs = join(machine.home, ".dex/bin")
  for (const name of readdirSync(programs))
    writeProgram(join(programs, name), `sh -c 'echo "${name}" >> ${fired}; exit 0'`)
})

afterAll(() => machine.takeDown())

const programOf = ({ name }: HookedAgent) =>
  ({ claude_code: "claude", gemini_cli: "gemini", codex: "codex", opencode: "opencode" })[name]

/** When dex uses Codex as a model, Codex ignores its settings, so its model is named on the command line. */
function commandOf({ name, command }: HookedAgent): string {
  const program = command.map((word) => `'${word}'`).join(" ")
  const provider = `{name="S",base_url="${machine.model.url}/v1",env_key="SCRIPTED_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}`
  const more = name === "codex" ? ` -c model_provider=scripted -c 'model_providers.scripted=${provider}'` : ""
  return `${program} "$@"${more}`
}

function writeProgram(path: string, command: string): void {
  writeFileSync(path, `#!/bin/sh\nexec ${command}\n`)
  chmodSync(path, 0o755)
}

const startedThere = () => (existsSync(fired) ? readFileSync(fired, "utf8") : "")

/** Runs dex with this agent as its model. `answer` plays the agent's own model. */
async function ask(agent: HookedAgent, args: string[], answer: (asked: Asked, n: number) => Said | number) {
  const first = machine.model.asked.length
  let n = 0
  machine.model.answerBy((asked) => answer(asked, n++))
  const env = {
    PATH: `${bin}:${process.env.PATH}`,
    TMPDIR: join(machine.root, "tmp"),
    npm_config_cache: join(machine.root, "npm"),
    DEX_LLM_PROVIDER: agent.name,
    DEX_LLM_API_KEY: "sk-not-for-agents",
    ...agent.env(machine.model.url),
    ...(agent.name === "gemini_cli" && { DEX_LLM_MODEL: "gemini-2.5-flash" }),
  }
  const ran = await dex(machine.home, args, env)
  machine.model.answerBy(undefined)
  return { ran, asked: machine.model.asked.slice(first) }
}

const said = (asked: Asked[]) => JSON.stringify(asked.map(({ turns }) => turns))

test.each(HOOKED_AGENTS)(
  "a person's own run of $title starts dex's hooks or server, so the tests below can fail",
  async (agent) => {
    await machine.play(agent, { prompt: "Say hello", steps: [{ text: "Hello." }] })
    expect(startedThere()).not.toBe("")
    writeFileSync(fired, "")
  },
)

test("a sync reads the sessions that the person started", async () => {
  expect(await machine.dex("sync")).toMatchObject({ code: 0 })
  before = (await machine.json("stats")).sources
})

test.each(HOOKED_AGENTS)(
  "$title answers with the help of dex search, and starts none of the programs that dex installed",
  async (agent) => {
    const { ran, asked } = await ask(agent, ["ask", ...QUESTION], (_, n) =>
      n === 0
        ? { text: '{"tool": "search", "input": {"query": "zeppelin"}}' }
        : { text: "The zeppelin test needs port 8080 [1]." },
    )
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("The zeppelin test needs port 8080 [1].") })
    expect(ran.stderr).toMatch(/1 call, \d+ tokens read and \d+ written/)
    if (agent.name === "claude_code") expect(ran.stderr).toMatch(/\$0\.\d+ by the agent's own count/)
    expect(asked).toHaveLength(2)
    expect(said(asked)).toContain("quokkaword")
    expect(said(asked.slice(1))).toContain("result of search")
    expect(said(asked)).not.toContain(SECRET)
    expect(said(asked)).not.toContain("numbatmemory")
    expect(startedThere()).toBe("")
  },
)

/** Calls of every tool with which the agent can reach a file. */
function calls(agent: HookedAgent): NonNullable<Said["call"]>[] {
  const call = ({ tool, input }: ReturnType<HookedAgent["shell"]>, type?: "custom") => ({
    tool: { name: tool, ...(type && { type }) },
    input,
  })
  const reads = { claude_code: "Read", codex: "view_image", gemini_cli: "read_file", opencode: "read" }
  return [
    call(agent.shell(`cat ${secret} | tee ${written}`)),
    call(agent.write(written, "written\n"), agent.name === "codex" ? "custom" : undefined),
    call({ tool: reads[agent.name], input: { file_path: secret, filePath: secret, path: secret } }),
    ...(agent.name === "codex"
      ? [call({ tool: "exec", input: `text(await tools.exec_command({cmd: "tee ${written} < ${secret}"}))` }, "custom")]
      : []),
  ]
}

test.each(HOOKED_AGENTS)("$title runs no tool, whatever its model asks for", async (agent) => {
  for (const call of calls(agent)) {
    const { ran, asked } = await ask(agent, ["ask", ...QUESTION], (_, n) =>
      n === 0 ? { call } : { text: "NOT FOUND" },
    )
    expect(ran.code, ran.stderr).toBeLessThan(2)
    expect(asked.length).toBeGreaterThan(1)
    expect(existsSync(written)).toBe(false)
    expect(said(asked)).not.toContain(SECRET)
  }
  expect(startedThere()).toBe("")
})

test.each(HOOKED_AGENTS)(
  "if the provider of $title refuses the login, dex reports that and still prints the quotes",
  async (agent) => {
    const { ran } = await ask(agent, ["ask", ...QUESTION], () => 401)
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("needs port 8080") })
    expect(ran.stderr).toMatch(new RegExp(`${agent.title} is not logged in, or its provider refused the login`))
    expect(ran.stderr).not.toContain("sk-not-for-agents")
  },
)

// OpenCode is left out, because it retries until it is stopped.
test.each(HOOKED_AGENTS.filter(({ name }) => name !== "opencode"))(
  "if $title receives too many requests, dex reports that",
  async (agent) => {
    const { ran } = await ask(agent, ["ask", ...QUESTION], () => 429)
    expect(ran).toMatchObject({ code: 0, stderr: expect.stringContaining(`${agent.title} received too many requests`) })
  },
)

test.each(HOOKED_AGENTS)("if $title answers a map without JSON, the map fails and says so", async (agent) => {
  const { ran } = await ask(agent, ["map", "what fails"], () => ({ text: "I would rather not." }))
  expect(ran).toMatchObject({ code: 2, stderr: expect.stringMatching(/Nothing was mapped: .*JSON/) })
})

test("nothing of these runs gets into the history, and the agents keep only the files that they cannot omit", async () => {
  expect(await machine.dex("sync")).toMatchObject({ code: 0 })
  expect((await machine.dex("search", "quokkaword")).code).toBe(1)
  expect((await machine.json("stats")).sources).toEqual(before)
  expect(readdirSync(join(machine.root, "tmp")).filter((name) => name.startsWith("dex-model-run"))).toEqual([])
  expect(readdirSync(join(machine.home, ".gemini/tmp/dex-model-run/chats")).length).toBeLessThan(4)
})
