import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { createDex } from "../../app/dex.ts"
import { VERSION } from "../../app/version.ts"
import { agentOfferAnswer, saveAgentOfferAnswer } from "../../config/agent-offer.ts"
import { dexHome } from "../../config/home.ts"
import { loadSettings } from "../../config/load.ts"
import { keyPlace, SERVER_KINDS } from "../../config/secret.ts"
import { hasLlm } from "../../config/servers.ts"
import { splitNames } from "../../config/settings.ts"
import { writeKey, writeSetting } from "../../config/write.ts"
import { DexError } from "../../core/error.ts"
import { isAgentProvider, MODEL_RUN_VARIABLE } from "../../core/model-run.ts"
import { isInstalled, loadWirings, type WirableAgent } from "../../integrations/agents.ts"
import { hooksChoice, readRecord } from "../../integrations/record.ts"
import { recordFile } from "../../integrations/wiring.ts"
import { terminalOf, wrap } from "../../render/terminal.ts"
import { shortPath } from "../../render/words.ts"
import { isTerminal } from "./confirm.ts"

/**
 * If an agent is to write the answers, says on a terminal what would be sent to whom, and asks for permission once. Stores a yes
 * in the user's settings; throws a DexError if the answer is no. Does not ask without a terminal; opening the model then fails.
 */
export async function askForAgentConsent(env: Record<string, string | undefined>): Promise<void> {
  const home = dexHome(env)
  const { settings } = loadSettings({ file: home.config, env })
  const provider = settings["llm.provider"]
  if (!isAgentProvider(provider) || !isTerminal()) return
  const { chooseAgent, requireInstalled, agentName, describeSending } = await import("../../headless/choose.ts")
  const chosen = requireInstalled(await chooseAgent(provider, env), env)
  const allowed = splitNames(settings["llm.allowed_agents"])
  if (allowed.includes(chosen.agent.source)) return
  const { columns } = terminalOf(process.stderr, env)
  process.stderr.write(`${wrap(describeSending(chosen), columns).join("\n")}\n`)
  const { confirm, isCancel } = await import("@clack/prompts")
  const message = `Let dex ask ${agentName(chosen)} from now on?`
  const isConfirmed = await confirm({ message, initialValue: false, output: process.stderr })
  if (isCancel(isConfirmed) || !isConfirmed)
    throw new DexError("cancelled", "Nothing was sent. For answers without a model: dex config unset llm.provider")
  writeSetting(home.config, "llm.allowed_agents", [...allowed, chosen.agent.source].join(","))
}

/**
 * On a terminal, before the first answer without a model: offers to let an installed agent write the answers. Asks a person once;
 * never asks in a pipe, inside an agent, or if dex has read nothing yet.
 */
export async function offerAgent(env: Record<string, string | undefined>): Promise<void> {
  const home = dexHome(env)
  if (!isTerminal() || isInsideAgent(env) || !existsSync(home.history)) return
  const { settings } = loadSettings({ file: home.config, env })
  if (agentOfferAnswer(home.dir) !== undefined || hasLlm(settings, { env, home: env.HOME ?? homedir() })) return
  const { chooseAgent, agentName, describeSending } = await import("../../headless/choose.ts")
  const chosen = await chooseAgent("agent", env)
  if (chosen === undefined) return
  const { columns } = terminalOf(process.stderr, env)
  const description = `No model is set up. ${describeSending(chosen)}`
  process.stderr.write(`${wrap(description, columns).join("\n")}\n`)
  const { select, isCancel } = await import("@clack/prompts")
  const answer = await select({
    message: `Let ${agentName(chosen)} write dex's answers?`,
    options: [
      { value: "no", label: "No", hint: "exact quotes, as before" },
      { value: "yes", label: "Yes", hint: "--quotes still answers without it" },
      { value: "never", label: "Never", hint: "do not mention it again" },
    ],
    output: process.stderr,
  })
  if (isCancel(answer)) throw new DexError("cancelled", "Nothing was sent.")
  if (answer !== "yes") return saveAgentOfferAnswer(home.dir, answer)
  const { source } = chosen.agent
  const allowed = splitNames(settings["llm.allowed_agents"])
  writeSetting(home.config, "llm.provider", source)
  writeSetting(home.config, "llm.allowed_agents", [...new Set([...allowed, source])].join(","))
}

/**
 * On a terminal, asks what a model's answer is for, because the model stops searching once it has enough for that. Returns undefined
 * if nothing was typed, or if no model writes the answer.
 */
export async function readUseCase(env: Record<string, string | undefined>): Promise<string | undefined> {
  const home = dexHome(env)
  const { settings } = loadSettings({ file: home.config, env })
  if (!isTerminal() || isInsideAgent(env) || !hasLlm(settings, { env, home: env.HOME ?? homedir() })) return undefined
  const { text, isCancel } = await import("@clack/prompts")
  const typed = await text({ message: "What is it for? (Enter to skip)", output: process.stderr })
  if (isCancel(typed)) throw new DexError("cancelled", "Nothing was sent.")
  return typed?.trim() || undefined
}

