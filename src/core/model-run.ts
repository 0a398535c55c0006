/** The agents that can be used as a model, in the order in which dex tries them if the provider is `agent`. */
export const MODEL_AGENTS = ["claude_code", "codex", "gemini_cli", "opencode"] as const
export type ModelAgent = (typeof MODEL_AGENTS)[number]

/** The values of `llm.provider` that are not an address. `agent` means the first of MODEL_AGENTS that is installed. */
export const AGENT_PROVIDERS = ["agent", ...MODEL_AGENTS] as const
export type AgentProvider = (typeof AGENT_PROVIDERS)[number]

export function isAgentProvider(provider: string): provider is AgentProvider {
  return (AGENT_PROVIDERS as readonly string[]).includes(provider)
}

/**
 * The environment variable that dex sets for an agent used as a model, so that everything that the agent starts has it too. A dex
 * that finds it set does nothing (`cli/dex.ts`).
 */
export const MODEL_RUN_VARIABLE = "DEX_MODEL_RUN"

/** The name, or the beginning of the name, of the folder in which an agent used as a model works. */
export const MODEL_RUN_FOLDER = "dex-model-run"

/**
 * Returns true if the path is in the working folder of an agent used as a model. Conversations there are not the user's work.
 * Only the names of folders are compared, because dex's own folder may have moved.
 */
export function isModelRunFolder(path: string): boolean {
  return path.split(/[\\/]/).some((name) => name === MODEL_RUN_FOLDER || name.startsWith(`${MODEL_RUN_FOLDER}-`))
}
