import { DexError } from "../core/error.ts"
import type { Reranker } from "./embedder.ts"
import { askServer, wrongServerAnswer } from "./post.ts"

export type RerankSettings = { url?: string; model?: string; apiKey?: string }

/**
 * Opens a reranker on a server with `/rerank`, such as Cohere, Jina, vLLM or llama.cpp. `url` may end with or without
 * `/rerank`.
 */
export function openReranker({ url, model, apiKey }: RerankSettings): Reranker {
  if (!url || !model)
    throw new DexError(
      "embed_settings",
      "Reranking needs a server and a model: dex config set search.rerank http://… and dex config set rerank.model …",
    )
  const address = url.replace(/\/+$/, "")
  const endpoint = address.endsWith("/rerank") ? address : `${address}/rerank`
  return {
    id: `rerank:${model}`,
    rerank: async (query, documents, { signal } = {}) => {
      if (documents.length === 0) return []
      const answer = await askServer({
        url: endpoint,
        purpose: "rerank",
        body: { model, query, documents, top_n: documents.length },
        apiKey,
        signal,
      })
      const scores = readScores(answer, documents.length)
      if (!scores)
        throw wrongServerAnswer(
          { url: endpoint, purpose: "rerank" },
          `did not score all of the ${documents.length} texts`,
        )
      return scores
    },
  }
}

function readScores(answer: unknown, count: number): number[] | undefined {
  const results = (answer as { results?: unknown } | null)?.results
  if (!Array.isArray(results)) return undefined
  const scores = new Map<number, number>()
  for (const result of results as { index?: unknown; relevance_score?: unknown }[]) {
    const { index, relevance_score: score } = result ?? {}
    if (typeof index === "number" && typeof score === "number" && Number.isFinite(score)) scores.set(index, score)
  }
  const orderedScores = Array.from({ length: count }, (_, i) => scores.get(i))
  return orderedScores.includes(undefined) ? undefined : (orderedScores as number[])
}
