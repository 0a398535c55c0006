import { DexError, isDexError, messageOf } from "../core/error.ts"
import { isNetError, type NetReply, pauseBeforeRetry, removeKey, retryAfterMs, send } from "../net/client.ts"

export type ModelServerRequest = {
  url: string
  /** If omitted, the request is a GET. */
  body?: object
  apiKey?: string
  signal?: AbortSignal
  timeoutMs?: number
  /** The kind of server, so that an error message can name the settings to check. Default: `embed`. */
  purpose?: "embed" | "rerank"
}

const TIMEOUT_MS = 60_000
const RETRY_MS = 500
const MAX_RETRY_MS = 30_000
/** Matches errors about a text that is too long, as OpenAI, Ollama, llama.cpp, vLLM and text-embeddings-inference word them. */
const TOO_LONG =
  /too (long|large)|(exceed|maximum|less than|limit).{0,60}(tokens|length|context)|(tokens|length|context).{0,60}(exceed|maximum|limit)/i
/** The maximum size of an answer, in bytes. 32 vectors of 4,096 numbers take 3 MB. */
const MAX_BYTES = 64 << 20

/**
 * Sends a request to a model server and returns its JSON answer. Retries once if the server is busy or failing (429, 5xx).
 * Every other failure is a DexError that says what to do. `embed_too_long` is the only one that a caller can handle.
 */
export async function askServer(request: ModelServerRequest): Promise<unknown> {
  const timeout = AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS)
  const signal = request.signal ? AbortSignal.any([timeout, request.signal]) : timeout
  try {
    let answer = await sendOnce(request, signal)
    if (answer.status === 429 || answer.status >= 500) {
      answer.discard()
      await pauseBeforeRetry(Math.min(retryAfterMs(answer.headers) ?? RETRY_MS, MAX_RETRY_MS), signal)
      answer = await sendOnce(request, signal)
    }
    const text = await answer.text()
    if (answer.status >= 300) throw refusalError(request, answer.status, text)
    return parse(text, request)
  } catch (error) {
    throw connectionError(error, request, timeout.aborted)
  }
}

function sendOnce({ url, body, apiKey }: ModelServerRequest, signal: AbortSignal): Promise<NetReply> {
  const content = body && JSON.stringify(body)
  const headers = { accept: "application/json", ...(content && { "content-type": "application/json" }) }
  return send({ url, headers, key: apiKey, body: content, maxBytes: MAX_BYTES, signal })
}

function parse(text: string, request: ModelServerRequest): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw wrongServerAnswer(request, "did not answer in JSON")
  }
}

export function wrongServerAnswer(
  { url, purpose = "embed" }: Pick<ModelServerRequest, "url" | "purpose">,
  problem: string,
): DexError {
  return new DexError(
    "embed_wrong_answer",
    `${serverName(url)} ${problem}. Check ${ADDRESS_SETTING[purpose]} and ${purpose}.model (\`dex config list\`).`,
  )
}

function refusalError({ url, apiKey, purpose = "embed" }: ModelServerRequest, status: number, text: string): DexError {
  const message = messageIn(text, apiKey)
  if (status === 401 || status === 403)
    return new DexError(
      "embed_refused",
      `${serverName(url)} refused the key (${status}${message}). \`dex config list\` shows where dex looked for a key.`,
    )
  if (status !== 429 && TOO_LONG.test(text))
    return new DexError("embed_too_long", `${serverName(url)} says that a text is too long (${status}${message}).`)
  if (status === 404)
    return new DexError(
      "embed_failed",
      `${serverName(url)} has no such address or model (404${message}). Check ${ADDRESS_SETTING[purpose]} and ${purpose}.model.`,
    )
  if (status < 400)
    return new DexError(
      "embed_failed",
      `${serverName(url)} redirects to another address (${status}). Set ${ADDRESS_SETTING[purpose]} to that address.`,
    )
  const afterRetry = status === 429 || status >= 500 ? ", even after a retry" : ""
  return new DexError(
    "embed_failed",
    `${serverName(url)} failed (${status}${message})${afterRetry}. Try again later, or look at the server's log.`,
  )
}

/** Returns the server's own message, shortened and without the key, which some servers repeat. */
function messageIn(text: string, apiKey: string | undefined): string {
  const message = /"(?:message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? ""
  const cleaned = removeKey(message, apiKey)
    .replace(/[^ -~]+|\\./g, " ")
    .slice(0, 160)
  return cleaned.trim() === "" ? "" : `: ${cleaned.trim()}`
}

const ADDRESS_SETTING = { embed: "embed.url", rerank: "search.rerank" }
const TURN_OFF_HINT = {
  embed: "turn vectors off: dex config set embed.provider none",
  rerank: "turn reranking off: dex config set search.rerank off",
}

function connectionError(
  error: unknown,
  { url, signal, purpose = "embed" }: ModelServerRequest,
  isTimedOut: boolean,
): Error {
  if (isDexError(error)) return error
  if (isNetError(error) && error.reason === "key_in_clear") return new DexError("embed_settings", error.message)
  if (isNetError(error) && error.reason === "size") return wrongServerAnswer({ url, purpose }, "sent more than 64 MB")
  if (signal?.aborted)
    return new DexError("embed_stopped", `${serverName(url)} did not answer in time.`, { cause: error })
  if (isTimedOut)
    return new DexError(
      "embed_timeout",
      `${serverName(url)} did not answer in time. Try again later, or look at the server's log.`,
      { cause: error },
    )
  const reason = isNetError(error) ? error.code : messageOf(error)
  const problem = reason === "ECONNREFUSED" ? "Nothing answers at" : "No connection to"
  return new DexError(
    "embed_unreachable",
    `${problem} ${serverName(url)} (${reason}). Start the server, fix ${ADDRESS_SETTING[purpose]}, or ${TURN_OFF_HINT[purpose]}`,
    { cause: error },
  )
}

function serverName(url: string): string {
  return new URL(url).origin
}
