import { setTimeout as pause } from "node:timers/promises"
import { retryAfterMs } from "../net/client.ts"
import { attempt } from "./attempt.ts"
import { LONGEST_WAIT_MS, SILENCE_MS, stopped } from "./failure.ts"
import { addModelUsage, type ModelUsage } from "./reply.ts"
import type { Dialect } from "./request.ts"

/** `provider`: the base URL of any server that speaks OpenAI's chat completions. The key goes to it and nowhere else. */
export type LlmSettings = { provider: string; model: string; temperature: number; maxTokens: number; apiKey?: string }

export type ModelTool = { name: string; description: string; input_schema: object }

export type ToolCall = {
  id: string
  name: string
  /** Always a JSON object, unless `invalid` is there: then it is undefined. */
  input: unknown
  /** Why this call cannot be run, in words for the model, and what it had written. Answer it as a failed call. */
  invalid?: { reason: string; raw: string }
  /** What some servers want back with the call as it was; nobody else reads it. */
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
  /** A help for servers that know it, left out for those that do not: say in the prompt as well what is wanted. */
  json_schema?: object
  signal?: AbortSignal
  /** Every piece of the text as it comes. */
  onText?: (piece: string) => void
  /** The stream broke and the request is made again: what `onText` was given is void. */
  onReset?: () => void
  /** It failed and is tried again after so long. */
  onRetry?: (why: string, waitMs: number) => void
}

export type ModelReply = {
  text: string
  calls: ToolCall[]
  finish: "stop" | "tool_calls" | "length" | "content_filter" | "other"
  /** Of the request that was answered; `used` has those that failed as well. */
  usage: ModelUsage
}

export type Model = {
  /** Host and model, for people, caches and traces. */
  id: string
  /**
   * One request, streamed. A busy or failing server (429, 5xx) and a broken connection are tried again three times.
   * Throws a DexError that says what to do when there is no answer; `llm_stopped` when the signal said so.
   */
  reply(request: ModelRequest): Promise<ModelReply>
  /**
   * Tokens of all requests so far. An answer that broke off or was stopped counts as well, by estimate where the server
   * had not said yet: whoever runs the server counts it too.
   */
  used(): ModelUsage & { requests: number }
}

/** The clock, which tests bring their own of. */
export type ModelDeps = {
  sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>
  now: () => number
  silence: (onSilent: () => void) => Silence
}

/** `touch` at every sign of life, the first time when the request leaves. Nothing is called after `end`. */
export type Silence = { touch(): void; end(): void }

const RETRIES = 3
const FIRST_WAIT_MS = 1_000

export function openModel(settings: LlmSettings, deps: Partial<ModelDeps> = {}): Model {
  const { sleep = sleepFor, now = Date.now, silence = listenForSilence } = deps
  const total = { input: 0, output: 0, requests: 0, is_estimate: false }
  const dialect: Dialect = new Set()
  const reply = async (request: ModelRequest): Promise<ModelReply> => {
    for (let retries = 0; ; ) {
      if (request.signal?.aborted) throw stopped(settings)
      const outcome = await attempt(settings, request, dialect, silence)
      total.requests++
      if (outcome.usage) addModelUsage(total, outcome.usage)
      if (outcome.type === "reply") return outcome.reply
      if (outcome.sawText) request.onReset?.()
      if (outcome.type === "again") continue
      const { error, retry, headers } = outcome.failure
      const wait = retryAfterMs(headers, now()) ?? Math.min(FIRST_WAIT_MS * 2 ** retries, LONGEST_WAIT_MS)
      if (!retry || retries >= RETRIES || wait > LONGEST_WAIT_MS) throw error(retries, wait)
      request.onRetry?.(error(retries, wait).message, wait)
      retries++
      await sleep(wait, request.signal).catch((cause: unknown) => {
        throw request.signal?.aborted ? stopped(settings) : cause
      })
    }
  }
  return { id: `${new URL(settings.provider).host}/${settings.model}`, reply, used: () => ({ ...total }) }
}

function sleepFor(ms: number, signal?: AbortSignal): Promise<unknown> {
  return pause(ms, undefined, signal ? { signal } : {})
}

export function listenForSilence(onSilent: () => void): Silence {
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
