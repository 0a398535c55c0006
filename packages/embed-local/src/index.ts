import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { loadRuntime, type Runtime, type RuntimeKind, runtimeKind, type Session } from "./runtime.ts"
import { createTokenizer } from "./wordpiece.ts"

/** A sentence model that runs in this process. It returns one vector of length 1 for each text, in the same order. */
export type LocalModel = {
  runtime: RuntimeKind
  embed(texts: string[]): Promise<Float32Array[]>
}

/** The limit that the model was trained with. More of a text changes its vector little and costs time. */
const MOST_TOKENS = 128
/** Texts per batch. They have about the same length. */
const BATCH = 8

const FILES = dirname(fileURLToPath(import.meta.url))
/** The folder in which this package is installed, and optionally onnxruntime-node. */
const BESIDE = dirname(dirname(FILES))

export async function openModel({ threads }: { threads: number }): Promise<LocalModel> {
  const kind = runtimeKind(BESIDE)
  const runtime = await loadRuntime(kind, FILES, BESIDE, threads)
  const session = await runtime.InferenceSession.create(readFileSync(join(FILES, "model.onnx")), {
    intraOpNumThreads: threads,
    // It was optimised when the package was made.
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

/** The mean of a text's tokens, with length 1. */
function meanOf(data: Float32Array, first: number, count: number, size: number): Float32Array {
  const sum = new Float32Array(size)
  for (let token = first; token < first + count; token++)
    for (let i = 0; i < size; i++) sum[i]! += data[token * size + i]!
  const length = Math.hypot(...sum)
  return sum.map((value) => value / length)
}

// Two programs run the same model. Their vectors differ a little (the cosine of the two is 0.997) and are never compared
// with each other, so the runtime is part of the model's name.

type RuntimeKind = "native" | "wasm"

type Tensor = { data: Float32Array; dims: readonly number[] }
export type Session = { run(inputs: Record<string, unknown>): Promise<Record<string, Tensor>> }
/** The parts of onnxruntime-web and onnxruntime-node that are used here, which are the same in both. */
export type Runtime = {
  InferenceSession: { create(model: Uint8Array, options: object): Promise<Session> }
  Tensor: new (type: "int64", data: BigInt64Array, dims: number[]) => unknown
  env: { wasm: { numThreads?: number; wasmBinary?: Uint8Array } }
}

/** Native if onnxruntime-node is installed next to this package, otherwise WebAssembly. */
function runtimeKind(beside: string): RuntimeKind {
  return existsSync(join(beside, "onnxruntime-node", "package.json")) ? "native" : "wasm"
}

async function loadRuntime(kind: RuntimeKind, files: string, beside: string, threads: number): Promise<Runtime> {
  if (kind === "native") return nativeRuntime(beside)
  const runtime = (await import(pathToFileURL(join(files, "ort.mjs")).href)) as Runtime
  runtime.env.wasm.numThreads = threads
  runtime.env.wasm.wasmBinary = readFileSync(join(files, "ort-wasm-simd-threaded.wasm"))
  return runtime
}

function nativeRuntime(beside: string): Runtime {
  try {
    return createRequire(join(beside, "index.js"))("onnxruntime-node") as Runtime
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).split("\n")[0]
    throw new Error(`onnxruntime-node in ${beside} does not start (${reason}). Uninstall it there to use WebAssembly.`)
  }
}

/** Turns a text into token numbers for an uncased BERT model: at most `most`, including the first and last one. */
type Tokenizer = (text: string, most: number) => number[]

/** No BERT model knows words longer than this. */
const LONGEST_WORD = 100

/** `vocabulary` has one token per line, in the order of their numbers. */
export function createTokenizer(vocabulary: string): Tokenizer {
  const numbers = new Map(
    vocabulary
      .trimEnd()
      .split("\n")
      .map((token, number) => [token, number]),
  )
  const special = (name: string) => {
    const number = numbers.get(name)
    if (number === undefined) throw new Error(`The vocabulary has no ${name}`)
    return number
  }
  const [first, last, unknown] = [special("[CLS]"), special("[SEP]"), special("[UNK]")]
  return (text, most) => {
    const tokens = [first]
    for (const word of wordsOf(text)) {
      if (tokens.length >= most - 1) break
      tokens.push(...(piecesOf(word, numbers) ?? [unknown]))
    }
    return [...tokens.slice(0, most - 1), last]
  }
}

/** The longest known beginning, then the longest known continuation, and so on; undefined if a letter is unknown. */
function piecesOf(word: string, numbers: Map<string, number>): number[] | undefined {
  const letters = [...word]
  if (letters.length > LONGEST_WORD) return undefined
  const pieces: number[] = []
  let start = 0
  while (start < letters.length) {
    let end = letters.length
    let found: number | undefined
    for (; end > start && found === undefined; end--)
      found = numbers.get((start > 0 ? "##" : "") + letters.slice(start, end).join(""))
    if (found === undefined) return undefined
    pieces.push(found)
    start = end + 1
  }
  return pieces
}

const IGNORED = /[\0\ufffd]|(?![\t\n\r])\p{C}/gu
const MARKS = /\p{Mn}/gu
/** Chinese characters and BERT's punctuation, which includes $, +, <, =, >, ^, `, | and ~. Each is a word of its own. */
const ALONE =
  /[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}]|[!-/:-@[-`{-~]|\p{P}/gu

/** The words in lower case and without accents. */
function* wordsOf(text: string): Generator<string> {
  const clean = text.replace(IGNORED, "").toLowerCase().normalize("NFD").replace(MARKS, "").replace(ALONE, " $& ")
  for (const [word] of clean.matchAll(/\S+/g)) yield word
}
