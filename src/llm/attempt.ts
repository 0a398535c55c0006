import type { OpenAICompatibleChatLanguageModel } from "@ai-sdk/openai-compatible"
import { byName } from "../core/by-name.ts"
import { charactersWithin, tokensOf } from "../core/tokens.ts"
import { oddCalls, readCalls, type Spoken } from "./calls.ts"
import { type Dialect, learnFromRefusal, spoken } from "./dialect.ts"
import {
  cutShort,
  type Failure,
  failedInStream,
  failureOf,
  final,
  keepKeyPrivate,
  llmWrongAnswer,
  saidBy,
  silent,
  stopped,
} from "./failure.ts"
import type { LlmSettings, ModelDeps, ModelReply, ModelRequest } from "./model.ts"
import { sdkRequestOf } from "./prompt.ts"
import type { ModelUsage } from "./usage.ts"
import { fetchOver, type Trouble } from "./wire.ts"

/** `again`: the server did not take the request as it was put; it is put otherwise now, which is no retry. */
export type AttemptOutcome =
  | { type: "reply"; reply: ModelReply; usage: ModelUsage }
  | { type: "again"; usage?: undefined; sawText: false }
  | { type: "failed"; failure: Failure; usage?: ModelUsage; sawText: boolean }

/** What has come so far. */
type Heard = {
  /** The server took the request. */
  began: boolean
  text: string
  /** Characters of reasoning and of calls. */
  others: number
  calls: Map<string, Spoken>
  finish: string
  said?: { prompt_tokens?: unknown; completion_tokens?: unknown }
}

/** Not every server minds max_tokens: a reply is cut off when it has so many times the characters that they should be. */
const FLOOD = 4

/**
 * One request and what came of it. One connection, closed when this returns. The SDK's provider is used bare: above it,
 * the SDK would retry, log and trace in its own ways.
 */
export async function attempt(
  settings: LlmSettings,
  request: ModelRequest,
  dialect: Dialect,
  silence: ModelDeps["silence"],
): Promise<AttemptOutcome> {
  keepKeyPrivate(settings)
  const maxTokens = request.max_tokens ?? settings.maxTokens
  const heard: Heard = { text: "", others: 0, calls: new Map(), finish: "", began: false }
  const close = new AbortController()
  let trouble: Trouble | undefined
  let failure: Failure | undefined
  let asked = 0
  const quiet = silence(() => {
    failure = silent(settings)
    close.abort()
  })
  try {
    const { OpenAICompatibleChatLanguageModel } = await import("@ai-sdk/openai-compatible")
    const model = new OpenAICompatibleChatLanguageModel(settings.model, {
      provider: "dex",
      url: ({ path }) => `${settings.provider.replace(/\/+$/, "")}${path}`,
      ...(settings.apiKey !== undefined && { headers: { authorization: `Bearer ${settings.apiKey}` } }),
      includeUsage: true,
      supportsStructuredOutputs: true,
      transformRequestBody: (body) => {
        const put = spoken(dialect, body)
        asked = tokensOf(JSON.stringify([put.messages, put.tools]).length)
        return put
      },
      fetch: fetchOver({
        onTrouble: (what) => (trouble ??= what),
        onAnswer: () => (heard.began = true),
        onBytes: () => quiet.touch(),
      }),
    })
    const { stream } = await model.doStream({
      ...sdkRequestOf(request),
      maxOutputTokens: maxTokens,
      temperature: request.temperature ?? settings.temperature,
      providerOptions: { dex: { strictJsonSchema: false } },
      abortSignal: request.signal ? AbortSignal.any([request.signal, close.signal]) : close.signal,
    })
    for await (const part of stream) {
      if (part.type === "error") failure ??= hearError(part.error, heard, settings)
      else hear(part, heard, request.onText)
      const floods = heard.text.length + heard.others > charactersWithin(maxTokens) * FLOOD
      if (floods) heard.finish = "length"
      if (failure || floods) break
    }
  } catch (error) {
    // A call without a name ends the SDK's stream, after everything else has come.
    if (errorNameOf(error) === "AI_InvalidResponseDataError") addCall(heard, { name: "", raw: "" })
    else if (!request.signal?.aborted && !trouble && !failure) {
      if (!errorNameOf(error).startsWith("AI_")) throw error
      failure = final(llmWrongAnswer(settings, "did not answer as a chat-completions server does"))
    }
  } finally {
    quiet.end()
    close.abort()
  }
  if (request.signal?.aborted) failure = final(stopped(settings))
  else if (!failure && trouble) {
    if (trouble.type === "status" && learnFromRefusal(dialect, trouble.status, saidBy(trouble.body)))
      return { type: "again", sawText: false }
    failure = failureOf(trouble, settings)
  }
  const usage = replyUsage(heard, asked)
  if (failure) return { type: "failed", failure, sawText: heard.text !== "", ...(heard.began && { usage }) }
  return { type: "reply", reply: { ...replyOf(heard, request), usage }, usage }
}

