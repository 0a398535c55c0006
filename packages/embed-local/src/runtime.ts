import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

// The two runtimes that can run the model. Their vectors differ slightly (their cosine similarity is 0.997). The runtime is
// part of the embedder's id, so vectors of different runtimes are never compared.

export type RuntimeKind = "native" | "wasm"

type Tensor = { data: Float32Array; dims: readonly number[] }
export type Session = { run(inputs: Record<string, unknown>): Promise<Record<string, Tensor>> }
/** The parts of onnxruntime-web and onnxruntime-node that are used here. */
export type Runtime = {
  InferenceSession: { create(model: Uint8Array, options: object): Promise<Session> }
  Tensor: new (type: "int64", data: BigInt64Array, dims: number[]) => unknown
  env: { wasm: { numThreads?: number; wasmBinary?: Uint8Array } }
}

/** Returns the native runtime if it is installed next to this package, otherwise WebAssembly. */
export function runtimeKind(beside: string): RuntimeKind {
  return existsSync(join(beside, "onnxruntime-node", "package.json")) ? "native" : "wasm"
}

export async function loadRuntime(kind: RuntimeKind, files: string, beside: string, threads: number): Promise<Runtime> {
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
