import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"
import type { Agent } from "../agents/kit/agent.ts"
import type { HeadlessAgent } from "../agents/kit/headless.ts"
import { agents } from "../agents/registry.ts"
import { DexError } from "../core/error.ts"
import { type AgentProvider, MODEL_AGENTS, type ModelAgent } from "../core/model-run.ts"

/** An agent that is used as a model. */
export type ChosenAgent = { agent: Agent; headless: HeadlessAgent }
type Env = Record<string, string | undefined>

/** Returns the agent that `llm.provider` names or, if that is `agent`, the first one that is installed. */
export async function chooseAgent(provider: AgentProvider, env: Env): Promise<ChosenAgent | undefined> {
  if (provider !== "agent") return headlessOf(provider)
  for (const name of MODEL_AGENTS) {
    const chosen = await headlessOf(name)
    if (isInstalled(chosen, env)) return chosen
  }
  return undefined
}

/** Returns the agent. Throws if it is not installed. */
export function requireInstalled(chosen: ChosenAgent | undefined, env: Env): ChosenAgent {
  if (chosen && isInstalled(chosen, env)) return chosen
  const alternative =
    "or choose another model (docs/models.md). Without one, dex ask answers with quotes: dex config unset llm.provider"
  throw new DexError(
    "llm_no_program",
    chosen
      ? `${agentName(chosen)} is not installed: there is no program ${chosen.headless.program} on the PATH. Install it (${chosen.headless.install}), ${alternative}`
      : `llm.provider is agent, but no agent is installed: none of ${PROGRAMS} is on the PATH. Install one of them, ${alternative}`,
  )
}

const PROGRAMS = "claude, codex, gemini or opencode"

async function headlessOf(name: ModelAgent): Promise<ChosenAgent> {
  const agent = agents.find(({ source }) => source === name)!
  return { agent, headless: await agent.headless!() }
}

export function agentName({ agent }: ChosenAgent): string {
  return agent.name
}

/** Describes to the user where their text would be sent. Shown before the first question is sent. */
export function describeSending(chosen: ChosenAgent): string {
  const name = agentName(chosen)
  return `dex would let ${name} write its answers. For each answer, your question and the passages that dex found (redacted parts of your conversations, documents and code) would be sent to ${chosen.headless.sendsTo}. It would count towards your own plan or account there. ${name} would be started without tools: its model could not read or change your files.`
}

/** Throws if the user has not agreed to this agent. */
export function requireAllowed(chosen: ChosenAgent, allowed: readonly string[]): void {
  const { source } = chosen.agent
  if (allowed.includes(source)) return
  const names = [...allowed, source].join(",")
  throw new DexError(
    "llm_not_allowed",
    `${describeSending(chosen)} You have not agreed to that yet, so nothing was sent. To agree: dex config set llm.allowed_agents ${names}`,
  )
}

function isInstalled({ headless: { program } }: ChosenAgent, env: Env): boolean {
  const endings = process.platform === "win32" ? [".exe", ".cmd", ""] : [""]
  return (env.PATH ?? env.Path ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "")
    .some((folder) => endings.some((ending) => isProgram(join(folder, program + ending))))
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
