import { isDexError } from "../core/error.ts"
import { type Embedder, type EmbedderProbe, GOLDEN_TEXT } from "./embedder.ts"

/**
 * The lowest similarity of two answers of the same model. On another machine or in another batch, only the last digits differ.
 */
const MIN_SAME_SIMILARITY = 0.98

/** Embeds the golden text, and compares the answer with the stored one. */
export async function probeEmbedder(
  { id, embed }: Pick<Embedder, "id" | "embed">,
  golden?: Float32Array,
  signal?: AbortSignal,
): Promise<EmbedderProbe> {
  const started = performance.now()
  const ms = () => Math.round(performance.now() - started)
  try {
    const [vector] = await embed([GOLDEN_TEXT], { role: "document", signal })
    if (golden && !isSameModel(vector!, golden))
      return {
        ok: false,
        changed: true,
        reason: `The model behind ${id} has changed since the vectors were created. To recreate them: dex doctor reindex --vectors`,
        ms: ms(),
        vector: vector!,
      }
    return { ok: true, ms: ms(), vector: vector! }
  } catch (error) {
    if (!isDexError(error)) throw error
    return { ok: false, reason: error.message, ms: ms() }
  }
}

/** True if the vectors, both of length 1, are nearly the same. */
function isSameModel(a: Float32Array, b: Float32Array): boolean {
  return a.length === b.length && a.reduce((sum, value, i) => sum + value * b[i]!, 0) >= MIN_SAME_SIMILARITY
}
