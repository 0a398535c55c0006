import { isDexError } from "../core/error.ts"
import type { Embedder, EmbedRole } from "./embedder.ts"
import { type Family, preparedText } from "./families.ts"
import { askServer, embedWrongAnswer } from "./post.ts"
import { probeEmbedder } from "./probe.ts"

/** How one kind of server is asked, and what its answer says. */
export type Wire = {
  url: string
  body(texts: string[]): object
  /** The vectors as they came, one for each text in the same order; undefined when the answer has another shape. */
  vectors(answer: unknown): unknown[] | undefined
}

type Remote = { wire: Wire; id: string; dims: number; family: Family; apiKey?: string }

/** Servers on a laptop take 32 texts at once without trouble; more is hardly faster. */
const BATCH = 32
const SHORTEST = 64

export function remoteEmbedder({ wire, id, dims, family, apiKey }: Remote): Embedder {
  const ask = (texts: string[], signal?: AbortSignal) => askForVectors(wire, texts, { dims, apiKey, signal })
  const embed = async (texts: string[], { role, signal }: { role: EmbedRole; signal?: AbortSignal }) => {
    const vectors: Float32Array[] = []
    for (let at = 0; at < texts.length; at += BATCH) {
      const batch = texts.slice(at, at + BATCH).map((text) => preparedText(text, role, family))
      vectors.push(...(await ask(batch, signal)))
    }
    return vectors
  }
  return {
    id,
    dims,
    maxTokens: family.maxTokens,
    normalized: true,
    embed,
    probe: (golden, signal) => probeEmbedder({ id, embed }, golden, signal),
  }
}

type Ask = { dims?: number; apiKey?: string; signal?: AbortSignal }

/** A text that the server finds too long is found by halves, and cut by halves: one such text must not stop the others. */
export async function askForVectors(wire: Wire, texts: string[], { dims, ...how }: Ask): Promise<Float32Array[]> {
  try {
    const answer = await askServer({ url: wire.url, body: wire.body(texts), ...how })
    const vectors = wire.vectors(answer)
    if (!vectors) throw embedWrongAnswer(wire, "answered in another format than expected")
    if (vectors.length !== texts.length)
      throw embedWrongAnswer(wire, `sent ${vectors.length} vectors for ${texts.length} texts`)
    return vectors.map((vector) => readVector(wire, vector, dims))
  } catch (error) {
    if (!isDexError(error) || error.code !== "embed_too_long") throw error
    const [only] = texts
    if (texts.length === 1 && only!.length < SHORTEST) throw error
    const again = (part: string[]) => askForVectors(wire, part, { dims, ...how })
    if (texts.length === 1) return again([only!.slice(0, only!.length / 2).toWellFormed()])
    const half = Math.ceil(texts.length / 2)
    return [...(await again(texts.slice(0, half))), ...(await again(texts.slice(half)))]
  }
}

function readVector(wire: Wire, value: unknown, dims: number | undefined): Float32Array {
  if (!Array.isArray(value) || value.length === 0) throw embedWrongAnswer(wire, "sent something that is not a vector")
  if (dims !== undefined && value.length !== dims)
    throw embedWrongAnswer(wire, `sent a vector of ${value.length} numbers instead of ${dims}`)
  let square = 0
  for (const number of value as unknown[]) {
    if (typeof number !== "number")
      throw embedWrongAnswer(wire, "sent a vector with something in it that is not a number")
    square += number * number
  }
  if (!(square > 0 && square < Number.POSITIVE_INFINITY))
    throw embedWrongAnswer(wire, "sent a vector without a direction")
  const length = Math.sqrt(square)
  return Float32Array.from(value as number[], (number) => number / length)
}
