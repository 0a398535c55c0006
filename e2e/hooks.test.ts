import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { CLAUDE_CODE_HOOKS } from "../src/agents/claude-code/wiring.ts"
import { CODEX_HOOKS } from "../src/agents/codex/wiring.ts"
import { GEMINI_CLI_HOOKS } from "../src/agents/gemini-cli/wiring.ts"
import { HOOKED_AGENTS, type HookedAgent } from "./agents.ts"
import type { Ran } from "./children.ts"
import { setUpMachine } from "./machine.ts"
import type { Asked, Call, Step } from "./model.ts"
import { contextIn, standIn } from "./stand-in.ts"
import { trustCodexHooks } from "./trust-codex.ts"

// These tests look for the output of dex's hooks in the agents' requests to their model. They run in order.

type Name = HookedAgent["name"]
const ERROR = "TypeError: gallowayword is not a function"
const EVENTS: Record<Name, string[]> = {
  claude_code: CLAUDE_CODE_HOOKS.map(({ event }) => event),
  codex: CODEX_HOOKS.map(({ event }) => event),
  gemini_cli: GEMINI_CLI_HOOKS.map(({ event }) => event),
  opencode: ["session.start", "chat.message", "tool.execute.after"],
}
/** At these events nothing is printed: the text is given back later. */
const COMPACTION_EVENTS = ["PreCompact", "PreCompress"]
const HANGS_MS = 60_000
/** The longest time limit that a hook may have, because the machine may be busy. */
const PATIENT = { DEX_HOOK_MS: "900" }

let machine: Awaited<ReturnType<typeof setUpMachine>>
const report: string[] = []
const program = () => join(machine.home, ".dex", "bin", "dex-hook")

beforeAll(async () => {
  machine = await setUpMachine()
  for (const agent of HOOKED_AGENTS) writeFileSync(join(machine.projectOf(agent), "a.txt"), "hello\n")
  // The state of OpenCode's folder after it has installed its plugin library.
  const opencode = join(machine.home, ".config", "opencode")
  mkdirSync(join(opencode, "node_modules"), { recursive: true })
  const lock = { lockfileVersion: 3, packages: { "": { dependencies: { "@opencode-ai/plugin": "1.18.33" } } } }
  writeFileSync(join(opencode, "package-lock.json"), JSON.stringify(lock))
})

afterAll(async () => {
  const log = join(machine.home, ".dex", "hook.log")
  if (existsSync(log)) report.push(`hook.log:\n${readFileSync(log, "utf8")}`)
  await machine.takeDown()
  console.log(report.join("\n"))
})

test("the agents fix an error before any hooks are installed", async () => {
  for (const { agent, ran } of await playAll("Make the check pass", (agent) => {
    const fails = agent.shell(`cat fixed 2>/dev/null || { echo '${ERROR}'; exit 3; }`)
    const fixes = agent.write(join(machine.projectOf(agent), "fixed"), "gallowayword\n")
    return [{ call: fails }, { call: fixes }, { call: fails }, { text: "It passes." }]
  }))
    expect(ran.code, `${agent.title}: ${outputOf(ran)}`).toBe(0)
})

