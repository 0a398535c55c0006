import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { CLINE_HOOKS } from "../packages/more-agents/src/cline.ts"
import { COPILOT_HOOKS } from "../packages/more-agents/src/copilot.ts"
import { DROID_HOOKS } from "../packages/more-agents/src/droid.ts"
import { GROK_HOOKS } from "../packages/more-agents/src/grok.ts"
import { KIMI_CODE_HOOKS } from "../packages/more-agents/src/kimi-code.ts"
import { QWEN_CODE_HOOKS } from "../packages/more-agents/src/qwen-code/connector.ts"
import { type Agent, MORE_HOOKED_AGENTS } from "./agents.ts"
import { setUpMachine } from "./machine.ts"
import type { Call } from "./model.ts"
import { contextIn, standInForDex } from "./stand-in.ts"

// One run of each agent: dex is wired, what its hooks print is in the requests to the model, and dex reads the session back.

const ERROR = "TypeError: gallowayword is not a function"
const PROMPT = "Do one thing of each kind"
const PLUGIN_EVENTS = ["session.start", "chat.message", "tool.execute.after"]
/** The events whose texts must arrive. `droid exec` does not report prompts. */
const EVENTS: Partial<Record<Agent["name"], string[]>> = {
  copilot: COPILOT_HOOKS.map(({ event }) => event),
  qwen_code: QWEN_CODE_HOOKS.map(({ event }) => event),
  kimi_code: KIMI_CODE_HOOKS.map(({ event }) => event),
  grok: GROK_HOOKS.map(({ event }) => event),
  cline: CLINE_HOOKS.map(({ event }) => event),
  droid: DROID_HOOKS.map(({ event }) => event).filter((event) => event !== "UserPromptSubmit"),
  pi: PLUGIN_EVENTS,
  kilo: PLUGIN_EVENTS,
}
/** The call that reads a file, if a hook answers to it. */
const READS: Partial<Record<Agent["name"], (path: string) => Call>> = {
  copilot: (path) => ({ tool: "view", input: { path } }),
  qwen_code: (path) => ({ tool: "read_file", input: { file_path: path } }),
  grok: (path) => ({ tool: "read_file", input: { target_file: path } }),
  cline: (path) => ({ tool: "read_files", input: { files: [{ path }] } }),
  droid: (path) => ({ tool: "Read", input: { file_path: path } }),
}

let machine: Awaited<ReturnType<typeof setUpMachine>>
const report: string[] = []

beforeAll(async () => {
  machine = await setUpMachine(MORE_HOOKED_AGENTS)
  for (const agent of MORE_HOOKED_AGENTS) writeFileSync(join(machine.projectOf(agent), "a.txt"), "hello\n")
  const names = MORE_HOOKED_AGENTS.map(({ name }) => name)
  const { code, stderr } = await machine.dex("install", ...names, "--hooks", "--yes")
  expect(code, stderr).toBe(0)
  expect((await machine.dex("sync")).code).toBe(0)
  await standInForDex(join(machine.home, ".dex", "bin", "dex-hook"))
})

afterAll(async () => {
  await machine.takeDown()
  console.log(report.join("\n"))
})

test.each(MORE_HOOKED_AGENTS)("$title is wired, spoken to and read back", async (agent) => {
  const file = join(machine.projectOf(agent), "a.txt")
  const read = READS[agent.name]?.(file)
  // The longest time limit, because the machine may be busy.
  const { ran, asked } = await machine.playWith(
    agent,
    { DEX_HOOK_MS: "900" },
    {
      prompt: PROMPT,
      steps: [{ call: agent.shell(`echo '${ERROR}'; exit 3`) }, ...(read ? [{ call: read }] : []), { text: "Done." }],
    },
  )
  const output = `${ran.stdout.slice(-2000)}\n${ran.stderr.slice(-2000)}`
  expect(ran.code, output).toBe(0)
  const said = contextIn(asked)
  const heard = EVENTS[agent.name]!.filter((event) => said.includes(`said at ${event} (`))
  report.push(`${agent.title}, ${(ran.ms / 1000).toFixed(1)} s: heard at ${heard.join(", ")}`)
  expect(heard, output).toEqual(EVENTS[agent.name])

  const requests = asked.map(({ turns, offered }) => JSON.stringify([turns, offered])).join("\n")
  // Cline lists skills in the description of a tool, which is not recorded here.
  if (agent.name !== "cline") expect(requests).toContain("Recall earlier work from the conversations")
  const offersTools = asked.some(({ offered }) => offered.some(({ name }) => name.includes("dex_search")))
  report.push(`${agent.title}: dex's tools are ${offersTools ? "offered at once" : "not offered at once"}`)

  expect((await machine.dex("sync")).code).toBe(0)
  const { conversations } = await machine.json("list", "--all", "--source", agent.name)
  const parts: { type: string; origin: string; text: string }[] = []
  for (const { id } of conversations as { id: string }[])
    for (const message of (await machine.json("show", id, "--messages", "1-200")).messages) parts.push(...message.parts)
  const ours = parts.filter(({ text }) => text.includes("marmalade archive"))
  report.push(`${agent.title}: ${ours.length} parts are ours, of ${parts.length}`)
  expect(ours.filter(({ origin }) => origin !== "injected")).toEqual([])
  expect(parts.filter(({ origin }) => origin === "person").map(({ text }) => text)).toEqual([PROMPT])
})

test("dex uninstall leaves each agent's settings as they were", async () => {
  expect((await machine.dex("uninstall", "--yes")).code).toBe(0)
  for (const agent of MORE_HOOKED_AGENTS) {
    const { path, content } = agent.settings(machine.model.url)
    // Some agents write to their settings too.
    const left = readFileSync(join(machine.home, path), "utf8")
    expect(left, agent.title).not.toContain(".dex/bin")
    report.push(`${agent.title}: its settings are ${left === content ? "byte for byte as before" : "as it left them"}`)
  }
  expect(existsSync(join(machine.home, ".agents", "skills", "dex"))).toBe(false)
})
