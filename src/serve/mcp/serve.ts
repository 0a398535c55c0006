import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  parseJSONRPCMessage,
  type Server,
  type Transport,
} from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { createDex } from "../../app/dex.ts"
import { waitForTraces } from "../../app/run.ts"
import { codeOf } from "../../core/error.ts"
import { toJson } from "../../render/json.ts"
import { safe } from "../../render/terminal.ts"
import { createFreshness } from "./fresh.ts"
import { reuseDex } from "./hold.ts"
import type { ServerParts } from "./run-call.ts"
import { createServer } from "./server.ts"

export type ServeOptions = { version: string; env: Record<string, string | undefined>; cwd: string }

/** Creates the server. The default has all tools, resources and prompts. */
export type CreateServer = (parts: ServerParts) => Server

/** How long requests that arrived before stdin closed may still be answered, in milliseconds. */
const LAST_ANSWERS_MS = 1_000
/**
 * How long a server that has nothing more to do still lives, in milliseconds, so that V8's threads can finish what they compile. If
 * one of them waits for garbage collection while Node exits, the process never ends (nodejs/node#54918).
 */
const SETTLE_MS = 20
/** How long the process may take to end after stdin closed, in milliseconds, including the time for the last answers. */
const END_WITHIN_MS = 1_200
const PARENT_CHECK_INTERVAL_MS = 1_000
/** How long after its start a server reads new messages, in milliseconds, unless a tool is called before. */
const READ_AFTER_MS = 100

/**
 * Serves MCP on stdin and stdout, in the client's version of the protocol. Ends the process when stdin closes or the parent dies,
 * even if something is running: the next sync continues an interrupted one, and an orphan is useless.
 */
export function serve({ version, env, cwd }: ServeOptions, create: CreateServer = createServer): Promise<never> {
  const write = reserveStdout()
  const log = (line: string) => void process.stderr.write(`dex: ${safe(line)}\n`)
  process.on("uncaughtException", (error) => log(error.stack ?? String(error)))
  process.on("unhandledRejection", (reason) => log(String((reason as Error)?.stack ?? reason)))

  const start = { env: { ...env }, cwd, version }
  const fresh = createFreshness(start, log)
  const use = reuseDex(() => createDex(start))
  const transport = lineTransport(write)
  const createReading = () => {
    const server = create({ version, use, fresh, log })
    // Many clients only ask what the server can do, and leave. Starting the thread takes longer than that.
    server.oninitialized = () => void setTimeout(() => fresh.readNewMessages(0), READ_AFTER_MS).unref()
    return server
  }
  serveStdio(createReading, { transport, onerror: (error) => log(error.message) })

  process.stdin.on("data", transport.receive)
  const end = (closedAt: number) => {
    const remainingMs = closedAt + END_WITHIN_MS - performance.now()
    void Promise.all([fresh.stop(Math.max(0, remainingMs)), waitForTraces()]).then(([isIdle]) => endProcess(isIdle))
  }
  const endNow = () => end(performance.now())
  process.stdin.on("error", endNow)
  process.stdin.on("end", () => {
    const closedAt = performance.now()
    void transport.whenAnswered(LAST_ANSWERS_MS).then(() => end(closedAt))
  })
  whenParentDies(endNow)
  return new Promise<never>(() => {})
}

/** Reserves stdout for JSON-RPC: everything else that is printed goes to stderr. */
export function reserveStdout(): (line: string) => void {
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write
  for (const name of ["log", "info", "debug", "table", "dir"] as const) console[name] = console.error
  return (line) => void write(line)
}

/**
 * Ends the process. If the thread is still working, the process kills itself, because Node crashes if it exits while a thread is
 * inside SQLite. This is safe, because every write is a transaction, and happens only if the thread does not finish the current
 * conversation in time.
 */
export function endProcess(isIdle: boolean): void {
  if (isIdle) setTimeout(() => process.exit(0), SETTLE_MS)
  else process.kill(process.pid, "SIGKILL")
}

/** Calls `end` when the parent dies. Stdin may then stay open, if another child of the parent has inherited it. */
function whenParentDies(end: () => void): void {
  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent || !mayBeAlive(parent)) end()
  }, PARENT_CHECK_INTERVAL_MS).unref()
}