describe("with the hooks wired", () => {
  beforeAll(async () => {
    expect((await machine.dex("sync")).code).toBe(0)
    expect((await machine.dex("fix", ERROR)).code).toBe(0)
    const { code, stderr } = await machine.dex("install", ...HOOKED_AGENTS.map(({ name }) => name), "--hooks", "--yes")
    expect(code, stderr).toBe(0)
    expect((await machine.dex("config", "set", "proactive.mode", "speak")).code).toBe(0)
    const codex = HOOKED_AGENTS.find(({ name }) => name === "codex")!
    const env = { PATH: process.env.PATH ?? "", HOME: machine.home }
    const untrusted = await trustCodexHooks(codex.command, machine.projectOf(codex), env)
    expect(untrusted.sort()).toEqual(EVENTS.codex.map((event) => `${program()} codex ${event}`).sort())
    copyFileSync(program(), `${program()}.kept`)
  })

  test.each(HOOKED_AGENTS)(
    "after a failed command, $title is shown once per session what fixed it before",
    async (agent) => {
      const fails = agent.shell(`echo '${ERROR}'; exit 3`)
      const steps: Step[] = [...Array.from({ length: 8 }, () => ({ call: fails })), { text: "It fails." }]
      const asked = await play(agent, "Run the check again and again", steps)
      expect(saidTo(asked, "Solved on")).toBe(1)
      expect(contextIn(asked)).toContain("fixed")
    },
  )

  test.each(HOOKED_AGENTS)(
    "after a compaction, $title is given back what the conversation did, once",
    async (agent) => {
      const asked = await playCompaction(agent, "Write the token file and check it")
      const given = contextIn(asked).match(/^From dex, what this conversation did[\s\S]*?\[\w+:.*\]$/gm) ?? []
      report.push(`${agent.title}, after a compaction:\n${given.join("\n")}`)
      expect(given).toHaveLength(1)
      expect(given[0]).toContain('The developer first asked: "Write the token file and check it"')
      expect(given[0]).toContain("- token.txt +1 −0: refreshToken")
      expect(saidTo(asked, "From dex, what this conversation did")).toBe(1)
    },
  )

  test("no agent is shown anything with DEX_QUIET=1", async () => {
    const steps = (agent: HookedAgent) => [{ call: agent.shell(`echo '${ERROR}'; exit 3`) }, { text: "It fails." }]
    for (const { agent, ran, asked } of await playAll("Run the check quietly", steps, { DEX_QUIET: "1" })) {
      expect(ran.code, `${agent.title}: ${outputOf(ran)}`).toBe(0)
      expect(asked.length, agent.title).toBeGreaterThan(1)
      expect(contextIn(asked), agent.title).toBe("")
    }
  })

  test.each(HOOKED_AGENTS)(
    "what a hook prints reaches the model of $title at every event, and dex stores it as injected",
    async (agent) => {
      await standIn(program())
      const asked = await play(agent, "Do one thing of each kind", [...oneOfEach(agent), { text: "Done." }])
      const events = EVENTS[agent.name].filter((event) => !COMPACTION_EVENTS.includes(event))
      const heard = events.filter((event) => contextIn(asked).includes(`said at ${event} (`))
      report.push(`${agent.title}: heard at ${heard.join(", ")}`)
      expect(heard).toEqual(events)
      restore()

      expect((await machine.dex("sync")).code).toBe(0)
      const { conversations } = await machine.json("list", "--all", "--source", agent.name)
      const parts: { type: string; origin: string; text: string }[] = []
      for (const { id } of conversations as { id: string }[])
        parts.push(
          ...(await machine.json("show", id, "--messages", "1-200")).messages.flatMap(
            ({ parts }: { parts: [] }) => parts,
          ),
        )
      const ours = parts.filter(({ text }) => text.includes("marmalade archive") || text.includes("<dex-context>"))
      expect(ours.length).toBeGreaterThan(0)
      expect(ours.filter(({ origin }) => origin !== "injected")).toEqual([])
      expect(parts.some(({ origin, text }) => origin === "person" && text === "Do one thing of each kind")).toBe(true)
      const { total } = await machine.json("search", "marmalade", "--source", agent.name)
      report.push(`${agent.title}: ${ours.length} injected parts; a search for a word of theirs finds ${total}`)
    },
  )

  test("a dex that hangs or crashes neither stops an agent nor keeps it waiting", async () => {
    const times = async (prompt: string, script: string) => {
      writeFileSync(program(), script, { mode: 0o755 })
      const played = await playAll(prompt, (agent) => [
        { call: agent.shell(`echo '${ERROR}'; exit 3`) },
        { text: "Went on." },
      ])
      restore()
      return played.map(({ agent, ran, asked }) => {
        expect(ran.code, `${agent.title}: ${outputOf(ran)}`).toBe(0)
        const told = asked.flatMap(({ turns }) => turns.filter(({ role }) => role === "tool"))
        expect(told.some(({ text }) => text.includes(ERROR))).toBe(true)
        return ran.ms
      })
    }
    const free = await times("Run it with a dex that says nothing", "#!/bin/sh\ncat >/dev/null\n")
    const hung = await times("Run it with a dex that hangs", `#!/bin/sh\nexec sleep ${HANGS_MS / 1000}\n`)
    const broken = await times("Run it with a broken dex", "#!/bin/sh\necho '{\"half'\necho no >&2\nexit 1\n")
    for (const [i, { title }] of HOOKED_AGENTS.entries()) {
      report.push(
        `${title}: ${free[i]} ms with a silent dex, ${hung[i]} ms with one that hangs, ${broken[i]} ms broken`,
      )
      expect(hung[i]! - free[i]!, title).toBeLessThan(HANGS_MS / 2)
    }
  })
})

/** One call for each kind of event that has a hook. */
function oneOfEach(agent: HookedAgent): Step[] {
  const file = join(machine.projectOf(agent), "a.txt")
  const fails = { call: agent.shell(`echo '${ERROR}'; exit 3`) }
  const calls: Record<Name, Call[]> = {
    claude_code: [
      { tool: "Read", input: { file_path: file } },
      {
        tool: "Agent",
        input: { subagent_type: "general-purpose", description: "Look", prompt: "SUBTASK", run_in_background: false },
      },
    ],
    codex: [
      {
        tool: "apply_patch",
        input: `*** Begin Patch\n*** Update File: ${file}\n@@\n-hello\n+hello you\n*** End Patch\n`,
      },
    ],
    gemini_cli: [{ tool: "read_file", input: { file_path: file } }],
    opencode: [{ tool: "read", input: { filePath: file } }],
  }
  return [fails, ...calls[agent.name].map((call) => ({ call }))]
}

