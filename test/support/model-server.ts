import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"

/** A received request. `body` is the request as it was sent. */
export type ModelServerRequest = {
  path: string
  headers: IncomingHttpHeaders
  body: {
    model?: string
    messages: {
      role: string
      content: string | null
      tool_calls?: { id: string; function: { name: string; arguments: string } }[]
      tool_call_id?: string
    }[]
    tools?: { type: string; function: { name: string; description: string; parameters: object } }[]
    stream?: boolean
    max_tokens?: number
    max_completion_tokens?: number
    temperature?: number
    response_format?: unknown
    stream_options?: unknown
  }
}

/** One thing that the model does in its stream. */
export type Step =
  | { text: string }
  | { reasoning: string }
  | { refusal: string }
  /** All calls in parallel. Anything may be missing or wrong; arguments that are text come in two pieces. */
  | { calls: { id?: string | null; name?: string; arguments?: unknown; index?: number; extra?: object }[] }
  /** Any piece of a stream, as it is. */
  | { chunk: unknown }
  /** Bytes, as they are. */
  | { raw: string }
  /** Continues when this resolves: slow tokens, without a clock. */
  | { wait: Promise<unknown> | (() => Promise<unknown>) }
  /** Breaks the connection. Nothing comes after it. */
  | { reset: true }
  /** Ends the answer without a final piece. Nothing comes after it. */
  | { end: true }
  /** Sends nothing more; the connection stays open. */
  | { hang: true }
  /** The finish reason, instead of stop, or of tool_calls if there were calls. */
  | { finish: string }
  /** The usage, instead of 100 and 10; null if the server does not report it. */
  | { usage: { prompt_tokens?: number; completion_tokens?: number } | null }

export type Answer =
  | Step[]
  /** The same steps, in pieces of so many bytes, or under another content type. */
  | { steps: Step[]; bytes?: number; type?: string }
  | Plain
  /** The connection is broken before anything is sent. */
  | { reset: true }
  | { hang: true }

/** An answer that is not a stream. */
type Plain = { status?: number; headers?: Record<string, string>; body?: string; json?: unknown }

/** The model's script: a function from a request to an answer. `turn` counts from 0. */
export type Script = (asked: ModelServerRequest, turn: number) => Answer | Promise<Answer>

export type ModelServer = {
  /** In the form that llm.provider needs: with /v1. */
  url: string
  requests: ModelServerRequest[]
  /** The most requests that were ever open at once. */
  mostAtOnce(): number
  /** Resolves when the client has closed a connection that was not finished. */
  left: Promise<void>
  close(): void
}

/**
 * Starts a chat-completions server on loopback that ends with the test. Its model is a script, but it uses the real wire format,
 * so that it can do anything that a server can do to a client.
 */
export async function modelServer(script: Script): Promise<ModelServer> {
  const server = await startModelServer(script)
  onTestFinished(server.close)
  return server
}

/** A script that gives the first answer to the first request, and so on; the last one to all that follow. */
export function answersInTurn(...answers: Answer[]): Script {
  return (_, turn) => answers[Math.min(turn, answers.length - 1)]!
}

export async function startModelServer(script: Script): Promise<ModelServer> {
  const left = Promise.withResolvers<void>()
  const requests: ModelServerRequest[] = []
  let open = 0
  let most = 0
  const server = createServer(async (request, response) => {
    most = Math.max(most, ++open)
    response.once("close", () => {
      open--
      if (!response.writableEnded) left.resolve()
    })
    response.socket?.setNoDelay(true)
    const body = (await readBody(request)) as ModelServerRequest["body"]
    const one = { path: request.url!, headers: request.headers, body }
    const turn = requests.push(one) - 1
    if (request.url !== "/v1/chat/completions")
      return send(response, { status: 404, json: { error: { message: "no such address" } } })
    await answer(response, await script(one, turn), body.model ?? "")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    mostAtOnce: () => most,
    left: left.promise,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function answer(response: ServerResponse, what: Answer, model: string): Promise<void> {
  if (Array.isArray(what)) return stream(response, { steps: what }, model)
  if ("steps" in what) return stream(response, what, model)
  if ("reset" in what) return void response.socket?.resetAndDestroy()
  if ("hang" in what) return
  send(response, what)
}

type Streamed = { steps: Step[]; bytes?: number; type?: string }

async function stream(response: ServerResponse, { steps, bytes, type = "text/event-stream" }: Streamed, model: string) {
  response.writeHead(200, { "content-type": type })
  response.flushHeaders()
  const write = async (text: string) => {
    const all = Buffer.from(text)
    const size = bytes ?? all.length
    for (let at = 0; at < all.length && !response.destroyed; at += size) {
      response.write(all.subarray(at, at + size))
      // So that every piece is sent separately.
      await new Promise(setImmediate)
    }
  }
  const event = (value: unknown) => write(`data: ${JSON.stringify(value)}\n\n`)
  const piece = (delta: object, finish: string | null = null) =>
    event({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1_700_000_000,
      model,
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
  let finish = "stop"
  let usage: object | null = { prompt_tokens: 100, completion_tokens: 10 }
  let calls = 0
  await piece({ role: "assistant", content: "" })
  for (const step of steps) {
    if ("text" in step) await piece({ content: step.text })
    else if ("reasoning" in step) await piece({ reasoning_content: step.reasoning })
    else if ("refusal" in step) await piece({ refusal: step.refusal })
    else if ("calls" in step) {
      finish = "tool_calls"
      for (const delta of callDeltas(step.calls, calls)) await piece({ tool_calls: [delta] })
      calls += step.calls.length
    } else if ("chunk" in step) await event(step.chunk)
    else if ("raw" in step) await write(step.raw)
    else if ("wait" in step) await (typeof step.wait === "function" ? step.wait() : step.wait)
    else if ("finish" in step) finish = step.finish
    else if ("usage" in step) usage = step.usage
    else if ("reset" in step) return void response.socket?.resetAndDestroy()
    else if ("end" in step) return void response.end()
    else return // hangs
  }
  await piece({}, finish)
  if (usage) await event({ id: "chatcmpl-1", object: "chat.completion.chunk", model, choices: [], usage })
  await write("data: [DONE]\n\n")
  response.end()
}

/** Calls as OpenAI streams them: the name first, then the arguments in pieces. */
function* callDeltas(calls: Extract<Step, { calls: unknown }>["calls"], before: number): Generator<object> {
  for (const [i, call] of calls.entries()) {
    const index = call.index ?? before + i
    const text = typeof call.arguments === "string" ? call.arguments : undefined
    const half = text === undefined ? 0 : Math.floor(text.length / 2)
    yield {
      index,
      ...(call.id !== null && { id: call.id ?? `call_${before + i}` }),
      type: "function",
      function: {
        ...(call.name !== undefined && { name: call.name }),
        arguments: text === undefined ? (call.arguments ?? "") : text.slice(0, half),
      },
      ...(call.extra && { extra_content: call.extra }),
    }
    if (text) yield { index, function: { arguments: text.slice(half) } }
  }
}

function send(response: ServerResponse, { status = 200, headers, body = "", json }: Plain): void {
  const type = json === undefined ? {} : { "content-type": "application/json" }
  response.writeHead(status, { ...type, ...headers })
  response.end(json === undefined ? body : JSON.stringify(json))
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString("utf8") || "{}")
}
