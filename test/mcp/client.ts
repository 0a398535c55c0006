import { type ChildProcess, spawn } from "node:child_process"
import { beforeAll, onTestFinished } from "vitest"
import { DEX, environment } from "../support/dex.ts"

export type Reply = {
  id: string | number | null
  result?: Result
  error?: { code: number; message: string; data?: unknown }
}
export type Result = Record<string, unknown> & {
  content: { type: string; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}
export type Client = {
  child: ChildProcess
  /** Every line from stdout, unchanged. */
  lines: string[]
  stderr(): string
  send(line: string): void
  request(method: string, params?: object): Promise<Reply>
  call(name: string, input?: object): Promise<Result>
  /** The exact line that answered a call. */
  rawCall(name: string, input?: object): Promise<string>
  exited: Promise<number | null>
}

/** Sent with each request in the stateless era. */
export const MODERN = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
}

type ConnectOptions = { era?: string; cwd?: string; env?: Record<string, string>; args?: string[]; name?: string }

/** A real server as a child process, spoken to in lines of JSON-RPC. */
export async function connect(home: string, options: ConnectOptions = {}): Promise<Client> {
  return start(home, options, onTestFinished)
}

/** One such server for all tests of a file or group that do not change it; call it at the top, after its home is made. */
export function connectOnce(home: string, options: ConnectOptions = {}): () => Client {
  let client: Client | undefined
  beforeAll(async () => {
    let end = () => {}
    client = await start(home, options, (kill) => {
      end = kill
    })
    return end
  })
  return () => client!
}

async function start(
  home: string,
  { era = "2025-11-25", cwd = home, env = {}, args = ["serve"], name = "test" }: ConnectOptions,
  atEnd: (end: () => void) => void,
): Promise<Client> {
  const child = spawn(process.execPath, [DEX, ...args], {
    cwd,
    env: environment(home, env),
    stdio: ["pipe", "pipe", "pipe"],
  })
  atEnd(() => void child.kill("SIGKILL"))
  const lines: string[] = []
  const waiting = new Map<string | number | null, (line: string) => void>()
  let stderr = ""
  let rest = ""
  child.stderr.on("data", (chunk) => {
    stderr += chunk
  })
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n")
    rest = parts.pop()!
    for (const line of parts) {
      lines.push(line)
      try {
        waiting.get((JSON.parse(line) as Reply).id)?.(line)
      } catch {
        // not JSON: the test that checks `lines` reports it
      }
    }
  })
  child.stdin.on("error", () => {})
  // After `close`, not `exit`: by then every line has arrived.
  const exited = new Promise<number | null>((resolve) => child.on("close", resolve))
  let last = 0
  const send = (line: string) => void child.stdin.write(`${line}\n`)
  const ask = (method: string, params: object = {}): Promise<string> => {
    const id = `r${++last}`
    const more = era === "2026-07-28" ? { _meta: MODERN } : {}
    return new Promise((resolve, reject) => {
      waiting.set(id, resolve)
      exited.then(() => reject(new Error(`The server ended before it answered ${method}. ${stderr}`)))
      send(JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, ...more } }))
    })
  }
  const rawCall = (name: string, input: object = {}) => ask("tools/call", { name, arguments: input })
  const request = async (method: string, params?: object) => JSON.parse(await ask(method, params)) as Reply
  const client: Client = {
    child,
    lines,
    stderr: () => stderr,
    send,
    request,
    rawCall,
    call: async (name, input) => {
      const reply = JSON.parse(await rawCall(name, input)) as Reply
      if (!reply.result) throw new Error(JSON.stringify(reply.error))
      return reply.result
    },
    exited,
  }
  if (era !== "2026-07-28") {
    await request("initialize", {
      protocolVersion: era,
      capabilities: {},
      clientInfo: { name, version: "1" },
    })
    send(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }))
  }
  return client
}