type StreamPart =
  Awaited<ReturnType<OpenAICompatibleChatLanguageModel["doStream"]>>["stream"] extends ReadableStream<infer P>
    ? P
    : never

function hear(part: StreamPart, heard: Heard, onText: ModelRequest["onText"]): void {
  switch (part.type) {
    case "text-delta":
      heard.text += part.delta
      onText?.(part.delta)
      return
    case "reasoning-delta":
      heard.others += part.delta.length
      return
    case "tool-input-start":
      heard.calls.set(part.id, { id: part.id, name: part.toolName, raw: "" })
      heard.others += part.toolName.length
      return
    case "tool-input-delta": {
      const call = heard.calls.get(part.id)
      if (call) call.raw += part.delta
      heard.others += part.delta.length
      return
    }
    case "tool-call": {
      const call = heard.calls.get(part.toolCallId)
      if (call && part.providerMetadata) call.extra = part.providerMetadata
      return
    }
    case "finish":
      heard.finish = part.finishReason.unified
      if (part.usage.raw) heard.said = part.usage.raw
  }
}

/** What an error in the stream means; undefined when the stream goes on. */
function hearError(error: unknown, heard: Heard, settings: LlmSettings): Failure | undefined {
  switch (errorNameOf(error)) {
    case "AI_InvalidResponseDataError":
      return cutShort(settings)
    case "AI_TypeValidationError": {
      const calls = oddCalls((error as { value?: unknown }).value)
      for (const call of calls) addCall(heard, call)
      if (calls.length > 0) return undefined
      return final(llmWrongAnswer(settings, "answered in another form than a chat-completions server does"))
    }
    case "AI_JSONParseError":
      return final(llmWrongAnswer(settings, "sent something in its answer that is not JSON"))
    default:
      return failedInStream(error, settings)
  }
}

function addCall(heard: Heard, call: Omit<Spoken, "id">): void {
  const id = `call_${heard.calls.size + 1}_${crypto.randomUUID().slice(0, 8)}`
  heard.calls.set(id, { id, ...call })
  heard.others += call.raw.length
}

const FINISHES: Record<string, ModelReply["finish"]> = {
  stop: "stop",
  "tool-calls": "tool_calls",
  length: "length",
  "content-filter": "content_filter",
}

function replyOf(heard: Heard, { tools = [] }: ModelRequest): Omit<ModelReply, "usage"> {
  const said = byName(FINISHES, heard.finish) ?? "other"
  // The SDK drops calls whose name is empty.
  if (said === "tool_calls" && heard.calls.size === 0) addCall(heard, { name: "", raw: "" })
  const finish = heard.calls.size > 0 && (said === "stop" || said === "other") ? "tool_calls" : said
  return { text: heard.text, calls: readCalls([...heard.calls.values()], tools, finish), finish }
}

/** What the server said; what it did not say, or said to be nothing where there was something, is estimated. */
function replyUsage({ text, others, said }: Heard, asked: number): ModelUsage {
  const output = tokensOf(text.length + others)
  const count = (value: unknown) =>
    Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined
  const spoken = {
    input: count(said?.prompt_tokens),
    output: count(said?.completion_tokens) ?? (output === 0 ? 0 : undefined),
  }
  return {
    input: spoken.input ?? asked,
    output: spoken.output ?? output,
    is_estimate: spoken.input === undefined || spoken.output === undefined,
  }
}

function errorNameOf(error: unknown): string {
  return error instanceof Error ? error.name : ""
}