/** True if an agent started this command: an agent cannot answer for its user. */
function isInsideAgent(env: Record<string, string | undefined>): boolean {
  return env[MODEL_RUN_VARIABLE] !== undefined || AGENT_VARIABLES.some((name) => env[name] !== undefined)
}

const AGENT_VARIABLES = ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE", "AGENT"]

const MAX_BYTES = 64 << 10

/** Asks for a server's key without showing it, or reads it from a pipe, and stores it so that only its owner can read it. */
export async function askKey(name: string): Promise<number> {
  const server = SERVER_KINDS.find((server) => server === name)
  if (server === undefined)
    throw new DexError("usage", `Which key? One of: ${SERVER_KINDS.map((server) => `${server}.api_key`).join(", ")}.`)
  const home = dexHome(process.env)
  const key = process.stdin.isTTY ? await keyFromTerminal(server) : await keyFromPipe()
  if (key === "")
    throw new DexError("usage", "No key was given, so nothing was changed. On a terminal dex asks for it.")
  const file = writeKey(home, server, key)
  const user = process.env.HOME ?? homedir()
  process.stdout.write(`The key is stored in ${shortPath(file, user)}, which only you can read.\n`)
  const { settings } = loadSettings({ file: home.config, env: process.env })
  const usedPlace = keyPlace(server, settings, { env: process.env, home: user })
  if (usedPlace?.from === "environment")
    process.stderr.write(`$${usedPlace.place} is set and overrides the stored key.\n`)
  return 0
}

async function keyFromTerminal(server: string): Promise<string> {
  const { isCancel, password } = await import("@clack/prompts")
  const key = await password({ message: `The key for ${server} (it is not shown)`, mask: "*", output: process.stderr })
  if (isCancel(key)) throw new DexError("cancelled", "Nothing was changed.")
  return (key ?? "").trim()
}

async function keyFromPipe(): Promise<string> {
  let text = ""
  for await (const chunk of process.stdin.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk
    if (text.length > MAX_BYTES) throw new DexError("key", "That is too long for a key. Nothing was changed.")
  }
  return text.trim()
}

type WiringInput = {
  agents: string[]
  yes?: boolean
  check?: boolean
  hooks?: boolean
  speak?: boolean
  no_hooks?: boolean
}

/**
 * Runs before the changes are computed. On a terminal it says which agents were found, and asks which of them to connect and
 * whether dex may make suggestions, unless the command line or an earlier run has answered this.
 */
export async function chooseWiring<I extends WiringInput>(input: I): Promise<I> {
  if (input.yes || input.check || !isTerminal()) return input
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  try {
    const record = recordFile(dex.home.dir)
    const installed = (await loadWirings()).filter((agent) => isInstalled(agent, dex.machine))
    if (installed.length === 0) return input
    process.stdout.write(`Found: ${installed.map(({ title }) => title).join(", ")}\n`)
    const connectedAgents = new Set(Object.values(readRecord(record)).map(({ agent }) => agent))
    const agents = input.agents.length > 0 ? input.agents : await askForAgents(installed, connectedAgents)
    const hasChosen = [input.hooks, input.speak, input.no_hooks].some((option) => option !== undefined)
    return { ...input, agents, ...(!hasChosen && hooksChoice(record) === undefined && (await askForSuggestions())) }
  } finally {
    dex.close()
  }
}

/** Asks which agents to connect. An empty list means all. Does not ask if only one is installed, or if all are connected. */
async function askForAgents(
  installed: readonly WirableAgent[],
  connectedAgents: ReadonlySet<string>,
): Promise<string[]> {
  const connected = installed.map(({ agent }) => agent).filter((agent) => connectedAgents.has(agent))
  if (installed.length === 1 || connected.length === installed.length) return []
  const { multiselect, isCancel } = await import("@clack/prompts")
  const chosen = await multiselect({
    message: "Connect which agents?",
    options: installed.map(({ agent, title }) => ({
      value: agent,
      label: title,
      hint: connectedAgents.has(agent) ? "connected" : undefined,
    })),
    initialValues: connected.length > 0 ? connected : installed.map(({ agent }) => agent),
    output: process.stderr,
  })
  if (isCancel(chosen)) throw new DexError("cancelled", "Nothing was changed.")
  return chosen.length === installed.length ? [] : chosen
}

async function askForSuggestions(): Promise<Pick<WiringInput, "hooks" | "speak" | "no_hooks">> {
  const { select, isCancel } = await import("@clack/prompts")
  const chosen = await select({
    message: "Let dex suggest past fixes, decisions and files to your agents?",
    options: [
      { value: "week", label: "Silent for a week", hint: "logs what it would say; then you decide" },
      { value: "on", label: "On" },
      { value: "off", label: "Off" },
    ],
    output: process.stderr,
  })
  if (isCancel(chosen)) throw new DexError("cancelled", "Nothing was changed.")
  if (chosen === "off") return { no_hooks: true }
  return chosen === "on" ? { speak: true } : { hooks: true }
}
