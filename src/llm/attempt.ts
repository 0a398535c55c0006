import { byName } from "../core/by-name.ts"
import { charactersWithin, tokensForChars } from "../core/tokens.ts"
import { isNetError, type NetReply, send } from "../net/client.ts"
import {
  connectionFailure,
  errorTextIn,
  type Failure,
  finalFailure,
  incompleteFailure,
  plainTextKeyError,
  refusalFailure,
  silenceFailure,
  stoppedError,
  streamFailure,
  wrongAnswerError,
} from "./failure.ts"
import type { LlmSettings, ModelDeps, ModelReply, ModelRequest } from "./model.ts"
import type { ModelUsage } from "./reply.ts"
import { readCalls } from "./reply.ts"
import { bodyFor, learnFromRefusal, type UnsupportedParameters } from "./request.ts"
import { addCall, addPiece, type PartialReply, piecesOf, StreamProblem } from "./stream.ts"

/**
 * `again` means that the server rejected the form of the request. The request is sent again in another form, which does not
 * count as a retry.
 */
export type AttemptOutcome =
  | { type: "reply"; reply: ModelReply; usage: ModelUsage }
  | { type: "again"; usage?: undefined; sawText: false }
  | { type: "failed"; failure: Failure; usage?: ModelUsage; sawText: boolean }

/** A reply is cut off when it is this many times longer than expected, because not every server respects max_tokens. */
const MAX_REPLY_FACTOR = 4
/** The maximum number of tool calls in a reply. Calls without text would never reach the limit on characters. */
const MAX_CALLS = 500
const MAX_BYTES = 64 << 20
/** dex reads at most this many bytes of a refusal. */
const MAX_REFUSAL_BYTES = 16 << 10

/** Sends one request and returns its outcome. Before it returns, it closes the connection if part of the answer is unread. */
export async function attempt(
  settings: LlmSettings,
  request: ModelRequest,
  unsupported: UnsupportedParameters,
  silence: ModelDeps["silence"],
): Promise<AttemptOutcome> {
  const maxTokens = request.max_tokens ?? settings.maxTokens
  const partial: PartialReply = { text: "", otherChars: 0, calls: [], refused: false }
  const abortController = new AbortController()
  let failure: Failure | undefined
  let hasStarted = false
  const silenceTimer = silence(() => {
    failure = silenceFailure(settings)
    abortController.abort()
  })
  const body = bodyFor(settings, request, maxTokens, unsupported)
  try {
    silenceTimer.touch()
    const reply = await send({
      url: `${settings.provider.replace(/\/+$/, "")}/chat/completions`,
      headers: {
        "content-type": "application/json",
        accept: "text/event-stream, application/json",
        "user-agent": "dex",
      },
      key: settings.apiKey,
      body: JSON.stringify(body),
      maxBytes: MAX_BYTES,
      signal: request.signal ? AbortSignal.any([request.signal, abortController.signal]) : abortController.signal,
    })
    silenceTimer.touch()
    if (reply.status < 200 || reply.status > 299) {
      const serverMessage = errorTextIn(await readBeginning(reply))
      if (!request.signal?.aborted && learnFromRefusal(unsupported, reply.status, serverMessage))
        return { type: "again", sawText: false }
      failure ??= refusalFailure(reply.status, serverMessage, settings, reply.headers)
    } else {
      hasStarted = true
      for await (const piece of piecesOf(reply, silenceTimer.touch)) {
        addPiece(piece, partial, request.onText)
        const size = partial.text.length + partial.otherChars
        const isTooLong = size > charactersWithin(maxTokens) * MAX_REPLY_FACTOR || partial.calls.length > MAX_CALLS
        if (isTooLong) partial.finish = "length"
        if (isTooLong || failure) break
      }
      if (partial.finish === undefined) failure ??= incompleteFailure(settings)
    }
  } catch (error) {
    failure ??= failureOf(error, settings)
  } finally {
    silenceTimer.end()
    abortController.abort()
  }
  if (request.signal?.aborted) failure = finalFailure(stoppedError(settings))
  const usage = replyUsage(partial, tokensForChars(JSON.stringify([body.messages, body.tools]).length))
  if (failure) return { type: "failed", failure, sawText: partial.text !== "", usage: hasStarted ? usage : undefined }
  return { type: "reply", reply: { ...replyOf(partial, request), usage }, usage }
}

/** Returns the failure for an error. Throws if the key would be sent unencrypted, or if the error is a bug in dex. */
function failureOf(error: unknown, settings: LlmSettings): Failure {
  if (error instanceof StreamProblem)
    return error.serverError === undefined
      ? finalFailure(wrongAnswerError(settings, error.message))
      : streamFailure(error.serverError, settings)
  if (!isNetError(error)) throw error
  if (error.reason === "key_in_clear") throw plainTextKeyError(error.message)
  if (error.reason === "size") return finalFailure(wrongAnswerError(settings, "sent more than 64 MB"))
  return connectionFailure(error.code, settings)
}

/** Reads the beginning of a refusal. Never throws, because a refusal counts even if its text does not arrive completely. */
async function readBeginning(reply: NetReply): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of reply.chunks()) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= MAX_REFUSAL_BYTES) break
    }
  } catch {
    // The text that has arrived so far is enough.
  }
  return Buffer.concat(chunks).toString("utf8").slice(0, MAX_REFUSAL_BYTES)
}

const FINISH_REASONS: Record<string, ModelReply["finish"]> = {
  stop: "stop",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  length: "length",
  content_filter: "content_filter",
}

function replyOf(partial: PartialReply, { tools = [] }: ModelRequest): Omit<ModelReply, "usage"> {
  const serverReason = byName(FINISH_REASONS, partial.finish ?? "") ?? "other"
  const reason = serverReason === "stop" && partial.refused ? "content_filter" : serverReason
  if (reason === "tool_calls" && partial.calls.length === 0) addCall(partial)
  const finish = partial.calls.length > 0 && (reason === "stop" || reason === "other") ? "tool_calls" : reason
  return { text: partial.text, calls: readCalls(partial.calls, tools, finish), finish }
}

/** Returns the server's token counts. A count that is missing, or that is zero although there was text, is estimated. */
function replyUsage({ text, otherChars, usage }: PartialReply, promptTokens: number): ModelUsage {
  const estimate = tokensForChars(text.length + otherChars)
  const count = (value: unknown) =>
    Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined
  const input = count(usage?.prompt_tokens)
  const output = count(usage?.completion_tokens) ?? (estimate === 0 ? 0 : undefined)
  return {
    input: input ?? promptTokens,
    output: output ?? estimate,
    is_estimate: input === undefined || output === undefined,
  }
}
