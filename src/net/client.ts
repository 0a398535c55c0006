import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http"

// All HTTP requests of dex. Redirects are never followed, because the user did not agree to the other address.

export type NetRequest = {
  url: string | URL
  /** Defaults to GET without a body and POST with one. */
  method?: string
  headers?: Record<string, string>
  /** Sent as a bearer token, and only over a connection that nobody else can read. Never appears in an error. */
  key?: string | undefined
  body?: string | Buffer | undefined
  /** The time limit for the reply including its body. If omitted, the caller's signal is the only limit. */
  timeoutMs?: number
  /** The most bytes of the reply's body. */
  mostBytes: number
  signal?: AbortSignal | undefined
  /** Connections to keep open for the next request. Defaults to Node's shared ones. */
  connections?: Connections
  /** True if the request must not be repeated. It then gets its own connection, which is closed afterwards and uses no proxy. */
  isOnce?: boolean
  /** Connects to this address without looking up the name again. */
  address?: string
  /** Certificates to trust instead of the system's. */
  ca?: string | undefined
}

/** A reply whose body can be read once. Both ways to read it throw a NetError. */
export type NetReply = {
  status: number
  headers: IncomingHttpHeaders
  chunks(): AsyncGenerator<Buffer>
  text(): Promise<string>
  /** Closes the connection without reading the rest. */
  discard(): void
}

/**
 * Why a request failed. `network`: the connection failed, with the error in `code`. `stopped`: the caller's signal was aborted.
 */
export type NetReason = "network" | "timeout" | "size" | "stopped" | "key_in_clear"

export class NetError extends Error {
  override name = "NetError"
  readonly reason: NetReason
  readonly code: string

  constructor(reason: NetReason, message: string, { code = reason, cause }: { code?: string; cause?: unknown } = {}) {
    super(message, { cause })
    this.reason = reason
    this.code = code
  }
}

/** Checks the name, because the bundle may contain this class in more than one file. */
export function isNetError(error: unknown): error is NetError {
  return error instanceof Error && error.name === "NetError"
}

/**
 * Sends a request. Does not use Node's own `fetch`: its first call in a new process takes six times as long (113 to 260 ms
 * against 17 to 36, measured side by side), and it gives up after five minutes.
 */
export async function send(request: NetRequest): Promise<NetReply> {
  const { url, body, key, timeoutMs, signal } = request
  const target = new URL(url)
  if (key !== undefined) refuseKeyInClear(target)
  const timeUp = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  const both = [signal, timeUp].filter((one) => one !== undefined)
  const limited = both.length > 1 ? AbortSignal.any(both) : both[0]
  const explained = (error: unknown): NetError => {
    if (isNetError(error)) return error
    if (signal?.aborted) return new NetError("stopped", "The request was stopped.", { cause: error })
    if (timeUp?.aborted) return new NetError("timeout", "There was no answer in time.", { cause: error })
    const { code, message } = error as { code?: unknown; message?: unknown }
    const why = typeof code === "string" ? code : String(message).slice(0, 200)
    return new NetError("network", `The connection failed (${why}).`, { code: why, cause: error })
  }
  const headers = {
    ...request.headers,
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
    ...(request.address !== undefined && { host: target.host }),
  }
  const isTls = target.protocol === "https:"
  const { request: open, globalAgent } = await (isTls ? import("node:https") : import("node:http"))
  const { connections } = request
  if (connections) connections.agent ??= agentLike(globalAgent, { keepAlive: true })
  const shared: Agent | false = request.isOnce ? false : (connections?.agent ?? globalAgent)
  const once = (agent: Agent | false): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      if (limited?.aborted) return reject(limited.reason)
      const options = {
        method: request.method ?? (body === undefined ? "GET" : "POST"),
        headers,
        agent,
        signal: limited,
        ...(request.address !== undefined && pinned(target, request.address)),
        ca: request.ca,
      }
      const sent: ClientRequest = open(target, options, resolve)
      sent.on("error", (error) => reject(Object.assign(error, { reused: sent.reusedSocket })))
      sent.end(body)
    })
  const answer = await once(shared)
    .catch((error: { code?: unknown; reused?: boolean }) => {
      // The server closed an idle connection just as it was reused. Other idle ones may be closed too.
      const isStale = error.reused && (error.code === "ECONNRESET" || error.code === "EPIPE")
      if (!isStale || !shared || limited?.aborted) throw error
      const { options } = shared as Agent & { options: object } // includes its proxy, if it has one
      return once(agentLike(shared, { ...options, keepAlive: false }))
    })
    .catch((error: unknown) => {
      throw explained(error)
    })
  return replyOf(answer, request.mostBytes, explained)
}

