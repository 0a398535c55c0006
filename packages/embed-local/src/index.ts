import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { loadRuntime, type Runtime, type RuntimeKind, runtimeKind, type Session } from "./runtime.ts"
import { createTokenizer } from "./wordpiece.ts"

/** A sentence model that runs in this process. Returns one vector of length 1 for each text, in the same order. */
export type LocalModel = {
  runtime: RuntimeKind
  embed(texts: string[]): Promise<Float32Array[]>
}

/**
 * The maximum number of tokens that are read from a text. The model was trained with texts of this length. Reading more would
 * take longer and hardly change the vector.
 */
const MOST_TOKENS = 128
/** The number of texts in a batch. Texts are sorted by length first, so the texts of a batch have about the same length. */
const BATCH = 8

const FILES = dirname(fileURLToPath(import.meta.url))
/** The folder that contains this package. If the user installed onnxruntime-node, this folder contains it too. */
const BESIDE = dirname(dirname(FILES))

export async function openModel({ threads }: { threads: number }): Promise<LocalModel> {
  const kind = runtimeKind(BESIDE)
  const runtime = await loadRuntime(kind, FILES, BESIDE, threads)
  const session = await runtime.InferenceSession.create(readFileSync(join(FILES, "model.onnx")), {
    intraOpNumThreads: threads,
    // The model was optimised when the package was built.
    graphOptimizationLevel: "disabled",
    logSeverityLevel: 3,
  })
  const tokenize = createTokenizer(readFileSync(join(FILES, "vocab.txt"), "utf8"))
  return {
    runtime: kind,
    embed: async (texts) => {
      const vectors: Float32Array[] = []
      const ordered = texts
        .map((text, place) => ({ place, tokens: tokenize(text, MOST_TOKENS) }))
        .sort((a, b) => a.tokens.length - b.tokens.length)
      for (let at = 0; at < ordered.length; at += BATCH) {
        const batch = ordered.slice(at, at + BATCH)
        const made = await embedBatch(
          runtime,
          session,
          batch.map(({ tokens }) => tokens),
        )
        for (const [i, { place }] of batch.entries()) vectors[place] = made[i]!
      }
      return vectors
    },
  }
}

async function embedBatch({ Tensor }: Runtime, session: Session, batch: number[][]): Promise<Float32Array[]> {
  const width = Math.max(...batch.map((tokens) => tokens.length))
  const shape = [batch.length, width]
  const of = (value: (tokens: number[], i: number) => number) =>
    new Tensor(
      "int64",
      BigInt64Array.from(batch.flatMap((tokens) => Array.from({ length: width }, (_, i) => BigInt(value(tokens, i))))),
      shape,
    )
  const { last_hidden_state } = await session.run({
    input_ids: of((tokens, i) => tokens[i] ?? 0),
    attention_mask: of((tokens, i) => Number(i < tokens.length)),
    token_type_ids: of(() => 0),
  })
  const { data, dims } = last_hidden_state!
  return batch.map((tokens, row) => meanOf(data, row * width, tokens.length, dims.at(-1)!))
}

/** Returns the mean of the vectors of a text's tokens, scaled to length 1. */
function meanOf(data: Float32Array, first: number, count: number, size: number): Float32Array {
  const sum = new Float32Array(size)
  for (let token = first; token < first + count; token++)
    for (let i = 0; i < size; i++) sum[i]! += data[token * size + i]!
  const length = Math.hypot(...sum)
  return sum.map((value) => value / length)
}
