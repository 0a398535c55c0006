import { setTimeout as pause } from "node:timers/promises"
import { retryAfterMs } from "../net/client.ts"
import { attempt } from "./attempt.ts"
import { MAX_WAIT_MS, SILENCE_MS, stoppedError } from "./failure.ts"
import { addModelUsage, type ModelUsage } from "./reply.ts"
import type { UnsupportedParameters } from "./request.ts"

/** `provider` is the base URL of a server with OpenAI's chat completions API. The key is sent only to this server. */
export type LlmSettings = { provider: string; model: string; temperature: number; maxTokens: number; apiKey?: string }

export type ModelTool = { name: string; description: string; input_schema: object }

export type ToolCall = {
  id: string
  name: string
  /** Always a JSON object, or undefined if `invalid` is set. */
  input: unknown
  /**
   * Set if the call cannot be run: the reason, worded for the model, and the original arguments. Answer such a call as you
   * would answer one that failed.
   */
  invalid?: { reason: string; raw: string }
  /** Data that some servers need back, unchanged, with the call. dex does not read it. */
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
  /**
   * A JSON schema for the reply, as a hint to the server. It is not sent to servers that do not support it, so describe the
   * format in the prompt, too.
   */
  json_schema?: object
  signal?: AbortSignal
  /** Receives every piece of the text as it arrives. */
  onText?: (piece: string) => void
  /** Called if the stream broke and the request is sent again: discard what `onText` received. */
  onReset?: () => void
  /** Called if the request failed and will be retried after `waitMs`. */
  onRetry?: (reason: string, waitMs: number) => void
}

export type ModelReply = {
  text: string
  calls: ToolCall[]
  finish: "stop" | "tool_calls" | "length" | "content_filter" | "other"
  /** The usage of the successful request. `used` also includes failed ones. */
  usage: ModelUsage
}

export type Model = {
  /** The host and the model, as shown to people and used in caches and traces. */
  id: string
  /**
   * Sends one request and streams the reply. Retries three times if the server is busy or failing (429, 5xx) or the connection
   * breaks. If there is no answer, throws a DexError that says what to do; if the signal was aborted, its code is
   * `llm_stopped`.
   */
  reply(request: ModelRequest): Promise<ModelReply>
  /**
   * Returns the tokens of all requests so far. Incomplete and stopped answers also count, because the provider charges for
   * them. Usage that a server does not report is estimated.
   */
  used(): ModelUsage & { requests: number }
}

/** The functions that depend on time. Tests replace them. */
export type ModelDeps = {
  sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>
  now: () => number
  silence: (onSilent: () => void) => SilenceTimer
}

/** Call `touch` at every sign of activity, first when the request is sent. After `end`, the callback is not called any more. */
export type SilenceTimer = { touch(): void; end(): void }

const RETRIES = 3
const FIRST_WAIT_MS = 1_000

export function openModel(settings: LlmSettings, deps: Partial<ModelDeps> = {}): Model {
  const { sleep = sleepFor, now = Date.now, silence = startSilenceTimer } = deps
  const total = { input: 0, output: 0, requests: 0, is_estimate: false }
  const unsupported: UnsupportedParameters = new Set()
  const reply = async (request: ModelRequest): Promise<ModelReply> => {
    for (let retries = 0; ; ) {
      if (request.signal?.aborted) throw stoppedError(settings)
      const outcome = await attempt(settings, request, unsupported, silence)
      total.requests++
      if (outcome.usage) addModelUsage(total, outcome.usage)
      if (outcome.type === "reply") return outcome.reply
      if (outcome.sawText) request.onReset?.()
      if (outcome.type === "again") continue
      const { error, retry, headers } = outcome.failure
      const waitMs = retryAfterMs(headers, now()) ?? Math.min(FIRST_WAIT_MS * 2 ** retries, MAX_WAIT_MS)
      if (!retry || retries >= RETRIES || waitMs > MAX_WAIT_MS) throw error(retries, waitMs)
      request.onRetry?.(error(retries, waitMs).message, waitMs)
      retries++
      await sleep(waitMs, request.signal).catch((cause: unknown) => {
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
  let hasEnded = false
  return {
    touch: () => {
      if (hasEnded) return
      if (timer) timer.refresh()
      else timer = setTimeout(onSilent, SILENCE_MS)
    },
    end: () => {
      hasEnded = true
      clearTimeout(timer)
    },
  }
}
