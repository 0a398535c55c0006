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
import { bodyFor, type Dialect, learnFromRefusal } from "./request.ts"
import { addCall, addPiece, type PartialReply, piecesOf, StreamProblem } from "./stream.ts"

/** `again`: the server rejected the form of the request. It is sent again in another form, which does not count as a retry. */
export type AttemptOutcome =
  | { type: "reply"; reply: ModelReply; usage: ModelUsage }
  | { type: "again"; usage?: undefined; sawText: false }
  | { type: "failed"; failure: Failure; usage?: ModelUsage; sawText: boolean }

/**
 * How many times the expected number of characters a reply may have before it is cut off, because not every server respects
 * max_tokens.
 */
const MAX_REPLY_FACTOR = 4
/** The most tool calls in a reply, because calls without text would never reach the limit of characters. */
const MAX_CALLS = 500
const MAX_BYTES = 64 << 20
/** How many bytes of a refusal are read. */
const MAX_REFUSAL_BYTES = 16 << 10

/** One request and its outcome. Closes the connection before it returns, unless the answer was read to its end. */
export async function attempt(
  settings: LlmSettings,
  request: ModelRequest,
  dialect: Dialect,
  silence: ModelDeps["silence"],
): Promise<AttemptOutcome> {
  const maxTokens = request.max_tokens ?? settings.maxTokens
  const heard: PartialReply = { text: "", others: 0, calls: [], refused: false }
  const close = new AbortController()
  let failure: Failure | undefined
  let began = false
  const quiet = silence(() => {
    failure = silenceFailure(settings)
    close.abort()
  })
  const body = bodyFor(settings, request, maxTokens, dialect)
  try {
    quiet.touch()
    const reply = await send({
      url: `${settings.provider.replace(/\/+$/, "")}/chat/completions`,
      headers: {
        "content-type": "application/json",
        accept: "text/event-stream, application/json",
        "user-agent": "dex",
      },
      key: settings.apiKey,
      body: JSON.stringify(body),
      mostBytes: MAX_BYTES,
      signal: request.signal ? AbortSignal.any([request.signal, close.signal]) : close.signal,
    })
    quiet.touch()
    if (reply.status < 200 || reply.status > 299) {
      const words = errorTextIn(await readBeginning(reply))
      if (!request.signal?.aborted && learnFromRefusal(dialect, reply.status, words))
        return { type: "again", sawText: false }
      failure ??= refusalFailure(reply.status, words, settings, reply.headers)
    } else {
      began = true
      for await (const piece of piecesOf(reply, quiet.touch)) {
        addPiece(piece, heard, request.onText)
        const size = heard.text.length + heard.others
        const floods = size > charactersWithin(maxTokens) * MAX_REPLY_FACTOR || heard.calls.length > MAX_CALLS
        if (floods) heard.finish = "length"
        if (floods || failure) break
      }
      if (heard.finish === undefined) failure ??= incompleteFailure(settings)
    }
  } catch (error) {
    failure ??= failureOf(error, settings)
  } finally {
    quiet.end()
    close.abort()
  }
  if (request.signal?.aborted) failure = finalFailure(stoppedError(settings))
  const usage = replyUsage(heard, tokensForChars(JSON.stringify([body.messages, body.tools]).length))
  if (failure) return { type: "failed", failure, sawText: heard.text !== "", usage: began ? usage : undefined }
  return { type: "reply", reply: { ...replyOf(heard, request), usage }, usage }
}

/** The failure for an error. Rethrows errors that are bugs of dex. */
function failureOf(error: unknown, settings: LlmSettings): Failure {
  if (error instanceof StreamProblem)
    return error.reported === undefined
      ? finalFailure(wrongAnswerError(settings, error.message))
      : streamFailure(error.reported, settings)
  if (!isNetError(error)) throw error
  if (error.reason === "key_in_clear") throw plainTextKeyError(error.message)
  if (error.reason === "size") return finalFailure(wrongAnswerError(settings, "sent more than 64 MB"))
  return connectionFailure(error.code, settings)
}

/** Never throws: a refusal counts even if its text does not arrive completely. */
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
    // the text that has arrived is enough
  }
  return Buffer.concat(chunks).toString("utf8").slice(0, MAX_REFUSAL_BYTES)
}

const FINISHES: Record<string, ModelReply["finish"]> = {
  stop: "stop",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  length: "length",
  content_filter: "content_filter",
}

function replyOf(heard: PartialReply, { tools = [] }: ModelRequest): Omit<ModelReply, "usage"> {
  const named = byName(FINISHES, heard.finish ?? "") ?? "other"
  const reason = named === "stop" && heard.refused ? "content_filter" : named
  if (reason === "tool_calls" && heard.calls.length === 0) addCall(heard)
  const finish = heard.calls.length > 0 && (reason === "stop" || reason === "other") ? "tool_calls" : reason
  return { text: heard.text, calls: readCalls(heard.calls, tools, finish), finish }
}

/** The server's token counts. A count that is missing, or zero although there was text, is estimated. */
function replyUsage({ text, others, usage }: PartialReply, promptTokens: number): ModelUsage {
  const estimate = tokensForChars(text.length + others)
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
