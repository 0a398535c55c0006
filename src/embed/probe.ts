import { isDexError } from "../core/error.ts"
import { type Embedder, type EmbedderProbe, GOLDEN_TEXT } from "./embedder.ts"

/** The same model on another machine or in another batch differs in the last digits, never by this much. */
const SAME_MODEL = 0.98

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
    if (golden && !isSame(vector!, golden))
      return {
        ok: false,
        changed: true,
        reason: `The model behind ${id} has changed since the vectors were made. Make them again: dex doctor reindex --vectors`,
        ms: ms(),
        vector: vector!,
      }
    return { ok: true, ms: ms(), vector: vector! }
  } catch (error) {
    if (!isDexError(error)) throw error
    return { ok: false, reason: error.message, ms: ms() }
  }
}

/** Both have length 1. */
function isSame(a: Float32Array, b: Float32Array): boolean {
  return a.length === b.length && a.reduce((sum, value, i) => sum + value * b[i]!, 0) >= SAME_MODEL
}
