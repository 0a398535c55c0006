import { isDexError } from "../core/error.ts"
import type { Embedder } from "./embedder.ts"

export type EmbeddedQuery = { vector: Float32Array; ms: number } | { degraded: string; ms: number }

/**
 * Returns the vector of a query, or the reason why there is none within the time limit. Never rejects: without a vector, a
 * search continues and reports the reason.
 */
export async function embedQuery(embedder: Embedder, query: string, timeoutMs: number): Promise<EmbeddedQuery> {
  const startedAt = performance.now()
  const elapsedMs = () => Math.round(performance.now() - startedAt)
  const lateReason = embedder.id.startsWith("local:")
    ? `the local model did not answer within ${timeoutMs} ms: it is being loaded, or this machine is busy.`
    : `the embedding server did not answer within ${timeoutMs} ms (embed.timeout_ms)`
  const abort = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const timeUp = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), timeoutMs)
  })
  try {
    const answer = embedder.embed([query], { role: "query", signal: abort.signal })
    answer.catch(() => {}) // an error after the time limit is ignored
    const outcome = await Promise.race([answer, timeUp])
    return outcome === "late" ? { degraded: lateReason, ms: elapsedMs() } : { vector: outcome[0]!, ms: elapsedMs() }
  } catch (error) {
    return { degraded: isDexError(error) ? error.message : String(error), ms: elapsedMs() }
  } finally {
    clearTimeout(timer)
    abort.abort()
  }
}