function replyOf(answer: IncomingMessage, mostBytes: number, explained: (error: unknown) => NetError): NetReply {
  async function* chunks(): AsyncGenerator<Buffer> {
    let bytes = 0
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        bytes += chunk.length
        if (bytes > mostBytes) throw new NetError("size", `The answer has more than ${mostBytes >> 20} MB.`)
        yield chunk
      }
    } catch (error) {
      throw explained(error)
    }
  }
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    chunks,
    text: async () => {
      const all: Buffer[] = []
      for await (const chunk of chunks()) all.push(chunk)
      return Buffer.concat(all).toString("utf8")
    },
    discard: () => {
      answer.on("error", () => {}) // nobody reads the reply any more
      answer.destroy()
    },
  }
}

/** Connects to the address, but verifies the certificate for the name. */
function pinned({ hostname }: URL, address: string): { hostname: string; servername?: string } {
  const isName = /[a-z]/i.test(hostname) && !hostname.startsWith("[")
  return { hostname: address, ...(isName && { servername: hostname.replace(/\.$/, "") }) }
}

/** Connections to one server. The code that opened them closes them after the last request. */
export type Connections = { agent?: Agent; close(): void }

export function openConnections(): Connections {
  const connections: Connections = { close: () => connections.agent?.destroy() }
  return connections
}

/** Creates an agent of the same kind: for HTTP or for TLS. */
function agentLike(agent: Agent, options: object): Agent {
  return new (agent.constructor as new (options: object) => Agent)(options)
}

export function isThisMachine(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\]|.*\.localhost)$/.test(hostname)
}

function refuseKeyInClear({ protocol, hostname }: URL): void {
  if (protocol === "https:" || isThisMachine(hostname)) return
  throw new NetError(
    "key_in_clear",
    `The key would be sent to ${hostname} unencrypted. Use an https address, or a server without a key.`,
  )
}

/** How long a server asks clients to wait (`Retry-After`: seconds or a date). Undefined if the header is missing. */
export function retryAfterMs(headers: IncomingHttpHeaders | undefined, now = Date.now()): number | undefined {
  const value = headers?.["retry-after"]?.trim() ?? ""
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000
  const date = /^[a-z]{3}/i.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** Waits, and rejects with a NetError as soon as the signal is aborted. */
export async function pauseBeforeRetry(ms: number, signal?: AbortSignal): Promise<void> {
  const { setTimeout } = await import("node:timers/promises")
  await setTimeout(ms, undefined, signal ? { signal } : {}).catch((cause: unknown) => {
    throw new NetError("stopped", "The request was stopped.", { cause })
  })
}

/** Removes the key from a server's message. Servers repeat it completely, in part, or with stars in the middle. */
export function removeKey(words: string, key: string | undefined): string {
  return words.replace(/\S+/g, (word) => (showsKey(word, key) ? "[key]" : word))
}

function showsKey(word: string, key: string | undefined): boolean {
  if (/\*{3}/.test(word)) return true
  if (key === undefined || key.length < 4) return false
  const size = Math.min(8, key.length)
  for (let at = 0; at + size <= key.length; at++) if (word.includes(key.slice(at, at + size))) return true
  return false
}
