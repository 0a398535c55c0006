import { connect } from "node:net"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { DexError, messageOf } from "../core/error.ts"
import { subprocessFile } from "../subprocess/link.ts"
import { startDetached } from "../subprocess/process.ts"
import type { EmbedRole } from "./embedder.ts"
import type { LocalPackage } from "./local-package.ts"
import { helperPaths } from "./local-package.ts"

/** A request, sent as one line of JSON. Without texts, it requests the id and the memory use of the process. */
export type HelperRequest = { texts?: string[] }
/** An answer, sent as one line of JSON. Each vector is an array of 32-bit floats, encoded in base64. */
export type HelperAnswer = { vectors: string[] } | { pid: number; bytes: number } | { error: string }

export type Helper = { dexDir: string; local: LocalPackage; role: EmbedRole }

const RETRY_MS = 50
const START_TIMEOUT_MS = 30_000
const REINSTALL_HINT = "Install the model again: dex config set embed.provider local"

/**
 * Gets the vectors of texts from the process that has loaded the model, and starts that process if it is not running. For
 * documents, this function waits until the process answers. For a search, it throws immediately, so that the search continues
 * without vectors; the next search will find the process running.
 */
export async function askHelper(helper: Helper, texts: string[], signal?: AbortSignal): Promise<Float32Array[]> {
  const answer = (await sendRequest(helper, { texts }, signal)) ?? (await startAndSend(helper, texts, signal))
  if ("error" in answer) throw new DexError("embed_failed", `The local model does not work: ${answer.error}`)
  if (!("vectors" in answer) || answer.vectors.length !== texts.length) throw wrongVectorError()
  return answer.vectors.map((vector) => readVector(vector, helper.local.dims))
}

/**
 * Returns the id and memory use of the process that has loaded the model, or undefined if none is running. Never starts one.
 */
export async function helperState(
  helper: Helper,
  signal?: AbortSignal,
): Promise<{ pid: number; bytes: number } | undefined> {
  const answer = await sendRequest(helper, {}, signal)
  return answer && "pid" in answer ? answer : undefined
}

async function startAndSend(helper: Helper, texts: string[], signal?: AbortSignal): Promise<HelperAnswer> {
  const helperStart = startHelper(helper)
  if (helper.role === "query")
    throw new DexError(
      "embed_starting",
      "The local model is being loaded, so this search used words only. The next search will use it.",
    )
  const deadline = Date.now() + START_TIMEOUT_MS
  while (Date.now() < deadline) {
    await pause(RETRY_MS, undefined, signal ? { signal } : {}).catch(() => {})
    const answer = await sendRequest(helper, { texts }, signal)
    if (answer) return answer
    if (helperStart.failure) break
  }
  const reason = helperStart.failure ?? `it did not answer within ${START_TIMEOUT_MS / 1000} seconds`
  throw new DexError(
    "embed_unreachable",
    `The process for the local model could not be started: ${reason}. ${REINSTALL_HINT}`,
  )
}

/** Sends a request to the process. Resolves to undefined if no process is listening, or if it ended before it answered. */
function sendRequest(
  { dexDir, local, role }: Helper,
  request: HelperRequest,
  signal?: AbortSignal,
): Promise<HelperAnswer | undefined> {
  const { socket } = helperPaths(dexDir, local, role)
  return new Promise((resolve, reject) => {
    const stoppedError = () => new DexError("embed_stopped", "Embedding was stopped.")
    if (signal?.aborted) return reject(stoppedError())
    const client = connect(socket)
    const onAbort = () => client.destroy(stoppedError())
    signal?.addEventListener("abort", onAbort)
    let text = ""
    client.on("connect", () => client.write(`${JSON.stringify(request)}\n`))
    client.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      if (!text.endsWith("\n")) return
      client.destroy()
      resolve(parseAnswer(text))
    })
    client.on("error", (error) => (error instanceof DexError ? reject(error) : undefined))
    client.on("close", () => {
      signal?.removeEventListener("abort", onAbort)
      resolve(undefined)
    })
  })
}

function parseAnswer(text: string): HelperAnswer {
  try {
    return JSON.parse(text) as HelperAnswer
  } catch (error) {
    return { error: messageOf(error) }
  }
}

/**
 * Starts the process detached, because other callers will use it too. If one is already running, the new one ends immediately.
 */
function startHelper({ dexDir, role }: Helper): { failure?: string } {
  const helperStart: { failure?: string } = {}
  const file = fileURLToPath(subprocessFile("./helper-process.ts", import.meta.url))
  startDetached([file, dexDir, role], { cwd: dexDir, onEnd: (problem) => (helperStart.failure = problem) })
  return helperStart
}

function readVector(text: string, dims: number): Float32Array {
  const bytes = new Uint8Array(Buffer.from(text, "base64"))
  if (bytes.length !== dims * 4) throw wrongVectorError()
  const vector = new Float32Array(bytes.buffer)
  if (!vector.every(Number.isFinite)) throw wrongVectorError()
  return vector
}

function wrongVectorError(): DexError {
  return new DexError(
    "embed_wrong_answer",
    `The local model returned something that is not a vector of the right size. ${REINSTALL_HINT}`,
  )
}
