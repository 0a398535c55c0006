import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http"

// Sends all of dex's HTTP requests. Redirects are never followed, because the user has not agreed to the other address.

export type NetRequest = {
  url: string | URL
  /** Defaults to GET without a body and POST with one. */
  method?: string
  headers?: Record<string, string>
  /**
   * A secret that is sent as a bearer token, but only over a connection that nobody else can read. It never appears in an
   * error.
   */
  key?: string | undefined
  body?: string | Buffer | undefined
  /** The time limit for the reply, including its body. If absent, only the caller's signal limits the time. */
  timeoutMs?: number
  /** The maximum size of the reply's body, in bytes. */
  maxBytes: number
  signal?: AbortSignal | undefined
  /** The connections to keep open for later requests. Default: those that Node shares. */
  connections?: Connections
  /**
   * True if the request must not be sent twice. It then gets a connection of its own, without a proxy, which is closed
   * afterwards.
   */
  isUnrepeatable?: boolean
  /** The address to connect to. If set, the name in the URL is not looked up. */
  address?: string
  /** Certificates to trust instead of the system's. */
  ca?: string | undefined
}

/** A reply. Its body can be read only once, with `chunks` or `text`, both of which throw a NetError. */
export type NetReply = {
  status: number
  headers: IncomingHttpHeaders
  chunks(): AsyncGenerator<Buffer>
  text(): Promise<string>
  /** Closes the connection without reading the rest. */
  discard(): void
}

/**
 * The reason why a request failed. `network`: the connection failed, and `code` has the error. `stopped`: the caller's signal
 * was aborted.
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

/** Checks the error's name, because `instanceof` fails if the bundle contains this class in more than one file. */
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
  const timeout = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  const signals = [signal, timeout].filter((one) => one !== undefined)
  const combinedSignal = signals.length > 1 ? AbortSignal.any(signals) : signals[0]
  const toNetError = (error: unknown): NetError => {
    if (isNetError(error)) return error
    if (signal?.aborted) return new NetError("stopped", "The request was stopped.", { cause: error })
    if (timeout?.aborted) return new NetError("timeout", "There was no answer in time.", { cause: error })
    const { code, message } = error as { code?: unknown; message?: unknown }
    const reason = typeof code === "string" ? code : String(message).slice(0, 200)
    return new NetError("network", `The connection failed (${reason}).`, { code: reason, cause: error })
  }
  const headers = {
    ...request.headers,
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
    ...(request.address !== undefined && { host: target.host }),
  }
  const isTls = target.protocol === "https:"
  const { request: openRequest, globalAgent } = await (isTls ? import("node:https") : import("node:http"))
  const { connections } = request
  if (connections) connections.agent ??= agentLike(globalAgent, { keepAlive: true })
  const sharedAgent: Agent | false = request.isUnrepeatable ? false : (connections?.agent ?? globalAgent)
  const sendWith = (agent: Agent | false): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      if (combinedSignal?.aborted) return reject(combinedSignal.reason)
      const options = {
        method: request.method ?? (body === undefined ? "GET" : "POST"),
        headers,
        agent,
        signal: combinedSignal,
        ...(request.address !== undefined && addressOptions(target, request.address)),
        ca: request.ca,
      }
      const outgoing: ClientRequest = openRequest(target, options, resolve)
      outgoing.on("error", (error) => reject(Object.assign(error, { reused: outgoing.reusedSocket })))
      outgoing.end(body)
    })
  const answer = await sendWith(sharedAgent)
    .catch((error: { code?: unknown; reused?: boolean }) => {
      // If the server closed an idle connection just as it was reused, try again with a new one: other idle ones may be closed
      // too.
      const isStale = error.reused && (error.code === "ECONNRESET" || error.code === "EPIPE")
      if (!isStale || !sharedAgent || combinedSignal?.aborted) throw error
      const { options } = sharedAgent as Agent & { options: object } // The options include the agent's proxy, if it has one.
      return sendWith(agentLike(sharedAgent, { ...options, keepAlive: false }))
    })
    .catch((error: unknown) => {
      throw toNetError(error)
    })
  return replyOf(answer, request.maxBytes, toNetError)
}

function replyOf(answer: IncomingMessage, maxBytes: number, toNetError: (error: unknown) => NetError): NetReply {
  async function* chunks(): AsyncGenerator<Buffer> {
    let bytes = 0
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        bytes += chunk.length
        if (bytes > maxBytes) throw new NetError("size", `The answer has more than ${maxBytes >> 20} MB.`)
        yield chunk
      }
    } catch (error) {
      throw toNetError(error)
    }
  }
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    chunks,
    text: async () => {
      const received: Buffer[] = []
      for await (const chunk of chunks()) received.push(chunk)
      return Buffer.concat(received).toString("utf8")
    },
    discard: () => {
      answer.on("error", () => {}) // Nobody reads the reply any longer, so its errors do not matter.
      answer.destroy()
    },
  }
}

/** Returns options with which Node connects to the address, but verifies the certificate for the name in the URL. */
function addressOptions({ hostname }: URL, address: string): { hostname: string; servername?: string } {
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

/**
 * Returns the time that the server wants clients to wait, in milliseconds (`Retry-After`: seconds or a date). Returns undefined
 * if the header is missing or invalid.
 */
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

/** Removes the key from a server's message. Servers repeat a key completely, in part, or with asterisks in the middle. */
export function removeKey(text: string, key: string | undefined): string {
  return text.replace(/\S+/g, (word) => (showsKey(word, key) ? "[key]" : word))
}

function showsKey(word: string, key: string | undefined): boolean {
  if (/\*{3}/.test(word)) return true
  if (key === undefined || key.length < 4) return false
  const size = Math.min(8, key.length)
  for (let start = 0; start + size <= key.length; start++)
    if (word.includes(key.slice(start, start + size))) return true
  return false
}
