import { DexError, isDexError } from "../core/error.ts"
import { type Embedder, type EmbedSettings, GOLDEN_TEXT } from "./embedder.ts"
import { familyOf, preparedText } from "./families.ts"
import { localPackage } from "./local-package.ts"
import { askServer } from "./post.ts"
import { askForVectors, remoteEmbedder, type Wire } from "./remote.ts"

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

const OPENAI_URL = "https://api.openai.com/v1"

/** Any server that speaks `/v1/embeddings`. `url` ends before `/embeddings`; with it, it is taken as well. */
function openaiWire(url: string, model: string, dims: number | undefined): Wire {
  const base = url.replace(/\/+$/, "")
  return {
    url: base.endsWith("/embeddings") ? base : `${base}/embeddings`,
    body: (texts) => ({ model, input: texts, dimensions: dims }),
    vectors: (answer) => {
      const data = (answer as { data?: unknown } | null)?.data
      if (!Array.isArray(data)) return undefined
      const vectors: unknown[] = []
      for (const [i, item] of data.entries()) {
        const { index = i, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown }
        if (typeof index !== "number" || !(index >= 0 && index < data.length) || index in vectors) return undefined
        vectors[index] = embedding
      }
      return vectors
    },
  }
}

const OLLAMA_URL = "http://127.0.0.1:11434"

function ollamaWire(url: string, model: string, dims: number | undefined): Wire {
  return {
    url: `${url.replace(/\/+$/, "")}/api/embed`,
    body: (texts) => ({ model, input: texts, truncate: true, dimensions: dims }),
    vectors: (answer) => {
      const vectors = (answer as { embeddings?: unknown } | null)?.embeddings
      return Array.isArray(vectors) ? vectors : undefined
    },
  }
}

/** What the model's name stands for at the moment: `ollama pull` may change it. Undefined where the server does not tell. */
async function ollamaRevision(
  url: string,
  model: string,
  how: { apiKey?: string; signal?: AbortSignal },
): Promise<string | undefined> {
  try {
    const answer = await askServer({
      url: `${url.replace(/\/+$/, "")}/api/tags`,
      ...how,
    })
    const models = (answer as { models?: unknown } | null)?.models
    if (!Array.isArray(models)) return undefined
    const named = (models as { name?: unknown; digest?: unknown }[]).find(
      (one) => one?.name === model || one?.name === `${model}:latest`,
    )
    return typeof named?.digest === "string" ? named.digest.replace(/^sha256:|[^0-9a-f]/g, "").slice(0, 12) : undefined
  } catch (error) {
    if (isDexError(error) && !["embed_unreachable", "embed_stopped"].includes(error.code)) return undefined // an older or partial server
    throw error
  }
}