/** The request for a summary, in each agent's words. */
const SUMMARY_REQUEST =
  /^You are performing a CONTEXT CHECKPOINT|Your task is to create a (?:detailed )?summary|^Here is the conversation so far|generate the updated <state_snapshot>|evaluate the <state_snapshot>/
const SUMMARY = "<summary>\nA token file was written.\n</summary>\n<state_snapshot>A token file.</state_snapshot>"
/** Above the limit of every agent. */
const FULL_CONTEXT = 999_000

/** Writes a file, then fills the context, so that the agent compacts, and then goes on for longer than dex takes. */
async function playCompaction(agent: HookedAgent, prompt: string): Promise<Asked[]> {
  const slow = agent.shell(`sleep 1; echo '${ERROR}'; exit 3`)
  const calls = [agent.write(join(machine.projectOf(agent), "token.txt"), "refreshToken\n"), agent.shell("true")]
  // Gemini CLI compacts when a person wants it, between two prompts.
  const isAsked = agent.name === "gemini_cli"
  if (!isAsked) calls.push(...Array.from({ length: 8 }, () => slow))
  const first = machine.model.asked.length
  let next = 0
  machine.model.answerBy(({ turns, offered }) => {
    if (SUMMARY_REQUEST.test(turns.at(-1)?.text ?? "")) return { text: SUMMARY }
    const call = offered.length === 0 ? undefined : calls[next++]
    const tool = offered.find(({ name }) => name === call?.tool)
    if (!call || !tool) return { text: "Done." }
    return { call: { tool, input: call.input }, ...(next === 2 && { tokens: FULL_CONTEXT }) }
  })
  const limit = agent.name === "codex" ? ["-c", "model_auto_compact_token_limit=5000"] : []
  const prompts = isAsked ? [prompt, "/compress", "Say what is left"] : [prompt]
  try {
    for (const [i, text] of prompts.entries()) {
      const args = [...agent.args(text).slice(0, isAsked ? undefined : 1), ...(i > 0 ? ["--resume", "latest"] : [])]
      const all = isAsked ? args : [...args, ...limit, ...agent.args(text).slice(1)]
      const ran = await machine.runAgent(agent, all, PATIENT)
      expect(ran.code, outputOf(ran)).toBe(0)
      const late = join(machine.home, ".dex", "late")
      if (text === "/compress")
        await expect.poll(() => readdirSync(late).join(), { timeout: 30_000 }).toContain("compaction")
    }
  } finally {
    machine.model.answerBy(undefined)
  }
  return machine.model.asked.slice(first)
}

function restore(): void {
  copyFileSync(`${program()}.kept`, program())
}

async function play(
  agent: HookedAgent,
  prompt: string,
  steps: Step[],
  env: Record<string, string> = PATIENT,
): Promise<Asked[]> {
  const subtask = { prompt: "SUBTASK", steps: [{ text: "Nothing to see." }] }
  const { ran, asked } = await machine.playWith(agent, env, { prompt, steps }, subtask)
  report.push(`${agent.title}, ${(ran.ms / 1000).toFixed(1)} s: ${prompt}`)
  expect(ran.code, outputOf(ran)).toBe(0)
  return asked
}

type Played = { agent: HookedAgent; ran: Ran; asked: Asked[] }

/** Runs all agents at the same time, for tests in which a late hook does not matter. */
async function playAll(
  task: string,
  steps: (agent: HookedAgent) => Step[],
  env: Record<string, string> = {},
): Promise<Played[]> {
  const promptOf = ({ title }: HookedAgent) => `${task}, ${title}`
  machine.model.play(...HOOKED_AGENTS.map((agent) => ({ prompt: promptOf(agent), steps: steps(agent) })))
  const first = machine.model.asked.length
  const runs = await Promise.all(
    HOOKED_AGENTS.map((agent) => machine.runAgent(agent, agent.args(promptOf(agent)), env)),
  )
  const asked = machine.model.asked.slice(first)
  return HOOKED_AGENTS.map((agent, i) => {
    report.push(`${agent.title}, ${(runs[i]!.ms / 1000).toFixed(1)} s: ${task}`)
    const isOurs = ({ turns }: Asked) => turns.some(({ text }) => text.includes(promptOf(agent)))
    return { agent, ran: runs[i]!, asked: asked.filter(isOurs) }
  })
}

const outputOf = ({ stdout, stderr }: Ran) => `${stdout.slice(-2000)}\n${stderr.slice(-2000)}`

/** The highest number of times that the words occur in one request. */
function saidTo(asked: Asked[], words: string): number {
  return Math.max(
    0,
    ...asked.map(({ turns }) => turns.map(({ text }) => text.split(words).length - 1).reduce((a, b) => a + b, 0)),
  )
}
