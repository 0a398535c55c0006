import { DexError } from "../core/error.ts"
import { type Embedder, type EmbedSettings, GOLDEN_TEXT } from "./embedder.ts"
import { familyOf, preparedText } from "./families.ts"
import { localPackage } from "./local-package.ts"
import { OLLAMA_URL, ollamaRevision, ollamaWire } from "./ollama.ts"
import { OPENAI_URL, openaiWire } from "./openai.ts"
import { askForVectors, remoteEmbedder } from "./remote.ts"

/** Where text goes to be embedded; undefined when it goes nowhere. */
export function embedUrl({ provider, url }: Pick<EmbedSettings, "provider" | "url">): string | undefined {
  if (provider === "none" || provider === "local") return undefined
  return url ?? (provider === "openai" ? OPENAI_URL : OLLAMA_URL)
}

/**
 * The configured embedder; undefined when there is none. `known`: ids of the vectors that are already kept. One of the
 * same model spares a question to the server, as a search wants it; leave it out to embed documents, so that a model
 * that changed under its name gets a new id.
 */
export async function openEmbedder(
  settings: EmbedSettings,
  known: string[] = [],
  signal?: AbortSignal,
): Promise<Embedder | undefined> {
  const { provider, model } = settings
  if (provider === "local") return (await import("./local.ts")).localEmbedder(settings.dexDir ?? "")
  const url = embedUrl(settings)
  if (provider === "none" || url === undefined) return undefined
  if (!model)
    throw new DexError(
      "embed_settings",
      `Which model? dex config set embed.model ${provider === "openai" ? "text-embedding-3-small" : "nomic-embed-text"}`,
    )
  const family = familyOf(model)
  const shorter = family.shortens ? settings.dims : undefined
  const wire = (provider === "openai" ? openaiWire : ollamaWire)(url, model, shorter)
  const apiKey = settings.apiKey === undefined ? {} : { apiKey: settings.apiKey }
  const stop = signal ? { signal } : {}
  const named = `${provider}:${model}@`
  const kept = keptId(settings, known)
  const before = kept === undefined ? undefined : readId(kept, named, family.prompts)
  const revision =
    before?.revision ??
    (provider === "ollama" ? await ollamaRevision(url, model, { ...apiKey, ...stop }) : undefined) ??
    "-"
  const dims =
    settings.dims ??
    before?.dims ??
    (await askForVectors(wire, [preparedText(GOLDEN_TEXT, "document", family)], { ...apiKey, ...stop }))[0]!.length
  return remoteEmbedder({ wire, id: `${named}${revision}:${dims}:${family.prompts}`, dims, family, ...apiKey })
}

/** Of the vectors that are kept, which are the configured embedder's: the newest. Nothing is asked for. */
export function keptId({ provider, model, dims, dexDir }: EmbedSettings, known: string[]): string | undefined {
  if (provider === "local") {
    const local = localPackage(dexDir ?? "")
    return known.find((id) => id === local?.id)
  }
  if (provider === "none" || !model) return undefined
  const { prompts } = familyOf(model)
  return known.findLast((id) => fits(readId(id, `${provider}:${model}@`, prompts), dims))
}

type Before = { revision: string; dims: number }

function readId(id: string, named: string, prompts: string): Before | undefined {
  if (!id.startsWith(named)) return undefined
  const [, revision, dims, words] = /^([^:]*):(\d+):([^:]*)$/.exec(id.slice(named.length)) ?? []
  return words === prompts ? { revision: revision!, dims: Number(dims) } : undefined
}

function fits(before: Before | undefined, dims: number | undefined): boolean {
  return before !== undefined && (dims === undefined || before.dims === dims)
}
