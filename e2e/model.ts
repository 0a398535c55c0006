import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { PROTOCOLS } from "./protocols.ts"

// A model that says what a script tells it to, so that real agents can be run without an account or a network. It keeps
// nothing between requests: what was said so far stands in each request, so retries, resumed sessions and sub-agents
// need no bookkeeping.

export type Turn = { role: "user" | "assistant" | "tool" | "other"; text: string }
/** `type` where it is not a plain function. */
export type OfferedTool = { name: string; type?: "custom" | "tool_search"; namespace?: string }
/** One request of an agent, as far as the four protocols have it in common. */
export type Asked = { turns: Turn[]; offered: OfferedTool[] }

export type Call = { tool: string; input: Record<string, unknown> | string }
/** A call may depend on what the last tool answered, as a model's does. */
export type Step = { text?: string; call?: Call | ((lastResult: string) => Call) }
/** The newest message of the user that holds `prompt` chooses the script; the answers given since choose the step. */
export type Script = { prompt: string; steps: Step[] }

/** What it says when it is asked without tools. */
export const TITLE = "A scripted title"

export type Said = { text?: string; call?: { tool: OfferedTool; input: Call["input"] } }

export type Model = {
  url: string
  /** Replaces the scripts. */
  play(...scripts: Script[]): void
  /** Answers instead of the scripts, whatever is offered; a number is the status with which it refuses. */
  answerBy(answer: ((asked: Asked) => Said | number) | undefined): void
  /** Every request so far, oldest first. */
  asked: Asked[]
  /** Requests that no protocol knows: an agent that began to ask something else. */
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

/** What the tools answered since `prompt`, in the order of the calls, as the last request that holds it tells. */
export function resultsSince(prompt: string, asked: Asked[]): string[] {
  const last = asked.findLast(({ turns }) => turns.some((turn) => isPrompt(turn, prompt)))
  if (!last) return []
  const start = last.turns.findLastIndex((turn) => isPrompt(turn, prompt))
  return last.turns.slice(start).flatMap(({ role, text }) => (role === "tool" ? [text] : []))
}

function isPrompt({ role, text }: Turn, prompt: string): boolean {
  return role === "user" && text.includes(prompt)
}

/** A script that cannot go on with what a tool answered must not leave the agent waiting. */
function sayOrExcuse(asked: Asked, scripts: Script[]): Said {
  try {
    return sayTo(asked, scripts)
  } catch (error) {
    return { text: `The script cannot go on: ${error}` }
  }
}

/** Agents also ask for titles and summaries; they offer no tools then. */
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
    return undefined // no JSON: a probe, or something that `unknown` then names
  }
}
