import type { Machine } from "../connectors/connector.ts"
import type { JsonAddition } from "./edit-json.ts"
import type { TomlAddition } from "./edit-toml.ts"

/** A coding agent that dex can be given to. */
export type Agent = {
  name: AgentName
  /** As people call it. */
  title: string
  /** Its folder or file exists, or its program is on the path: where to look. */
  signs(machine: Machine): { paths: string[]; program?: string }
  /** What dex adds, and where. */
  wanted(machine: Machine, bin: Bin): WantedFile[]
  /** What dex leaves out for this agent and why, and what is still to be done by hand. */
  note?(machine: Machine, bin: Bin): string | undefined
}

export const AGENT_NAMES = ["claude_code", "codex", "opencode", "gemini_cli", "cursor", "vscode", "copilot"] as const
export type AgentName = (typeof AGENT_NAMES)[number]

/**
 * The programs that agents start: the launcher, one that syncs behind an agent's back, the sub-agent's guard, and the one
 * that agents' hooks ask, where somebody wants those. On Windows they are scripts for this Node.
 */
export type Bin = { dex: string; sync?: string; guard?: string; hook?: string; windows?: { node: string } }

export type Addition = JsonAddition | TomlAddition | WholeFile
/** A file of dex's own. */
export type WholeFile = { type: "file"; content: string; executable?: boolean }
/** With at least one addition: a file that was made for nothing would be empty, and so not even valid JSON. */
export type WantedFile = { path: string; additions: Addition[]; is?: "subagent" }
