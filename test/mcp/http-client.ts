import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { Agent, type IncomingMessage, request } from "node:http"
import { join } from "node:path"
import { beforeAll, onTestFinished } from "vitest"
import { DEX } from "../support/dex.ts"
import { MODERN, type Reply, type Result } from "./client.ts"

export type Answer = { status: number; headers: IncomingMessage["headers"]; body: string }
export type Ask = { method?: string; path?: string; headers?: Record<string, string>; body?: string }
export type Served = {
  child: ChildProcess
  port: number
  token: string
  stdout(): string
  stderr(): string
  exited: Promise<number | null>
  /** Nothing is added, not even a Host. */
  bare(ask: Ask): Promise<Answer>
  /** With the right Host and token. */
  ask(ask: Ask): Promise<Answer>
}

export const tokenFile = (home: string) => join(home, ".dex", "http-token")

type ServeOptions = { args?: string[]; stdin?: "pipe" | "ignore"; env?: Record<string, string> }

/** A real `dex serve --port 0` as a child process. By default its stdin is an ended pipe. */
export async function serveHttp(home: string, options: ServeOptions = {}): Promise<Served> {
  return start(home, options, onTestFinished)
}

/** One such server for all tests of a file that do not change it; call it at the top of the file, after its home is made. */
export function serveHttpOnce(home: string, options: ServeOptions = {}): () => Served {
  let served: Served | undefined
  beforeAll(async () => {
    const ends: (() => void)[] = []
    served = await start(home, options, (end) => void ends.push(end))
    return () => {
      for (const end of ends) end()
    }
  })
  return () => served!
}

async function start(
  home: string,
  { args = [], stdin = "pipe", env = {} }: ServeOptions,
  atEnd: (end: () => void) => void,
): Promise<Served> {
  const child = spawn(process.execPath, [DEX, "serve", "--port", "0", ...args], {
    cwd: home,
    env: { PATH: process.env.PATH ?? "", HOME: home, TZ: "UTC", ...env },
    stdio: [stdin, "pipe", "pipe"],
  })
  atEnd(() => void child.kill("SIGKILL"))
  child.stdin?.end()
  let stdout = ""
  let stderr = ""
  child.stdout!.on("data", (chunk) => {
    stdout += chunk
  })
  const exited = new Promise<number | null>((resolve) => child.on("exit", resolve))
  const port = await new Promise<number>((resolve, reject) => {
    child.stderr!.on("data", (chunk) => {
      stderr += chunk
      const found = /Serving MCP at http:\/\/\S+:(\d+)\/mcp[\s\S]*http-token\n/.exec(stderr)
      if (found) resolve(Number(found[1]))
    })
    exited.then((code) => reject(new Error(`The server ended with ${code}. ${stderr}`)))
  })
  const token = readFileSync(tokenFile(home), "utf8").trim()
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  atEnd(() => agent.destroy())
  const bare = ({ method = "GET", path = "/mcp", headers = {}, body }: Ask) =>
    new Promise<Answer>((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port,
          method,
          path,
          headers: { ...lengthOf(body, headers), ...headers },
          setHost: false,
          agent,
        },
        async (response: IncomingMessage) => {
          try {
            const chunks: Buffer[] = []
            for await (const chunk of response) {
              chunks.push(chunk)
              if (path.startsWith("/suggestions") && response.statusCode === 200) break // it never ends
            }
            resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks).toString() })
          } catch (error) {
            reject(error as Error)
          }
        },
      )
      sent.on("error", reject)
      sent.end(body)
    })
  const ask = ({ headers, ...more }: Ask) =>
    bare({ ...more, headers: { host: `127.0.0.1:${port}`, authorization: `Bearer ${token}`, ...headers } })
  return { child, port, token, exited, bare, ask, stdout: () => stdout, stderr: () => stderr }
}

export const JSON_POST = { "content-type": "application/json", accept: "application/json, text/event-stream" }

export type HttpClient = {
  session?: string
  send(message: object): Promise<Answer>
  request(method: string, params?: object): Promise<Reply>
  call(name: string, input?: object): Promise<Result>
}

/** Talks to it like an agent of that protocol era. */
export async function connectHttp(served: Served, era: string): Promise<HttpClient> {
  let last = 0
  let session: string | undefined
  const modern = era === "2026-07-28"
  const send = (message: { method?: string; params?: { name?: string; uri?: string } }) =>
    served.ask({
      method: "POST",
      headers: {
        ...JSON_POST,
        "mcp-protocol-version": era,
        ...(modern && { "mcp-method": message.method! }),
        ...(modern && message.params?.name !== undefined && { "mcp-name": message.params.name }),
        ...(session !== undefined && { "mcp-session-id": session }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    })
  const ask = async (method: string, params: object = {}) => {
    const answer = await send({
      id: ++last,
      method,
      params: modern ? { ...params, _meta: MODERN } : params,
    } as object)
    return { answer, reply: replyIn(answer) }
  }
  if (!modern) {
    const clientInfo = { name: "test", version: "1" }
    const { answer, reply } = await ask("initialize", { protocolVersion: era, capabilities: {}, clientInfo })
    if (!reply.result) throw new Error(`No session: ${answer.status} ${answer.body}`)
    session = String(answer.headers["mcp-session-id"])
    await send({ method: "notifications/initialized" })
  }
  const client: HttpClient = {
    ...(session !== undefined && { session }),
    send,
    request: async (method, params) => (await ask(method, params)).reply,
    call: async (name, input = {}) => {
      const { reply } = await ask("tools/call", { name, arguments: input })
      if (!reply.result) throw new Error(JSON.stringify(reply.error))
      return reply.result
    },
  }
  return client
}

/** Node's client leaves it out for methods that seldom have a body. */
function lengthOf(body: string | undefined, headers: Record<string, string>): Record<string, number> {
  return body === undefined || "transfer-encoding" in headers ? {} : { "content-length": Buffer.byteLength(body) }
}

/** The only message of an answer, which is JSON or a stream of events. */
function replyIn({ headers, body }: Answer): Reply {
  const json = headers["content-type"]?.startsWith("text/event-stream") ? /^data: (\{.*)$/m.exec(body)?.[1] : body
  return JSON.parse(json ?? "{}") as Reply
}
