import { setTimeout as pause } from "node:timers/promises"
import { retryAfterMs } from "../net/client.ts"
import { attempt } from "./attempt.ts"
import { MAX_WAIT_MS, SILENCE_MS, stoppedError } from "./failure.ts"
import { addModelUsage, type ModelUsage } from "./reply.ts"
import type { Dialect } from "./request.ts"

/** `provider`: the base URL of any server with OpenAI's chat completions API. The key is sent only to it. */
export type LlmSettings = { provider: string; model: string; temperature: number; maxTokens: number; apiKey?: string }

export type ModelTool = { name: string; description: string; input_schema: object }

export type ToolCall = {
  id: string
  name: string
  /** Always a JSON object, or undefined if `invalid` is set. */
  input: unknown
  /** Why this call cannot be run, as a text for the model, and the original arguments. Answer it like a failed call. */
  invalid?: { reason: string; raw: string }
  /** Data that some servers need back with the call, unchanged. Nothing else reads it. */
  extra?: Record<string, unknown>
}

export type ModelMessage =
  | { role: "user" | "assistant"; content: string }
  | { role: "assistant"; calls: ToolCall[]; content: string }
  | { role: "tool"; results: { id: string; name: string; output: string; is_error?: boolean }[] }

export type ModelRequest = {
  system: string
  messages: ModelMessage[]
  tools?: ModelTool[]
  max_tokens?: number
  temperature?: number
  /** A hint for servers that support it, and omitted for the others. Describe the format in the prompt too. */
  json_schema?: object
  signal?: AbortSignal
  /** Receives every piece of the text as it arrives. */
  onText?: (piece: string) => void
  /** Called if the stream broke and the request is sent again: discard what `onText` received. */
  onReset?: () => void
  /** Called if the request failed and will be retried after `waitMs`. */
  onRetry?: (why: string, waitMs: number) => void
}

export type ModelReply = {
  text: string
  calls: ToolCall[]
  finish: "stop" | "tool_calls" | "length" | "content_filter" | "other"
  /** Usage of the successful request; `used` also includes failed ones. */
  usage: ModelUsage
}

export type Model = {
  /** Host and model, for people, caches and traces. */
  id: string
  /**
   * Sends one request and streams the reply. A busy or failing server (429, 5xx) and a broken connection are retried three times.
   * Throws a DexError that says what to do if there is no answer; `llm_stopped` if the signal was aborted.
   */
  reply(request: ModelRequest): Promise<ModelReply>
  /**
   * Tokens of all requests so far. Incomplete and stopped answers count too, as an estimate if the server had not reported its
   * usage, because the provider also charges for them.
   */
  used(): ModelUsage & { requests: number }
}

/** The clock, which tests replace. */
export type ModelDeps = {
  sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>
  now: () => number
  silence: (onSilent: () => void) => SilenceTimer
}

/** Call `touch` at every sign of activity, first when the request is sent. Nothing is called after `end`. */
export type SilenceTimer = { touch(): void; end(): void }

const RETRIES = 3
const FIRST_WAIT_MS = 1_000

export function openModel(settings: LlmSettings, deps: Partial<ModelDeps> = {}): Model {
  const { sleep = sleepFor, now = Date.now, silence = startSilenceTimer } = deps
  const total = { input: 0, output: 0, requests: 0, is_estimate: false }
  const dialect: Dialect = new Set()
  const reply = async (request: ModelRequest): Promise<ModelReply> => {
    for (let retries = 0; ; ) {
      if (request.signal?.aborted) throw stoppedError(settings)
      const outcome = await attempt(settings, request, dialect, silence)
      total.requests++
      if (outcome.usage) addModelUsage(total, outcome.usage)
      if (outcome.type === "reply") return outcome.reply
      if (outcome.sawText) request.onReset?.()
      if (outcome.type === "again") continue
      const { error, retry, headers } = outcome.failure
      const wait = retryAfterMs(headers, now()) ?? Math.min(FIRST_WAIT_MS * 2 ** retries, MAX_WAIT_MS)
      if (!retry || retries >= RETRIES || wait > MAX_WAIT_MS) throw error(retries, wait)
      request.onRetry?.(error(retries, wait).message, wait)
      retries++
      await sleep(wait, request.signal).catch((cause: unknown) => {
        throw request.signal?.aborted ? stoppedError(settings) : cause
      })
    }
  }
  return { id: `${new URL(settings.provider).host}/${settings.model}`, reply, used: () => ({ ...total }) }
}

function sleepFor(ms: number, signal?: AbortSignal): Promise<unknown> {
  return pause(ms, undefined, signal ? { signal } : {})
}

export function startSilenceTimer(onSilent: () => void): SilenceTimer {
  let timer: NodeJS.Timeout | undefined
  let over = false
  return {
    touch: () => {
      if (over) return
      if (timer) timer.refresh()
      else timer = setTimeout(onSilent, SILENCE_MS)
    },
    end: () => {
      over = true
      clearTimeout(timer)
    },
  }
}
