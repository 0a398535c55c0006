import { isDexError } from "../core/error.ts"
import { askServer } from "./post.ts"
import type { Wire } from "./remote.ts"

export const OLLAMA_URL = "http://127.0.0.1:11434"

export function ollamaWire(url: string, model: string, dims: number | undefined): Wire {
  return {
    url: `${url.replace(/\/+$/, "")}/api/embed`,
    body: (texts) => ({ model, input: texts, truncate: true, ...(dims !== undefined && { dimensions: dims }) }),
    vectors: (answer) => {
      const vectors = (answer as { embeddings?: unknown } | null)?.embeddings
      return Array.isArray(vectors) ? vectors : undefined
    },
  }
}

/** What the model's name stands for at the moment: `ollama pull` may change it. Undefined where the server does not tell. */
export async function ollamaRevision(
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
