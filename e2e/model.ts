import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { PROTOCOLS } from "./protocols.ts"

// A scripted model, so that real agents can run without an account or a network. It has no state between requests: each
// request contains the conversation so far, so retries, resumed sessions and sub-agents need no bookkeeping.

export type Turn = { role: "user" | "assistant" | "tool" | "other"; text: string }
/** `type` is set unless the tool is a plain function. */
export type OfferedTool = { name: string; type?: "custom" | "tool_search"; namespace?: string }
/** The parts of an agent's request that all protocols have. */
export type Asked = { turns: Turn[]; offered: OfferedTool[] }

export type Call = { tool: string; input: Record<string, unknown> | string }
/** A call may depend on the last tool's result, as a real model's does. */
export type Step = { text?: string; call?: Call | ((lastResult: string) => Call); tokens?: number }
/** The newest user message that contains a `prompt` selects the script, and the number of answers since then the step. */
export type Script = { prompt: string; steps: Step[] }

/** The answer to a request that offers no tools. */
export const TITLE = "A scripted title"

/** `tokens` is how full the context is, as the model reports it. */
export type Said = { text?: string; call?: { tool: OfferedTool; input: Call["input"] }; tokens?: number }

export type Model = {
  url: string
  /** Replaces the scripts. */
  play(...scripts: Script[]): void
  /** Replaces the scripts with this function. If it returns a number, the request is refused with that status. */
  answerBy(answer: ((asked: Asked) => Said | number) | undefined): void
  /** Every request so far, oldest first. */
  asked: Asked[]
  /** Requests that match no protocol, for example from a newer version of an agent. */
  unknown: string[]
  close(): Promise<void>
}

export async function startModel(): Promise<Model> {
  let scripts: Script[] = []
  let answer: ((asked: Asked) => Said | number) | undefined
  const asked: Asked[] = []
  const unknown: string[] = []
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname
    if (request.method === "GET" && path.endsWith("/models")) {
      // Grok asks which models there are.
      const models = { object: "list", data: [{ id: "scripted", object: "model", context_window: 128_000 }] }
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(models))
      return
    }
    const protocol = PROTOCOLS.find((one) => request.method === "POST" && one.path.test(path))
    const body = await bodyOf(request)
    if (!protocol || !body) {
      unknown.push(`${request.method} ${path}`)
      response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"no such route"}}')
      return
    }
    const now = protocol.read(body)
    asked.push(now)
    const said = answer ? answer(now) : sayOrExcuse(now, scripts)
    if (typeof said !== "number") return protocol.write(response, said, body)
    response.writeHead(said, { "content-type": "application/json" }).end(JSON.stringify(refusal(said)))
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    play: (...next) => {
      scripts = next
    },
    answerBy: (next) => {
      answer = next
    },
    asked,
    unknown,
    close: () =>
      new Promise((closed) => {
        server.closeAllConnections()
        server.close(() => closed())
      }),
  }
}

function refusal(code: number) {
  const type = code === 429 ? "rate_limit_error" : "authentication_error"
  return { type: "error", error: { type, code, message: `refused with ${code}` } }
}

/** The tools' results since `prompt`, in the order of the calls, from the last request that contains it. */
export function resultsSince(prompt: string, asked: Asked[]): string[] {
  const last = asked.findLast(({ turns }) => turns.some((turn) => isPrompt(turn, prompt)))
  if (!last) return []
  const start = last.turns.findLastIndex((turn) => isPrompt(turn, prompt))
  return last.turns.slice(start).flatMap(({ role, text }) => (role === "tool" ? [text] : []))
}

function isPrompt({ role, text }: Turn, prompt: string): boolean {
  return role === "user" && text.includes(prompt)
}

/** If a script fails on a tool's result, the agent gets the error as an answer, so that it does not wait. */
function sayOrExcuse(asked: Asked, scripts: Script[]): Said {
  try {
    return sayTo(asked, scripts)
  } catch (error) {
    return { text: `The script cannot go on: ${error}` }
  }
}

/** Agents offer no tools when they ask for a title or a summary. */
function sayTo({ turns, offered }: Asked, scripts: Script[]): Said {
  if (offered.length === 0) return { text: TITLE }
  for (let i = turns.length - 1; i >= 0; i--) {
    const script = scripts.find(({ prompt }) => isPrompt(turns[i]!, prompt))
    if (!script) continue
    const since = turns.slice(i + 1)
    const step = script.steps[since.filter(({ role }) => role === "assistant").length]
    if (!step) return { text: "The script is over." }
    if (!step.call) return { text: step.text ?? "" }
    const lastResult = since.findLast(({ role }) => role === "tool")?.text ?? ""
    const { tool: name, input } = typeof step.call === "function" ? step.call(lastResult) : step.call
    const tool =
      offered.find((one) => one.name === name) ??
      offered.find((one) => /[_-]$/.test(one.name.slice(0, -name.length)) && one.name.endsWith(name))
    if (!tool) return { text: `No tool ${name} is offered, only: ${offered.map((one) => one.name).join(", ")}` }
    return { ...(step.text !== undefined && { text: step.text }), call: { tool, input } }
  }
  return { text: "No script is for this." }
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  try {
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
    return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : undefined
  } catch {
    return undefined // not JSON: a probe, or a request that `unknown` will list
  }
}
