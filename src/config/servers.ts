import { isAgentProvider } from "../core/model-run.ts"
import { dexHome } from "./home.ts"
import { type KeyContext, keyPlace, readKey } from "./secret.ts"
import { SETTINGS, type Settings, splitNames } from "./settings.ts"

// The options of model server clients, read from the settings. The key is read only if there is a server.

export function embedSettings(settings: Settings, context: KeyContext) {
  const provider = settings["embed.provider"]
  const apiKey = provider === "none" || provider === "local" ? undefined : readKey("embed", settings, context)
  return {
    provider,
    dexDir: provider === "local" ? dexHome({ ...context.env, HOME: context.home }).dir : undefined,
    url: settings["embed.url"],
    model: settings["embed.model"],
    dims: settings["embed.dims"],
    apiKey,
  }
}

/** The reranking server's address; undefined if reranking is off. */
export function rerankUrl(settings: Settings): string | undefined {
  return settings["search.rerank"] === "off" ? undefined : settings["search.rerank"]
}

/** Returns the options of the reranking client, or undefined if reranking is off. */
export function rerankSettings(settings: Settings, context: KeyContext) {
  const url = rerankUrl(settings)
  if (url === undefined) return undefined
  const apiKey = readKey("rerank", settings, context)
  return {
    url,
    model: settings["rerank.model"],
    apiKey,
  }
}

/** Whether a model is configured: either the user chose a provider, or there is a key for the default provider. */
export function hasLlm(settings: Settings, context: KeyContext): boolean {
  const hasOwnProvider = settings["llm.provider"] !== SETTINGS["llm.provider"].default
  return hasOwnProvider || keyPlace("llm", settings, context) !== undefined
}

/**
 * The model that answers: a server, or an installed agent, which uses its own model unless one was chosen. Undefined if none is
 * configured, so that nothing is sent to anybody whom the user did not choose.
 */
export function llmSettings(settings: Settings, context: KeyContext) {
  if (!hasLlm(settings, context)) return undefined
  const provider = settings["llm.provider"]
  const model = settings["llm.model"]
  if (isAgentProvider(provider))
    return {
      type: "agent" as const,
      provider,
      model: model !== SETTINGS["llm.model"].default ? model : undefined,
      maxTokens: settings["llm.max_tokens"],
      allowed: splitNames(settings["llm.allowed_agents"]),
    }
  const apiKey = readKey("llm", settings, context)
  return {
    type: "server" as const,
    provider,
    model,
    temperature: settings["llm.temperature"],
    maxTokens: settings["llm.max_tokens"],
    apiKey,
  }
}
