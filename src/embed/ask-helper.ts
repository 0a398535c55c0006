import { connect } from "node:net"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { DexError, messageOf } from "../core/error.ts"
import { subprocessFile } from "../subprocess/link.ts"
import { startDetached } from "../subprocess/process.ts"
import type { EmbedRole } from "./embedder.ts"
import type { LocalPackage } from "./local-package.ts"
import { helperPlace } from "./local-package.ts"

/** A line of JSON. Without texts, it requests the process's id and memory. */
export type HelperRequest = { texts?: string[] }
/** A vector is encoded as base64 of 32-bit numbers. */
export type HelperAnswer = { vectors: string[] } | { pid: number; bytes: number } | { error: string }

export type Helper = { dexDir: string; local: LocalPackage; role: EmbedRole }

const RETRY_MS = 50
const START_TIMEOUT_MS = 30_000

/**
 * Gets the vectors of these texts from the process that has loaded the model, which is started if it is not running. For
 * documents this waits until the process runs; a search gets an error immediately and continues without vectors, and the next
 * search finds it running.
 */
export async function askHelper(helper: Helper, texts: string[], signal?: AbortSignal): Promise<Float32Array[]> {
  const answer = (await sendRequest(helper, { texts }, signal)) ?? (await startAndSend(helper, texts, signal))
  if ("error" in answer) throw new DexError("embed_failed", `The local model does not work: ${answer.error}`)
  if (!("vectors" in answer) || answer.vectors.length !== texts.length) throw wrongVectorError()
  return answer.vectors.map((vector) => readVector(vector, helper.local.dims))
}

/** The id and memory of the process that has loaded the model; undefined if none is running. Starts nothing. */
export async function helperState(
  helper: Helper,
  signal?: AbortSignal,
): Promise<{ pid: number; bytes: number } | undefined> {
  const answer = await sendRequest(helper, {}, signal)
  return answer && "pid" in answer ? answer : undefined
}

async function startAndSend(helper: Helper, texts: string[], signal?: AbortSignal): Promise<HelperAnswer> {
  const started = start(helper)
  if (helper.role === "query")
    throw new DexError(
      "embed_starting",
      "The local model is being loaded, so this search used words only. The next one uses it.",
    )
  const deadline = Date.now() + START_TIMEOUT_MS
  while (Date.now() < deadline) {
    await pause(RETRY_MS, undefined, signal ? { signal } : {}).catch(() => {})
    const answer = await sendRequest(helper, { texts }, signal)
    if (answer) return answer
    if (started.failure) break
  }
  const why = started.failure ?? `it did not answer within ${START_TIMEOUT_MS / 1000} seconds`
  throw new DexError(
    "embed_unreachable",
    `The process for the local model could not be started: ${why}. Install the model again: dex config set embed.provider local`,
  )
}

/** Sends a request to the process. Undefined if no process is listening, or if it ended before it answered. */
function sendRequest(
  { dexDir, local, role }: Helper,
  request: HelperRequest,
  signal?: AbortSignal,
): Promise<HelperAnswer | undefined> {
  const { socket } = helperPlace(dexDir, local, role)
  return new Promise((resolve, reject) => {
    const stopped = () => new DexError("embed_stopped", "Embedding was stopped.")
    if (signal?.aborted) return reject(stopped())
    const client = connect(socket)
    const stop = () => client.destroy(stopped())
    signal?.addEventListener("abort", stop)
    let text = ""
    client.on("connect", () => client.write(`${JSON.stringify(request)}\n`))
    client.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      if (!text.endsWith("\n")) return
      client.destroy()
      resolve(parsed(text))
    })
    client.on("error", (error) => (error instanceof DexError ? reject(error) : undefined))
    client.on("close", () => {
      signal?.removeEventListener("abort", stop)
      resolve(undefined)
    })
  })
}

function parsed(text: string): HelperAnswer {
  try {
    return JSON.parse(text) as HelperAnswer
  } catch (error) {
    return { error: messageOf(error) }
  }
}

/**
 * Starts the process detached, because other callers will use it too. If another one is already running, the new one ends
 * immediately.
 */
function start({ dexDir, role }: Helper): { failure?: string } {
  const started: { failure?: string } = {}
  const file = fileURLToPath(subprocessFile("./helper-process.ts", import.meta.url))
  startDetached([file, dexDir, role], { cwd: dexDir, onEnd: (problem) => (started.failure = problem) })
  return started
}

function readVector(text: string, dims: number): Float32Array {
  const bytes = new Uint8Array(Buffer.from(text, "base64"))
  if (bytes.length !== dims * 4) throw wrongVectorError()
  const vector = new Float32Array(bytes.buffer)
  if (!vector.every(Number.isFinite)) throw wrongVectorError()
  return vector
}

function wrongVectorError(): DexError {
  return new DexError("embed_wrong_answer", "The local model returned something that is not a vector of the right size")
}
