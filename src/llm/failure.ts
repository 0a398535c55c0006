import type { IncomingHttpHeaders } from "node:http"
import { DexError } from "../core/error.ts"
import { removeKey } from "../net/client.ts"
import type { LlmSettings } from "./model.ts"

/** The longest pause before a retry, in milliseconds. If a server asks for more, dex gives up. */
export const MAX_WAIT_MS = 30_000
/**
 * How long a server may send nothing, in milliseconds. A local model may read a long prompt for minutes before its first word.
 */
export const SILENCE_MS = 600_000

export type Failure = {
  retry: boolean
  /** The answer's headers, which may say when to retry. */
  headers?: IncomingHttpHeaders
  /** The error to throw after this many retries, if the next one would have to wait this long. */
  error(retries: number, waitMs: number): DexError
}

type Server = Pick<LlmSettings, "provider" | "apiKey" | "model">

const LOST_CONNECTION = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "ECONNABORTED"])
/** Matches the wording of OpenAI, Ollama, llama.cpp and vLLM for a prompt that is too long. */
const TOO_LONG =
  /(exceed|maximum|too (long|large|many)|limit).{0,60}(tokens|context|prompt|length)|(tokens|context|prompt|length).{0,60}(exceed|maximum|limit|too (long|large))/i
const NO_MODEL =
  /model.{0,80}(not (valid|found|exist|available)|does not exist|is invalid)|(no such|invalid|unknown|not a valid) model/i

/** `code` is Node's error code. */
export function connectionFailure(code: string, server: Server): Failure {
  const place = placeOf(server)
  const lost = LOST_CONNECTION.has(code)
  const what = code === "ECONNREFUSED" ? "Nothing answers at" : "No connection to"
  const broken = (retries: number) =>
    `The connection to ${place} broke (${code})${times(retries)}. Try again, or look at the server's log.`
  const unreachable = `${what} ${place} (${clean(code, server)}). Start the server, or fix llm.provider.`
  return { retry: lost, error: (retries) => new DexError("llm_unreachable", lost ? broken(retries) : unreachable) }
}

/** A failure that came as a status, or inside a stream with a code of its own. */
export function refusalFailure(status: number, words: string, server: Server, headers?: IncomingHttpHeaders): Failure {
  const place = placeOf(server)
  const shown = clean(words, server)
  const why = `(${status}${shown === "" ? "" : `: ${shown}`})`
  if (status === 401 || status === 403)
    return finalFailure(
      new DexError("llm_refused", `${place} refused the key ${why}. Set another one: dex config set llm.api_key`),
    )
  if (status === 402 || (status === 429 && /insufficient_quota|exceeded your current quota/i.test(words)))
    return finalFailure(new DexError("llm_no_credit", `${place} requires payment ${why}. Check your account there.`))
  if (status === 429 || status >= 500)
    return {
      retry: true,
      headers,
      error: (retries, waitMs) => {
        const next =
          waitMs > MAX_WAIT_MS
            ? `Try again in ${durationText(waitMs)}.`
            : "Try again later, or choose another model: dex config set llm.model …"
        const what = status === 429 ? "received too many requests" : "failed"
        return new DexError(
          status === 429 ? "llm_busy" : "llm_failed",
          `${place} ${what} ${why}${times(retries)}. ${next}`,
        )
      },
    }
  if (status < 400)
    return finalFailure(
      new DexError(
        "llm_failed",
        `${place} points to another address ${why}. Set llm.provider to that, if you trust it.`,
      ),
    )
  if (TOO_LONG.test(words))
    return finalFailure(new DexError("llm_too_long", `${place} says that this is too long for the model ${why}.`))
  if (status === 404 || NO_MODEL.test(words))
    return finalFailure(
      new DexError(
        "llm_no_model",
        `${place} has no model ${server.model}, or no such address ${why}. Check llm.model, and llm.provider, which usually ends in /v1.`,
      ),
    )
  return finalFailure(new DexError("llm_failed", `${place} did not accept the request ${why}. Check llm.model.`))
}

/** An error that the server reports in the middle of a stream. */
export function streamFailure(error: unknown, server: Server): Failure {
  const { message, code, type } = (error ?? {}) as Record<string, unknown>
  const words = typeof message === "string" ? message : typeof error === "string" ? error : ""
  const status = Number(code)
  if (Number.isInteger(status) && status >= 400 && status < 600)
    return refusalFailure(status, `${words} ${type ?? ""}`, server)
  const busy = /rate.?limit/i.test(`${code} ${type}`)
  if (busy || /server_error|overloaded|timeout|unavailable/i.test(`${code} ${type}`))
    return refusalFailure(busy ? 429 : 500, words, server)
  const shown = clean(words, server)
  return finalFailure(
    new DexError("llm_failed", `${placeOf(server)} stopped in the middle of its answer${shown && ` (${shown})`}.`),
  )
}

/** The failure if the stream ended before the reply did. */
export function incompleteFailure(server: Server): Failure {
  return {
    retry: true,
    error: (retries) =>
      new DexError(
        "llm_failed",
        `${placeOf(server)} ended in the middle of its answer${times(retries)}. Try again, or look at the server's log.`,
      ),
  }
}

export function silenceFailure(server: Server): Failure {
  return finalFailure(
    new DexError(
      "llm_silent",
      `${placeOf(server)} sent nothing for ${durationText(SILENCE_MS)}. Try again, or choose a faster model.`,
    ),
  )
}

export function wrongAnswerError(server: Server, what: string): DexError {
  return new DexError(
    "llm_wrong_answer",
    `${placeOf(server)} ${what}. Check llm.provider: it is the address of a chat-completions server, and usually ends in /v1.`,
  )
}

export function stoppedError(server: Server): DexError {
  return new DexError("llm_stopped", `The request to ${placeOf(server)} was stopped.`)
}

export function plainTextKeyError(message: string): DexError {
  return new DexError("llm_settings", message)
}

export function finalFailure(error: DexError): Failure {
  return { retry: false, error: () => error }
}

/** The message and code in an error's body; empty if the body has another form. */
export function errorTextIn(body: string): string {
  try {
    const answer = JSON.parse(body) as Record<string, unknown> | null
    const error = (answer?.error ?? answer) as Record<string, unknown> | string | null
    if (typeof error === "string") return error
    const words = [error?.message, error?.detail, error?.code, error?.type, error?.param]
    return words.filter((word) => typeof word === "string").join(" ")
  } catch {
    return /^\s*</.test(body) ? "" : body
  }
}

/** Foreign text made safe to show: printable, short, and without any part of the key. */
function clean(words: string, { apiKey }: Server): string {
  const printable = removeKey(words.replace(/[^ -~]+/g, " "), apiKey)
  return printable.replace(/ +/g, " ").trim().slice(0, 200).trimEnd()
}

function times(retries: number): string {
  return retries === 0 ? "" : `, also after ${retries === 1 ? "a retry" : `${retries} retries`}`
}

function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`
}

function placeOf({ provider }: Server): string {
  return new URL(provider).origin
}