/**
 * On Windows, false if the process has ended. Elsewhere always true, because a process whose parent has ended gets a new parent,
 * and `process.ppid` changes.
 */
function mayBeAlive(pid: number): boolean {
  if (process.platform !== "win32") return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) !== "ESRCH"
  }
}

const PARSE_ERROR = -32700
const INVALID_REQUEST = -32600
/** The maximum length of a line, in bytes. A longer line is refused without being stored, because no valid request needs it. */
const MAX_LINE_BYTES = 10 << 20
const NEWLINE = 10

type LineTransport = Transport & {
  receive(chunk: Buffer): void
  /** Resolves when every request has its answer, or after `withinMs`. */
  whenAnswered(withinMs: number): Promise<void>
}

/**
 * JSON-RPC, one message per line. The SDK's own transport drops lines that are not messages; this one sends an error, so that
 * each request is answered. `write` is the only way to the client.
 */
function lineTransport(write: (line: string) => void): LineTransport {
  const requests = trackRequests()
  let pieces: Buffer[] = []
  let lineBytes = 0
  let isTooLong = false
  const refuse = (id: string | number | null, code: number, message: string) =>
    write(`${toJson({ jsonrpc: "2.0", id, error: { code, message } })}\n`)
  const handleLine = (line: string) => {
    if (line.trim() === "") return
    let value: unknown
    try {
      value = JSON.parse(line)
    } catch {
      return refuse(null, PARSE_ERROR, "This line is not JSON. Send one JSON-RPC message per line.")
    }
    const message = messageOf(value)
    if (message) {
      requests.add(message)
      transport.onmessage?.(message)
    } else if (!isAnswer(value))
      refuse(idOf(value), INVALID_REQUEST, "This is not a JSON-RPC 2.0 message; batches are not supported.")
  }
  const endLine = () => {
    if (isTooLong) refuse(null, INVALID_REQUEST, `This line is longer than ${MAX_LINE_BYTES} bytes.`)
    else handleLine(Buffer.concat(pieces, lineBytes).toString("utf8"))
    pieces = []
    lineBytes = 0
    isTooLong = false
  }
  const addPiece = (piece: Buffer) => {
    lineBytes += piece.length
    if (lineBytes > MAX_LINE_BYTES) {
      isTooLong = true
      pieces = []
    } else if (piece.length > 0) pieces.push(piece)
  }
  const transport: LineTransport = {
    whenAnswered: requests.whenAnswered,
    receive: (chunk) => {
      let from = 0
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
        addPiece(chunk.subarray(from, end))
        endLine()
        from = end + 1
      }
      addPiece(chunk.subarray(from))
    },
    start: async () => {},
    send: async (message) => {
      write(`${toJson(message)}\n`)
      requests.finish(message)
    },
    close: async () => transport.onclose?.(),
  }
  return transport
}

/** Keeps track of open requests, because `printf … | dex serve` closes stdin before it has its answers. */
function trackRequests() {
  const ids = new Set<unknown>()
  let onLastAnswer = () => {}
  const end = (id: unknown) => {
    ids.delete(id)
    if (ids.size === 0) onLastAnswer()
  }
  return {
    add(message: JSONRPCMessage): void {
      if (isJSONRPCRequest(message)) ids.add(message.id)
      else if (isJSONRPCNotification(message) && message.method === "notifications/cancelled")
        end(message.params?.requestId)
    },
    finish(message: JSONRPCMessage): void {
      if (!("method" in message)) end(message.id)
    },
    whenAnswered: (withinMs: number) =>
      new Promise<void>((resolve) => {
        onLastAnswer = resolve
        if (ids.size === 0) resolve()
        else setTimeout(resolve, withinMs)
      }),
  }
}

function messageOf(value: unknown): JSONRPCMessage | undefined {
  try {
    return parseJSONRPCMessage(value)
  } catch {
    return undefined
  }
}

/** True for an answer. A malformed answer gets no answer, because two programs could otherwise answer each other forever. */
function isAnswer(value: unknown): boolean {
  return typeof value === "object" && value !== null && !("method" in value) && ("result" in value || "error" in value)
}

function idOf(value: unknown): string | number | null {
  const id = typeof value === "object" && value !== null && "id" in value ? value.id : null
  return typeof id === "string" || typeof id === "number" ? id : null
}
