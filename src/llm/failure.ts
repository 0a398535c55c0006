import type { IncomingHttpHeaders } from "node:http"
import { DexError } from "../core/error.ts"
import { removeKey } from "../net/client.ts"
import type { LlmSettings } from "./model.ts"

/** The longest pause before a retry, in milliseconds. If a server requests a longer one, dex gives up. */
export const MAX_WAIT_MS = 30_000
/**
 * The maximum time without data from a server, in milliseconds. A local model may read a long prompt for minutes before its
 * first word.
 */
export const SILENCE_MS = 600_000

export type Failure = {
  retry: boolean
  /** The answer's headers, which may say when to retry. */
  headers?: IncomingHttpHeaders
  /** Returns the error to throw if dex gives up after this many retries. It would have to wait `waitMs` before the next one. */
  error(retries: number, waitMs: number): DexError
}

type ModelServer = Pick<LlmSettings, "provider" | "apiKey" | "model">

const LOST_CONNECTION = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "ECONNABORTED"])
/** Matches errors about a prompt that is too long, as OpenAI, Ollama, llama.cpp and vLLM word them. */
const PROMPT_TOO_LONG =
  /(exceed|maximum|too (long|large|many)|limit).{0,60}(tokens|context|prompt|length)|(tokens|context|prompt|length).{0,60}(exceed|maximum|limit|too (long|large))/i
const MODEL_NOT_FOUND =
  /model.{0,80}(not (valid|found|exist|available)|does not exist|is invalid)|(no such|invalid|unknown|not a valid) model/i

/** Returns the failure for a connection that broke or could not be opened. `code` is Node's error code. */
export function connectionFailure(code: string, server: ModelServer): Failure {
  const place = placeOf(server)
  const isLost = LOST_CONNECTION.has(code)
  const problem = code === "ECONNREFUSED" ? "Nothing answers at" : "No connection to"
  const lostMessage = (retries: number) =>
    `The connection to ${place} broke (${code})${retriesText(retries)}. Try again, or look at the server's log.`
  const unreachableMessage = `${problem} ${place} (${safeText(code, server)}). Start the server, or fix llm.provider.`
  return {
    retry: isLost,
    error: (retries) => new DexError("llm_unreachable", isLost ? lostMessage(retries) : unreachableMessage),
  }
}

/** Returns the failure for an HTTP status, or for an error inside a stream that has such a status as its code. */
export function refusalFailure(
  status: number,
  serverMessage: string,
  server: ModelServer,
  headers?: IncomingHttpHeaders,
): Failure {
  const place = placeOf(server)
  const detail = safeText(serverMessage, server)
  const reason = `(${status}${detail === "" ? "" : `: ${detail}`})`
  if (status === 401 || status === 403)
    return finalFailure(
      new DexError("llm_refused", `${place} refused the key ${reason}. Set another one: dex config set llm.api_key`),
    )
  if (status === 402 || (status === 429 && /insufficient_quota|exceeded your current quota/i.test(serverMessage)))
    return finalFailure(new DexError("llm_no_credit", `${place} requires payment ${reason}. Check your account there.`))
  if (status === 429 || status >= 500)
    return {
      retry: true,
      headers,
      error: (retries, waitMs) => {
        const advice =
          waitMs > MAX_WAIT_MS
            ? `Try again in ${durationText(waitMs)}.`
            : "Try again later, or choose another model: dex config set llm.model …"
        const problem = status === 429 ? "received too many requests" : "failed"
        return new DexError(
          status === 429 ? "llm_busy" : "llm_failed",
          `${place} ${problem} ${reason}${retriesText(retries)}. ${advice}`,
        )
      },
    }
  if (status < 400)
    return finalFailure(
      new DexError(
        "llm_failed",
        `${place} redirects to another address ${reason}. Set llm.provider to that address, if you trust it.`,
      ),
    )
  if (PROMPT_TOO_LONG.test(serverMessage))
    return finalFailure(
      new DexError(
        "llm_too_long",
        `${place} says that the prompt is too long for the model ${reason}. Choose a model with a larger context: dex config set llm.model …`,
      ),
    )
  if (status === 404 || MODEL_NOT_FOUND.test(serverMessage))
    return finalFailure(
      new DexError(
        "llm_no_model",
        `${place} has no model ${server.model}, or the path in llm.provider is wrong ${reason}. Check llm.model, and llm.provider, which usually ends in /v1.`,
      ),
    )
  return finalFailure(new DexError("llm_failed", `${place} did not accept the request ${reason}. Check llm.model.`))
}

