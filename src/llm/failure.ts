import type { IncomingHttpHeaders } from "node:http"
import { DexError } from "../core/error.ts"
import type { LlmSettings } from "./model.ts"
import { LONGEST_WAIT_MS } from "./retry.ts"
import { SILENCE_MS } from "./silence.ts"
import type { Trouble } from "./wire.ts"

export type Failure = {
  retry: boolean
  /** Of the answer: it may say when to come back. */
  headers?: IncomingHttpHeaders
  /** What to throw after so many retries, when the next would come in so long. */
  error(retries: number, waitMs: number): DexError
}

type Server = Pick<LlmSettings, "provider" | "apiKey" | "model">

const LOST = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "ECONNABORTED"])
/** As OpenAI, Ollama, llama.cpp and vLLM put it. */
const TOO_LONG =
  /(exceed|maximum|too (long|large|many)|limit).{0,60}(tokens|context|prompt|length)|(tokens|context|prompt|length).{0,60}(exceed|maximum|limit|too (long|large))/i
const NO_MODEL =
  /model.{0,80}(not (valid|found|exist|available)|does not exist|is invalid)|(no such|invalid|unknown|not a valid) model/i

export function failureOf(trouble: Trouble, server: Server): Failure {
  const place = placeOf(server)
  switch (trouble.type) {
    case "answer":
      return final(llmWrongAnswer(server, trouble.what))
    case "network": {
      const lost = LOST.has(trouble.code)
      const what = trouble.code === "ECONNREFUSED" ? "Nothing answers at" : "No connection to"
      const broken = (retries: number) =>
        `The connection to ${place} broke (${trouble.code})${times(retries)}. Try again, or look at the server's log.`
      const unreachable = `${what} ${place} (${clean(trouble.code, server)}). Start the server, or fix llm.provider.`
      return { retry: lost, error: (retries) => new DexError("llm_unreachable", lost ? broken(retries) : unreachable) }
    }
    case "status":
      return refused(trouble.status, saidBy(trouble.body), server, trouble.headers)
  }
}

/** A failure that came as a status, or inside a stream with a code of its own. */
export function refused(status: number, words: string, server: Server, headers?: IncomingHttpHeaders): Failure {
  const place = placeOf(server)
  const said = clean(words, server)
  const why = `(${status}${said === "" ? "" : `: ${said}`})`
  if (status === 401 || status === 403)
    return final(
      new DexError("llm_refused", `${place} refused the key ${why}. Set another one: dex config set llm.api_key`),
    )
  if (status === 402 || (status === 429 && /insufficient_quota|exceeded your current quota/i.test(words)))
    return final(new DexError("llm_no_credit", `${place} wants to be paid first ${why}. Look at your account there.`))
  if (status === 429 || status >= 500)
    return {
      retry: true,
      ...(headers && { headers }),
      error: (retries, waitMs) => {
        const next =
          waitMs > LONGEST_WAIT_MS
            ? `It asks to be left alone for ${inWords(waitMs)}: try again then.`
            : "Try later, or choose another model: dex config set llm.model …"
        const what = status === 429 ? "is asked too often" : "failed"
        return new DexError(
          status === 429 ? "llm_busy" : "llm_failed",
          `${place} ${what} ${why}${times(retries)}. ${next}`,
        )
      },
    }
  if (status < 400)
    return final(
      new DexError(
        "llm_failed",
        `${place} points to another address ${why}. Set llm.provider to that, if you trust it.`,
      ),
    )
  if (TOO_LONG.test(words))
    return final(new DexError("llm_too_long", `${place} says that this is too long for the model ${why}.`))
  if (status === 404 || NO_MODEL.test(words))
    return final(
      new DexError(
        "llm_no_model",
        `${place} has no model ${server.model}, or no such address ${why}. Check llm.model, and llm.provider, which usually ends in /v1.`,
      ),
    )
  return final(new DexError("llm_failed", `${place} did not accept the request ${why}. Check llm.model.`))
}

/** The server's own error in mid-stream. */
export function failedInStream(error: unknown, server: Server): Failure {
  const { message, code, type } = (error ?? {}) as Record<string, unknown>
  const words = typeof message === "string" ? message : typeof error === "string" ? error : ""
  const status = Number(code)
  if (Number.isInteger(status) && status >= 400 && status < 600)
    return refused(status, `${words} ${type ?? ""}`, server)
  const busy = /rate.?limit/i.test(`${code} ${type}`)
  if (busy || /server_error|overloaded|timeout|unavailable/i.test(`${code} ${type}`))
    return refused(busy ? 429 : 500, words, server)
  const said = clean(words, server)
  return final(
    new DexError("llm_failed", `${placeOf(server)} stopped in the middle of its answer${said && ` (${said})`}.`),
  )
}

/** The stream ended before the reply did. */
export function cutShort(server: Server): Failure {
  return {
    retry: true,
    error: (retries) =>
      new DexError(
        "llm_failed",
        `${placeOf(server)} ended its answer in the middle${times(retries)}. Try again, or look at the server's log.`,
      ),
  }
}

export function silent(server: Server): Failure {
  return final(
    new DexError(
      "llm_silent",
      `${placeOf(server)} sent nothing for ${inWords(SILENCE_MS)}. Try again, or choose a faster model.`,
    ),
  )
}

export function llmWrongAnswer(server: Server, what: string): DexError {
  return new DexError(
    "llm_wrong_answer",
    `${placeOf(server)} ${what}. Check llm.provider: it is the address of a chat-completions server, and usually ends in /v1.`,
  )
}

export function stopped(server: Server): DexError {
  return new DexError("llm_stopped", `The request to ${placeOf(server)} was stopped.`)
}

/** A key may only travel where nobody on the way can read it. */
export function keepKeyPrivate({ provider, apiKey }: Server): void {
  const { protocol, hostname } = new URL(provider)
  if (apiKey === undefined || protocol === "https:") return
  if (/^(localhost|127(\.\d+){3}|\[::1\]|.*\.localhost)$/.test(hostname)) return
  throw new DexError(
    "llm_settings",
    `The key would travel to ${hostname} for everyone on the way to read. Use an https address, or a server without a key.`,
  )
}

export function final(error: DexError): Failure {
  return { retry: false, error: () => error }
}

/** What an error's body says: its message with its code, or nothing where it has another form. */
export function saidBy(body: string): string {
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

/** Somebody else's words as they may be shown: printable, short, and without anything of the key. */
function clean(words: string, { apiKey }: Server): string {
  const printable = words.replace(/[^ -~]+/g, " ").replace(/\S+/g, (word) => (tells(word, apiKey) ? "[key]" : word))
  return printable.replace(/ +/g, " ").trim().slice(0, 200).trimEnd()
}

/** Servers repeat a key, a piece of it, or one with stars in the middle. */
function tells(word: string, key: string | undefined): boolean {
  if (/\*{3}/.test(word)) return true
  if (key === undefined || key.length < 4) return false
  const size = Math.min(8, key.length)
  for (let at = 0; at + size <= key.length; at++) if (word.includes(key.slice(at, at + size))) return true
  return false
}

function times(retries: number): string {
  return retries === 0 ? "" : `, and again when asked ${retries === 1 ? "once" : `${retries} times`} more`
}

function inWords(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`
}

function placeOf({ provider }: Server): string {
  return new URL(provider).origin
}
