import { createParser } from "eventsource-parser"
import { withoutUndefined } from "../core/defined.ts"
import { isRecord } from "../core/record.ts"
import type { NetReply } from "../net/client.ts"

/** The reply so far. */
export type PartialReply = {
  text: string
  /** The number of characters in reasoning and in calls. */
  otherChars: number
  calls: StreamedCall[]
  /** The reason that the server gave for ending the reply. Absent until the reply is complete. */
  finish?: string
  refused: boolean
  usage?: Record<string, unknown>
}

/** `serverIds` has the server's own id and number for the call, if it sends them. */
export type StreamedCall = {
  id: string
  name: string
  raw: string
  extra?: Record<string, unknown>
  serverIds: { id?: string; index?: number }
}

/**
 * The error for an answer that no chat-completions server would send, or for an error that the server reports in the stream.
 */
export class StreamProblem extends Error {
  readonly serverError: unknown
  constructor(message: string, serverError?: unknown) {
    super(message)
    this.serverError = serverError
  }
}

/**
 * Yields the pieces of a reply as they arrive, whether the server streams them or sends one document. Throws a
 * StreamProblem if the answer has another form, and passes on the errors of `reply`.
 */
export async function* piecesOf(reply: NetReply, onBytes: () => void): AsyncGenerator<unknown> {
  const contentType = (reply.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase()
  if (contentType === "text/html") throw new StreamProblem("answered with a web page")
  const decoder = new TextDecoder()
  const events: string[] = []
  const parser = createParser({ onEvent: ({ data }) => events.push(data) })
  let document = ""
  for await (const chunk of reply.chunks()) {
    onBytes()
    const text = decoder.decode(chunk, { stream: true })
    if (contentType === "application/json") document += text
    else parser.feed(text)
    for (const data of events.splice(0)) if (data !== "[DONE]") yield parsePiece(data)
  }
  if (contentType === "application/json") yield pieceOfDocument(document)
}

function parsePiece(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    throw new StreamProblem("sent something in its answer that is not JSON")
  }
}

/** Converts a complete answer to the form of a piece of a stream. */
function pieceOfDocument(text: string): unknown {
  try {
    const answer = JSON.parse(text) as { error?: unknown; choices?: { message?: unknown }[] } | null
    if (answer?.error) return { error: answer.error }
    return { ...answer, choices: answer!.choices!.map(({ message, ...choice }) => ({ ...choice, delta: message })) }
  } catch {
    throw new StreamProblem("did not answer as a chat-completions server does")
  }
}

/** Adds a piece to the reply so far, and passes its text on. */
export function addPiece(piece: unknown, partial: PartialReply, onText: ((text: string) => void) | undefined): void {
  if (!isRecord(piece)) throw unexpectedFormError()
  if (piece.error) throw new StreamProblem("stopped in the middle of its answer", piece.error)
  if (!Array.isArray(piece.choices)) throw unexpectedFormError()
  if (isRecord(piece.usage)) partial.usage = piece.usage
  const [choice = {}] = piece.choices as unknown[]
  if (!isRecord(choice)) throw unexpectedFormError()
  if (typeof choice.finish_reason === "string") partial.finish = choice.finish_reason
  const delta = choice.delta ?? {}
  if (!isRecord(delta)) throw unexpectedFormError()
  const thought = delta.reasoning_content ?? delta.reasoning
  if (typeof thought === "string") partial.otherChars += thought.length
  const addText = (text: string) => {
    if (text === "") return
    partial.text += text
    onText?.(text)
  }
  for (const part of partsIn(delta.content))
    if (part.type === "thinking") partial.otherChars += JSON.stringify(part.thinking ?? "").length
    else if (part.type === "text" && typeof part.text === "string") addText(part.text)
  if (typeof delta.refusal === "string" && delta.refusal !== "") {
    partial.refused = true
    addText(delta.refusal)
  }
  const calls = delta.tool_calls ?? []
  if (!Array.isArray(calls)) throw unexpectedFormError()
  for (const call of calls) addCallPiece(isRecord(call) ? call : {}, partial)
}

/** Returns the parts of a message's content, which is either a text or a list of parts. Some parts are thoughts. */
function partsIn(content: unknown): Record<string, unknown>[] {
  if (content === undefined || content === null) return []
  if (typeof content === "string") return [{ type: "text", text: content }]
  if (Array.isArray(content) && content.every(isRecord)) return content
  throw unexpectedFormError()
}

function unexpectedFormError(): StreamProblem {
  return new StreamProblem("answered in a different form from a chat-completions server")
}

function addCallPiece(delta: Record<string, unknown>, partial: PartialReply): void {
  const callFunction = isRecord(delta.function) ? delta.function : {}
  const name = typeof callFunction.name === "string" ? callFunction.name.trim() : ""
  const raw =
    typeof callFunction.arguments === "string" ? callFunction.arguments : (JSON.stringify(callFunction.arguments) ?? "")
  const serverIds = withoutUndefined({
    id: typeof delta.id === "string" && delta.id.trim() !== "" ? delta.id : undefined,
    index: typeof delta.index === "number" ? delta.index : undefined,
  })
  const call =
    findContinuedCall(partial.calls, name, raw === "null" ? "" : raw, serverIds) ?? addCall(partial, serverIds)
  Object.assign(call.serverIds, serverIds)
  call.name ||= name
  call.raw += raw === "null" ? "" : raw
  partial.otherChars += name.length + raw.length
  const extra = delta.extra_content
  if (isRecord(extra) && isRecord(extra.google) && extra.google.thought_signature) call.extra ??= extra
}

/** Adds a call. Its name and arguments are empty until the server sends them. */
export function addCall(partial: PartialReply, serverIds: StreamedCall["serverIds"] = {}): StreamedCall {
  const needsId = serverIds.id === undefined || partial.calls.some(({ id }) => id === serverIds.id)
  const id = needsId ? `call_${partial.calls.length + 1}_${crypto.randomUUID().slice(0, 8)}` : serverIds.id!
  const call: StreamedCall = { id, name: "", raw: "", serverIds: {} }
  partial.calls.push(call)
  return call
}

/**
 * Finds the call that a piece continues. Most servers number their calls. Some do not, some give all calls the same number or
 * id, and some repeat the name in every piece.
 */
function findContinuedCall(
  calls: StreamedCall[],
  name: string,
  raw: string,
  { id, index }: StreamedCall["serverIds"],
): StreamedCall | undefined {
  const lastCall = calls.findLast((call) => {
    if (name !== "" && call.name !== "" && call.name !== name) return false
    if (index !== undefined) return call.serverIds.index === index
    return id === undefined ? name === "" : call.serverIds.id === id
  })
  if (!lastCall || name === "" || lastCall.name === "") return lastCall
  const hasOtherId = id !== undefined && lastCall.serverIds.id !== undefined && id !== lastCall.serverIds.id
  const startsJson = /^\s*[{[]/.test(raw)
  const isNew = hasOtherId
    ? startsJson || (raw.trim() === "" && isComplete(lastCall.raw))
    : startsJson && isComplete(lastCall.raw)
  return isNew ? undefined : lastCall
}

function isComplete(raw: string): boolean {
  try {
    JSON.parse(raw)
    return true
  } catch {
    return false
  }
}
