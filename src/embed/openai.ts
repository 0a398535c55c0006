import type { Wire } from "./remote.ts"

export const OPENAI_URL = "https://api.openai.com/v1"

/** Any server that speaks `/v1/embeddings`. `url` ends before `/embeddings`; with it, it is taken as well. */
export function openaiWire(url: string, model: string, dims: number | undefined): Wire {
  const base = url.replace(/\/+$/, "")
  return {
    url: base.endsWith("/embeddings") ? base : `${base}/embeddings`,
    body: (texts) => ({ model, input: texts, ...(dims !== undefined && { dimensions: dims }) }),
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
