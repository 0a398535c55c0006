import type { IncomingMessage } from "node:http"
import { DexError, isDexError, messageOf } from "../core/error.ts"

export type Request = {
  url: string
  /** Nothing means GET. */
  body?: object
  apiKey?: string
  signal?: AbortSignal
  timeoutMs?: number
  /** Whose settings name this server, to say what to check. Nothing means the embedder's. */
  of?: "embed" | "rerank"
}

const TIMEOUT_MS = 60_000
const RETRY_MS = 500
const LONGEST_RETRY_MS = 30_000
/** As OpenAI, Ollama, llama.cpp, vLLM and text-embeddings-inference put it. */
const TOO_LONG =
  /too (long|large)|(exceed|maximum|less than|limit).{0,60}(tokens|length|context)|(tokens|length|context).{0,60}(exceed|maximum|limit)/i
/** 32 vectors of 4,096 numbers are 3 MB. */
const MOST_BYTES = 64 << 20

/**
 * Asks a model server and returns the JSON it answers. One more try when it is busy or failing (429, 5xx). Every other
 * end is a DexError that says what to do; `embed_too_long` is the one that a caller can mend.
 */
export async function askServer(request: Request): Promise<unknown> {
  keepKeyPrivate(request)
  const timeUp = AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS)
  const signal = request.signal ? AbortSignal.any([timeUp, request.signal]) : timeUp
  try {
    let answer = await send(request, signal)
    if (answer.statusCode === 429 || answer.statusCode! >= 500) {
      answer.resume()
      await pause(retryAfter(answer), signal)
      answer = await send(request, signal)
    }
    const text = await readText(answer, request)
    if (answer.statusCode! >= 300) throw refused(request, answer.statusCode!, text)
    return parse(text, request)
  } catch (error) {
    throw explained(error, request, timeUp.aborted)
  }
}

/**
 * Not `fetch`: its first call takes a new process six times as long (113 to 260 ms against 17 to 36, measured side by
 * side), which a search's time box does not have. Redirects are not followed: another address was not agreed to.
 */
async function send({ url, body, apiKey }: Request, signal: AbortSignal): Promise<IncomingMessage> {
  const { request } = await (url.startsWith("https:") ? import("node:https") : import("node:http"))
  const content = body && JSON.stringify(body)
  const headers = {
    accept: "application/json",
    ...(content !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(content) }),
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
  }
  const once = () =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(url, { method: content === undefined ? "GET" : "POST", headers, signal }, resolve)
      sent.on("error", (error) => reject(Object.assign(error, { reused: sent.reusedSocket })))
      sent.end(content)
    })
  return once().catch((error: { code?: unknown; reused?: boolean }) => {
    // The server closed an idle connection at the moment it was used again.
    if (error.code === "ECONNRESET" && error.reused) return once()
    throw error
  })
}

function keepKeyPrivate({ url, apiKey }: Request): void {
  if (apiKey === undefined) return
  const { protocol, hostname } = new URL(url)
  if (protocol === "https:" || isThisMachine(hostname)) return
  throw new DexError(
    "embed_settings",
    `The key would travel to ${hostname} for everyone on the way to read. Use an https address, or a server without a key.`,
  )
}

export function isThisMachine(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\]|.*\.localhost)$/.test(hostname)
}

function retryAfter(answer: IncomingMessage): number {
  const seconds = Number(answer.headers["retry-after"] ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1000, LONGEST_RETRY_MS) : RETRY_MS
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop)
      resolve()
    }, ms)
    if (signal.aborted) stop()
    else signal.addEventListener("abort", stop, { once: true })
  })
}

async function readText(answer: IncomingMessage, request: Request): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MOST_BYTES) throw embedWrongAnswer(request, "sent more than 64 MB")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

function parse(text: string, request: Request): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw embedWrongAnswer(request, "did not answer in JSON")
  }
}

export function embedWrongAnswer({ url, of = "embed" }: Pick<Request, "url" | "of">, what: string): DexError {
  return new DexError(
    "embed_wrong_answer",
    `${placeOf(url)} ${what}. Check ${of}.url and ${of}.model (\`dex config list\`).`,
  )
}

function refused({ url, apiKey, of = "embed" }: Request, status: number, text: string): DexError {
  const said = saidBy(text, apiKey)
  if (status === 401 || status === 403)
    return new DexError(
      "embed_refused",
      `${placeOf(url)} refused the key (${status}${said}). \`dex config list\` says where dex looked for one.`,
    )
  if (status !== 429 && TOO_LONG.test(text))
    return new DexError("embed_too_long", `${placeOf(url)} says that a text is too long (${status}${said}).`)
  if (status === 404)
    return new DexError(
      "embed_failed",
      `${placeOf(url)} has no such address or model (404${said}). Check ${of}.url and ${of}.model.`,
    )
  if (status < 400)
    return new DexError("embed_failed", `${placeOf(url)} points to another address (${status}). Set ${of}.url to that.`)
  const again = status === 429 || status >= 500 ? ", and again when asked once more" : ""
  return new DexError(
    "embed_failed",
    `${placeOf(url)} failed (${status}${said})${again}. Try later, or look at its log.`,
  )
}

/** The server's own words, short, and without the key: some repeat it. */
function saidBy(text: string, apiKey: string | undefined): string {
  const found = /"(?:message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? ""
  const clean = (apiKey ? found.replaceAll(apiKey, "[key]") : found).replace(/[^ -~]+|\\./g, " ").slice(0, 160)
  return clean.trim() === "" ? "" : `: ${clean.trim()}`
}

const TURN_OFF = {
  embed: "turn vectors off: dex config set embed.provider none",
  rerank: "turn reranking off: dex config set search.rerank false",
}

function explained(error: unknown, { url, signal, of = "embed" }: Request, timedOut: boolean): Error {
  if (isDexError(error)) return error
  if (signal?.aborted) return new DexError("embed_stopped", `${placeOf(url)} did not answer in time.`, { cause: error })
  if (timedOut)
    return new DexError("embed_timeout", `${placeOf(url)} did not answer within a minute.`, { cause: error })
  const code = (error as { code?: unknown }).code
  const why = typeof code === "string" ? code : messageOf(error)
  const what = why === "ECONNREFUSED" ? "Nothing answers at" : "No connection to"
  return new DexError(
    "embed_unreachable",
    `${what} ${placeOf(url)} (${why}). Start the server, fix ${of}.url, or ${TURN_OFF[of]}`,
    { cause: error },
  )
}

function placeOf(url: string): string {
  return new URL(url).origin
}
