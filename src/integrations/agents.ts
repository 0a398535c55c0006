import { accessSync, constants, existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import type { Machine } from "../connectors/connector.ts"
import { byName } from "../core/by-name.ts"
import { DexError } from "../core/error.ts"
import { AGENT_NAMES, type Agent, type AgentName } from "./agent.ts"
import { claudeCode } from "./claude-code.ts"
import { codex } from "./codex.ts"
import { copilot } from "./copilot.ts"
import { cursor } from "./cursor.ts"
import { geminiCli } from "./gemini-cli.ts"
import { opencode } from "./opencode.ts"
import { vscode } from "./vscode.ts"

export const agents: Record<AgentName, Agent> = {
  claude_code: claudeCode,
  codex,
  opencode,
  gemini_cli: geminiCli,
  cursor,
  vscode,
  copilot,
}

const SHORT: Record<string, AgentName> = { claude: "claude_code", gemini: "gemini_cli", code: "vscode" }

/** The agents that were named as people name them. Throws a DexError for a name that is none. */
export function namedAgents(names: readonly string[]): AgentName[] {
  const chosen = names.map((name) => {
    const plain = name.toLowerCase().replaceAll("-", "_")
    const found = AGENT_NAMES.find((known) => known === plain) ?? byName(SHORT, plain)
    if (found === undefined)
      throw new DexError("usage", `dex knows no agent "${name}". It knows: ${AGENT_NAMES.join(", ")}.`)
    return found
  })
  return AGENT_NAMES.filter((name) => chosen.includes(name))
}

export function isInstalled(agent: Agent, machine: Machine): boolean {
  const { paths, program } = agent.signs(machine)
  return paths.some((path) => existsSync(path)) || (program !== undefined && isOnPath(program, machine))
}

function isOnPath(program: string, { env, platform }: Machine): boolean {
  const endings = platform === "win32" ? [".exe", ".cmd", ".bat"] : [""]
  return (env.PATH ?? "")
    .split(delimiter)
    .filter(Boolean)
    .some((folder) => endings.some((ending) => isExecutable(join(folder, program + ending))))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
