/** The agents that can be asked as a model, in the order in which `agent` looks for one. */
export const MODEL_AGENTS = ["claude_code", "codex", "gemini_cli", "opencode"] as const
export type ModelAgent = (typeof MODEL_AGENTS)[number]

/** What `llm.provider` may be beside an address: one of them, or whichever is installed. */
export const AGENT_PROVIDERS = ["agent", ...MODEL_AGENTS] as const
export type AgentProvider = (typeof AGENT_PROVIDERS)[number]

export function isAgentProvider(provider: string): provider is AgentProvider {
  return (AGENT_PROVIDERS as readonly string[]).includes(provider)
}

/** Set for an agent that is asked as a model, and for all that it starts: dex does nothing there (`cli/dex.ts`). */
export const MODEL_RUN_VARIABLE = "DEX_MODEL_RUN"

/** The folder in which such an agent works is called this, or begins with it. */
export const MODEL_RUN_FOLDER = "dex-model-run"

/** What was said in such a folder is not the user's work. The name alone says so: dex's own folder may have moved since. */
export function isModelRunFolder(path: string): boolean {
  return path.split(/[\\/]/).some((name) => name === MODEL_RUN_FOLDER || name.startsWith(`${MODEL_RUN_FOLDER}-`))
}
