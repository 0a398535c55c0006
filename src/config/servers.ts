import { readKey, type Where } from "./secret.ts"
import type { Settings } from "./settings.ts"

// What a client of a model server is given, read from the settings. The key is looked up only when there is a server.

export function embedSettings(settings: Settings, where: Where) {
  const provider = settings["embed.provider"]
  const apiKey = provider === "none" ? undefined : readKey("embed", settings, where)
  return {
    provider,
    ...(settings["embed.url"] !== undefined && { url: settings["embed.url"] }),
    ...(settings["embed.model"] !== undefined && { model: settings["embed.model"] }),
    ...(settings["embed.dims"] !== undefined && { dims: settings["embed.dims"] }),
    ...(apiKey !== undefined && { apiKey }),
  }
}

/** Undefined when reranking is off. */
export function rerankSettings(settings: Settings, where: Where) {
  if (!settings["search.rerank"]) return undefined
  const apiKey = readKey("rerank", settings, where)
  return {
    ...(settings["rerank.url"] !== undefined && { url: settings["rerank.url"] }),
    ...(settings["rerank.model"] !== undefined && { model: settings["rerank.model"] }),
    ...(apiKey !== undefined && { apiKey }),
  }
}
