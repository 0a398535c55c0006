import { isDexError } from "../core/error.ts"
import { type Embedder, type EmbedderProbe, GOLDEN_TEXT } from "./embedder.ts"

/**
 * The minimum similarity of two vectors of the same text from the same model. On another machine or in another batch, only the
 * last digits differ.
 */
const MIN_SAME_SIMILARITY = 0.98

/** Embeds the golden text and compares its vector with the stored one. */
export async function probeEmbedder(
  { id, embed }: Pick<Embedder, "id" | "embed">,
  golden?: Float32Array,
  signal?: AbortSignal,
): Promise<EmbedderProbe> {
  const startedAt = performance.now()
  const elapsedMs = () => Math.round(performance.now() - startedAt)
  try {
    const [vector] = await embed([GOLDEN_TEXT], { role: "document", signal })
    if (golden && !areNearlyEqual(vector!, golden))
      return {
        ok: false,
        changed: true,
        reason: `The model behind ${id} has changed since the vectors were created. To recreate them: dex doctor reindex --vectors`,
        ms: elapsedMs(),
        vector: vector!,
      }
    return { ok: true, ms: elapsedMs(), vector: vector! }
  } catch (error) {
    if (!isDexError(error)) throw error
    return { ok: false, reason: error.message, ms: elapsedMs() }
  }
}

/** Returns true if the two vectors are nearly the same. Both must have length 1. */
function areNearlyEqual(a: Float32Array, b: Float32Array): boolean {
  return a.length === b.length && a.reduce((sum, value, i) => sum + value * b[i]!, 0) >= MIN_SAME_SIMILARITY
}
