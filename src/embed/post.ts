import { DexError, isDexError, messageOf } from "../core/error.ts"
import { isNetError, type NetReply, pauseBeforeRetry, removeKey, retryAfterMs, send } from "../net/client.ts"

export type ModelServerRequest = {
  url: string
  /** If omitted, the request is a GET. */
  body?: object
  apiKey?: string
  signal?: AbortSignal
  timeoutMs?: number
  /** Whose settings name this server, so that errors can say what to check. Default: the embedder's. */
  of?: "embed" | "rerank"
}

const TIMEOUT_MS = 60_000
const RETRY_MS = 500
const MAX_RETRY_MS = 30_000
/** Matches the wording of OpenAI, Ollama, llama.cpp, vLLM and text-embeddings-inference for a text that is too long. */
const TOO_LONG =
  /too (long|large)|(exceed|maximum|less than|limit).{0,60}(tokens|length|context)|(tokens|length|context).{0,60}(exceed|maximum|limit)/i
/** The most bytes of an answer. 32 vectors of 4,096 numbers have 3 MB. */
const MAX_BYTES = 64 << 20

/**
 * Sends a request to a model server and returns its JSON answer. Retries once if the server is busy or failing (429, 5xx). Every
 * other failure is a DexError that says what to do; a caller can handle only `embed_too_long`.
 */
export async function askServer(request: ModelServerRequest): Promise<unknown> {
  const timeUp = AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS)
  const signal = request.signal ? AbortSignal.any([timeUp, request.signal]) : timeUp
  try {
    let answer = await ask(request, signal)
    if (answer.status === 429 || answer.status >= 500) {
      answer.discard()
      await pauseBeforeRetry(Math.min(retryAfterMs(answer.headers) ?? RETRY_MS, MAX_RETRY_MS), signal)
      answer = await ask(request, signal)
    }
    const text = await answer.text()
    if (answer.status >= 300) throw refusalError(request, answer.status, text)
    return parse(text, request)
  } catch (error) {
    throw connectionError(error, request, timeUp.aborted)
  }
}

function ask({ url, body, apiKey }: ModelServerRequest, signal: AbortSignal): Promise<NetReply> {
  const content = body && JSON.stringify(body)
  const headers = { accept: "application/json", ...(content && { "content-type": "application/json" }) }
  return send({ url, headers, key: apiKey, body: content, mostBytes: MAX_BYTES, signal })
}

function parse(text: string, request: ModelServerRequest): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw wrongAnswerFromEmbedder(request, "did not answer in JSON")
  }
}

export function wrongAnswerFromEmbedder(
  { url, of = "embed" }: Pick<ModelServerRequest, "url" | "of">,
  what: string,
): DexError {
  return new DexError(
    "embed_wrong_answer",
    `${placeOf(url)} ${what}. Check ${ADDRESS_SETTING[of]} and ${of}.model (\`dex config list\`).`,
  )
}

function refusalError({ url, apiKey, of = "embed" }: ModelServerRequest, status: number, text: string): DexError {
  const message = messageIn(text, apiKey)
  if (status === 401 || status === 403)
    return new DexError(
      "embed_refused",
      `${placeOf(url)} refused the key (${status}${message}). \`dex config list\` says where dex looked for one.`,
    )
  if (status !== 429 && TOO_LONG.test(text))
    return new DexError("embed_too_long", `${placeOf(url)} says that a text is too long (${status}${message}).`)
  if (status === 404)
    return new DexError(
      "embed_failed",
      `${placeOf(url)} has no such address or model (404${message}). Check ${ADDRESS_SETTING[of]} and ${of}.model.`,
    )
  if (status < 400)
    return new DexError(
      "embed_failed",
      `${placeOf(url)} points to another address (${status}). Set ${ADDRESS_SETTING[of]} to that.`,
    )
  const again = status === 429 || status >= 500 ? ", also after a retry" : ""
  return new DexError(
    "embed_failed",
    `${placeOf(url)} failed (${status}${message})${again}. Try again later, or look at the server's log.`,
  )
}

/** The server's own message, shortened and without the key, which some servers repeat. */
function messageIn(text: string, apiKey: string | undefined): string {
  const found = /"(?:message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? ""
  const clean = removeKey(found, apiKey)
    .replace(/[^ -~]+|\\./g, " ")
    .slice(0, 160)
  return clean.trim() === "" ? "" : `: ${clean.trim()}`
}

const ADDRESS_SETTING = { embed: "embed.url", rerank: "search.rerank" }
const TURN_OFF = {
  embed: "turn vectors off: dex config set embed.provider none",
  rerank: "turn reranking off: dex config set search.rerank off",
}

function connectionError(error: unknown, { url, signal, of = "embed" }: ModelServerRequest, timedOut: boolean): Error {
  if (isDexError(error)) return error
  if (isNetError(error) && error.reason === "key_in_clear") return new DexError("embed_settings", error.message)
  if (isNetError(error) && error.reason === "size") return wrongAnswerFromEmbedder({ url, of }, "sent more than 64 MB")
  if (signal?.aborted) return new DexError("embed_stopped", `${placeOf(url)} did not answer in time.`, { cause: error })
  if (timedOut)
    return new DexError("embed_timeout", `${placeOf(url)} did not answer within a minute.`, { cause: error })
  const why = isNetError(error) ? error.code : messageOf(error)
  const what = why === "ECONNREFUSED" ? "Nothing answers at" : "No connection to"
  return new DexError(
    "embed_unreachable",
    `${what} ${placeOf(url)} (${why}). Start the server, fix ${ADDRESS_SETTING[of]}, or ${TURN_OFF[of]}`,
    { cause: error },
  )
}

function placeOf(url: string): string {
  return new URL(url).origin
}