/** Returns the failure for an error that the server reports in the middle of a stream. */
export function streamFailure(error: unknown, server: ModelServer): Failure {
  const { message, code, type } = (error ?? {}) as Record<string, unknown>
  const serverMessage = typeof message === "string" ? message : typeof error === "string" ? error : ""
  const status = Number(code)
  if (Number.isInteger(status) && status >= 400 && status < 600)
    return refusalFailure(status, `${serverMessage} ${type ?? ""}`, server)
  const isRateLimit = /rate.?limit/i.test(`${code} ${type}`)
  if (isRateLimit || /server_error|overloaded|timeout|unavailable/i.test(`${code} ${type}`))
    return refusalFailure(isRateLimit ? 429 : 500, serverMessage, server)
  const detail = safeText(serverMessage, server)
  return finalFailure(
    new DexError(
      "llm_failed",
      `${placeOf(server)} stopped in the middle of its answer${detail && ` (${detail})`}. Try again.`,
    ),
  )
}

/** Returns the failure for a stream that ended before the reply was complete. */
export function incompleteFailure(server: ModelServer): Failure {
  return {
    retry: true,
    error: (retries) =>
      new DexError(
        "llm_failed",
        `${placeOf(server)} ended the connection in the middle of its answer${retriesText(retries)}. Try again, or look at the server's log.`,
      ),
  }
}

export function silenceFailure(server: ModelServer): Failure {
  return finalFailure(
    new DexError(
      "llm_silent",
      `${placeOf(server)} sent nothing for ${durationText(SILENCE_MS)}. Try again, or choose a faster model.`,
    ),
  )
}

export function wrongAnswerError(server: ModelServer, problem: string): DexError {
  return new DexError(
    "llm_wrong_answer",
    `${placeOf(server)} ${problem}. Check llm.provider: it is the address of a chat-completions server, and usually ends in /v1.`,
  )
}

export function stoppedError(server: ModelServer): DexError {
  return new DexError("llm_stopped", `The request to ${placeOf(server)} was stopped.`)
}

export function plainTextKeyError(message: string): DexError {
  return new DexError("llm_settings", message)
}

export function finalFailure(error: DexError): Failure {
  return { retry: false, error: () => error }
}

/** Returns the message and code in the body of an error answer. A body in plain text is returned as it is, and HTML as "". */
export function errorTextIn(body: string): string {
  try {
    const answer = JSON.parse(body) as Record<string, unknown> | null
    const error = (answer?.error ?? answer) as Record<string, unknown> | string | null
    if (typeof error === "string") return error
    const fields = [error?.message, error?.detail, error?.code, error?.type, error?.param]
    return fields.filter((word) => typeof word === "string").join(" ")
  } catch {
    return /^\s*</.test(body) ? "" : body
  }
}

/** Returns a server's text in a form that is safe to show: printable, short, and without any part of the key. */
function safeText(serverText: string, { apiKey }: ModelServer): string {
  const printable = removeKey(serverText.replace(/[^ -~]+/g, " "), apiKey)
  return printable.replace(/ +/g, " ").trim().slice(0, 200).trimEnd()
}

function retriesText(retries: number): string {
  return retries === 0 ? "" : `, even after ${retries === 1 ? "a retry" : `${retries} retries`}`
}

function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`
}

function placeOf({ provider }: ModelServer): string {
  return new URL(provider).origin
}
