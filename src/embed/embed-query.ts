import { isDexError } from "../core/error.ts"
import type { Embedder } from "./embedder.ts"

export type EmbeddedQuery = { vector: Float32Array; ms: number } | { degraded: string; ms: number }

/**
 * The vector of a query within the time limit, or the reason why there is none. Never rejects: a search without a vector
 * continues, and says so.
 */
export async function embedQuery(embedder: Embedder, query: string, timeoutMs: number): Promise<EmbeddedQuery> {
  const started = performance.now()
  const ms = () => Math.round(performance.now() - started)
  const late = embedder.id.startsWith("local:")
    ? `the local model did not answer within ${timeoutMs} ms: it is being loaded, or this machine is busy.`
    : `the embedding server did not answer within ${timeoutMs} ms (embed.timeout_ms)`
  const stop = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const timeUp = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), timeoutMs)
  })
  try {
    const answer = embedder.embed([query], { role: "query", signal: stop.signal })
    answer.catch(() => {}) // nobody handles an error after the time limit
    const first = await Promise.race([answer, timeUp])
    return first === "late" ? { degraded: late, ms: ms() } : { vector: first[0]!, ms: ms() }
  } catch (error) {
    return { degraded: isDexError(error) ? error.message : String(error), ms: ms() }
  } finally {
    clearTimeout(timer)
    stop.abort()
  }
}
