import { createParser } from "eventsource-parser"
import { withoutUndefined } from "../core/defined.ts"
import { isRecord } from "../core/record.ts"
import type { NetReply } from "../net/client.ts"

/** The reply so far. */
export type PartialReply = {
  text: string
  /** The number of characters of reasoning and of calls. */
  others: number
  calls: StreamedCall[]
  /** The server's reason for the end. Absent until the reply is complete. */
  finish?: string
  refused: boolean
  usage?: Record<string, unknown>
}

/** `given`: the server's own id and number for the call, if it sends any. */
export type StreamedCall = {
  id: string
  name: string
  raw: string
  extra?: Record<string, unknown>
  given: { id?: string; index?: number }
}

/** An answer that no chat-completions server sends, or an error that the server reports in the stream. */
export class StreamProblem extends Error {
  readonly reported: unknown
  constructor(what: string, reported?: unknown) {
    super(what)
    this.reported = reported
  }
}

/** The pieces of a reply as they arrive, whether the server streams them or sends one document. Throws the errors of `reply`. */
export async function* piecesOf(reply: NetReply, onBytes: () => void): AsyncGenerator<unknown> {
  const kind = (reply.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase()
  if (kind === "text/html") throw new StreamProblem("answered with a web page")
  const decoder = new TextDecoder()
  const events: string[] = []
  const parser = createParser({ onEvent: ({ data }) => events.push(data) })
  let document = ""
  for await (const chunk of reply.chunks()) {
    onBytes()
    const text = decoder.decode(chunk, { stream: true })
    if (kind === "application/json") document += text
    else parser.feed(text)
    for (const data of events.splice(0)) if (data !== "[DONE]") yield parsedPiece(data)
  }
  if (kind === "application/json") yield asPiece(document)
}

function parsedPiece(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    throw new StreamProblem("sent something in its answer that is not JSON")
  }
}

/** Turns a complete answer into a piece of a stream. */
function asPiece(text: string): unknown {
  try {
    const answer = JSON.parse(text) as { error?: unknown; choices?: { message?: unknown }[] } | null
    if (answer?.error) return { error: answer.error }
    return { ...answer, choices: answer!.choices!.map(({ message, ...choice }) => ({ ...choice, delta: message })) }
  } catch {
    throw new StreamProblem("did not answer as a chat-completions server does")
  }
}

/** Adds a piece to the reply so far, and passes its text on. */
export function addPiece(piece: unknown, heard: PartialReply, onText: ((text: string) => void) | undefined): void {
  if (!isRecord(piece)) throw unexpectedForm()
  if (piece.error) throw new StreamProblem("stopped in the middle of its answer", piece.error)
  if (!Array.isArray(piece.choices)) throw unexpectedForm()
  if (isRecord(piece.usage)) heard.usage = piece.usage
  const [choice = {}] = piece.choices as unknown[]
  if (!isRecord(choice)) throw unexpectedForm()
  if (typeof choice.finish_reason === "string") heard.finish = choice.finish_reason
  const delta = choice.delta ?? {}
  if (!isRecord(delta)) throw unexpectedForm()
  const thought = delta.reasoning_content ?? delta.reasoning
  if (typeof thought === "string") heard.others += thought.length
  const say = (text: string) => {
    if (text === "") return
    heard.text += text
    onText?.(text)
  }
  for (const part of partsIn(delta.content))
    if (part.type === "thinking") heard.others += JSON.stringify(part.thinking ?? "").length
    else if (part.type === "text" && typeof part.text === "string") say(part.text)
  if (typeof delta.refusal === "string" && delta.refusal !== "") {
    heard.refused = true
    say(delta.refusal)
  }
  const calls = delta.tool_calls ?? []
  if (!Array.isArray(calls)) throw unexpectedForm()
  for (const call of calls) addCallPiece(isRecord(call) ? call : {}, heard)
}

/** A text, or a list of parts, some of which are thoughts. */
function partsIn(content: unknown): Record<string, unknown>[] {
  if (content === undefined || content === null) return []
  if (typeof content === "string") return [{ type: "text", text: content }]
  if (Array.isArray(content) && content.every(isRecord)) return content
  throw unexpectedForm()
}

function unexpectedForm(): StreamProblem {
  return new StreamProblem("answered in another form than a chat-completions server does")
}

function addCallPiece(delta: Record<string, unknown>, heard: PartialReply): void {
  const wanted = isRecord(delta.function) ? delta.function : {}
  const name = typeof wanted.name === "string" ? wanted.name.trim() : ""
  const raw = typeof wanted.arguments === "string" ? wanted.arguments : (JSON.stringify(wanted.arguments) ?? "")
  const given = withoutUndefined({
    id: typeof delta.id === "string" && delta.id.trim() !== "" ? delta.id : undefined,
    index: typeof delta.index === "number" ? delta.index : undefined,
  })
  const call = continuedCall(heard.calls, name, raw === "null" ? "" : raw, given) ?? addCall(heard, given)
  Object.assign(call.given, given)
  call.name ||= name
  call.raw += raw === "null" ? "" : raw
  heard.others += name.length + raw.length
  const extra = delta.extra_content
  if (isRecord(extra) && isRecord(extra.google) && extra.google.thought_signature) call.extra ??= extra
}

/** Adds a call, without a name and arguments until the server sends them. */
export function addCall(heard: PartialReply, given: StreamedCall["given"] = {}): StreamedCall {
  const isTaken = given.id === undefined || heard.calls.some(({ id }) => id === given.id)
  const id = isTaken ? `call_${heard.calls.length + 1}_${crypto.randomUUID().slice(0, 8)}` : given.id!
  const call: StreamedCall = { id, name: "", raw: "", given: {} }
  heard.calls.push(call)
  return call
}

/**
 * The call that a piece continues. Most servers number their calls. Some do not, some give all calls the same number or id, and
 * some repeat the name with every piece.
 */
function continuedCall(
  calls: StreamedCall[],
  name: string,
  raw: string,
  { id, index }: StreamedCall["given"],
): StreamedCall | undefined {
  const last = calls.findLast((call) => {
    if (name !== "" && call.name !== "" && call.name !== name) return false
    if (index !== undefined) return call.given.index === index
    return id === undefined ? name === "" : call.given.id === id
  })
  if (!last || name === "" || last.name === "") return last
  const isOther = id !== undefined && last.given.id !== undefined && id !== last.given.id
  const begins = /^\s*[{[]/.test(raw)
  const isNew = isOther ? begins || (raw.trim() === "" && isComplete(last.raw)) : begins && isComplete(last.raw)
  return isNew ? undefined : last
}

function isComplete(raw: string): boolean {
  try {
    JSON.parse(raw)
    return true
  } catch {
    return false
  }
}
