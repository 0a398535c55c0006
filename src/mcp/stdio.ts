import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  parseJSONRPCMessage,
  type Transport,
} from "@modelcontextprotocol/server"
import { toJson } from "../render/json.ts"

const PARSE_ERROR = -32700
const INVALID_REQUEST = -32600
/** A longer line is refused, not kept: no request of ours needs it. */
const LONGEST_LINE_BYTES = 10 << 20
const NEWLINE = 10

export type LineTransport = Transport & {
  receive(chunk: Buffer): void
  /** Comes back when every request that came has its answer, or after so long. */
  answered(withinMs: number): Promise<void>
}

/**
 * JSON-RPC, a message a line. The SDK's own transport drops what is not a message; here whoever sent it is told, so that
 * each request is answered. `write` is the only way to the client.
 */
export function lineTransport(write: (line: string) => void): LineTransport {
  const open = openRequests()
  let pieces: Buffer[] = []
  let held = 0
  let tooLong = false
  const refuse = (id: string | number | null, code: number, message: string) =>
    write(`${toJson({ jsonrpc: "2.0", id, error: { code, message } })}\n`)
  const takeLine = (line: string) => {
    if (line.trim() === "") return
    let value: unknown
    try {
      value = JSON.parse(line)
    } catch {
      return refuse(null, PARSE_ERROR, "This line is not JSON. Send one JSON-RPC message a line.")
    }
    const message = messageOf(value)
    if (message) {
      open.came(message)
      transport.onmessage?.(message)
    } else if (!isAnswer(value))
      refuse(idOf(value), INVALID_REQUEST, "This is not a JSON-RPC 2.0 message; batches are not taken.")
  }
  const endLine = () => {
    if (tooLong) refuse(null, INVALID_REQUEST, `This line is longer than ${LONGEST_LINE_BYTES} bytes.`)
    else takeLine(Buffer.concat(pieces, held).toString("utf8"))
    pieces = []
    held = 0
    tooLong = false
  }
  const keep = (piece: Buffer) => {
    held += piece.length
    if (held > LONGEST_LINE_BYTES) {
      tooLong = true
      pieces = []
    } else if (piece.length > 0) pieces.push(piece)
  }
  const transport: LineTransport = {
    answered: open.answered,
    receive: (chunk) => {
      let from = 0
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        keep(chunk.subarray(from, at))
        endLine()
        from = at + 1
      }
      keep(chunk.subarray(from))
    },
    start: async () => {},
    send: async (message) => {
      write(`${toJson(message)}\n`)
      open.sent(message)
    },
    close: async () => transport.onclose?.(),
  }
  return transport
}

/** `printf … | dex serve` closes stdin before it has its answers. */
function openRequests() {
  const ids = new Set<unknown>()
  let last = () => {}
  const end = (id: unknown) => {
    ids.delete(id)
    if (ids.size === 0) last()
  }
  return {
    came(message: JSONRPCMessage): void {
      if (isJSONRPCRequest(message)) ids.add(message.id)
      else if (isJSONRPCNotification(message) && message.method === "notifications/cancelled")
        end(message.params?.requestId)
    },
    sent(message: JSONRPCMessage): void {
      if (!("method" in message)) end(message.id)
    },
    answered: (withinMs: number) =>
      new Promise<void>((resolve) => {
        last = resolve
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

/** A malformed answer must not be answered: two programs could go on for ever. */
function isAnswer(value: unknown): boolean {
  return typeof value === "object" && value !== null && !("method" in value) && ("result" in value || "error" in value)
}

function idOf(value: unknown): string | number | null {
  const id = typeof value === "object" && value !== null && "id" in value ? value.id : null
  return typeof id === "string" || typeof id === "number" ? id : null
}
