import { randomUUID } from "node:crypto"
import {
  createMcpHandler,
  isLegacyRequest,
  type McpHandlerRequestOptions,
  type McpServerFactory,
  type ServerNotifier,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server"
import { type Context, Hono } from "hono"
import { createTokenBucket, createTokenCheck, type Rate } from "./guard.ts"
import { createStreams, type StreamParts } from "./suggestions.ts"

type AppParts = {
  token: string
  /** Makes an MCP server for one request, or for one session. */
  createServer: McpServerFactory
  /** The suggestions to stream. If absent, nothing is streamed. */
  stream?: Omit<StreamParts, "log">
  log(line: string): void
  rate?: Rate
  now?: () => number
}

/** The limit for calls: far more than agents need, but it stops an agent that calls in a loop. */
const CALL_RATE: Rate = { burst: 300, perSecond: 50 }

/** The routes and their checks. The caller has already checked the origin of a request. */
export function createApp({
  token,
  createServer,
  log,
  stream = { suggestions: () => undefined, mayBeSent: async () => false },
  rate = CALL_RATE,
  now = () => performance.now(),
}: AppParts) {
  const mcp = createMcp(createServer, log)
  const streams = createStreams({ ...stream, log })
  const hasToken = createTokenCheck(token)
  const waitMs = createTokenBucket(rate, now)
  const app = new Hono()

  app.get("/healthz", (c) => c.text("ok\n"))
  app.all("/healthz", methodNotAllowed("GET, HEAD"))

  // The following routes require the token.
  app.use(async (c, next) => {
    if (!hasToken(c.req.header("authorization"))) return c.body(null, 401, { "WWW-Authenticate": CHALLENGE })
    const wait = waitMs()
    if (wait > 0) return c.text("Too many requests.\n", 429, { "Retry-After": String(Math.ceil(wait / 1000)) })
    return next()
  })
  app.on(["POST", "GET", "DELETE"], "/mcp", (c) => mcp.fetch(c.req.raw))
  app.all("/mcp", methodNotAllowed("POST, GET, DELETE"))
  app.get("/suggestions", (c) => streams(c.req.raw))
  app.all("/suggestions", methodNotAllowed("GET, HEAD"))
  app.notFound((c) => c.text("There is nothing here. MCP is at /mcp, a stream of suggestions at /suggestions.\n", 404))
  app.onError((error, c) => {
    log(error.stack ?? String(error))
    return c.text("Unexpected error. The output of dex serve shows the details.\n", 500)
  })
  return { app, notify: mcp.notify, close: mcp.close }
}

const CHALLENGE =
  'Bearer realm="dex", error="invalid_token", error_description="Send the token from the file that dex serve names at its start"'

function methodNotAllowed(allowed: string) {
  return (c: Context) => c.text("Method not allowed.\n", 405, { Allow: allowed })
}

/** The maximum size of a request body, in bytes. A longer one is refused with 413, because no valid request needs it. */
const MAX_BODY_BYTES = 1 << 20
const MAX_STREAMS = 64

type McpOverHttp = {
  fetch(request: Request): Promise<Response>
  /** Notifies listening clients of changes. Only clients with the stateless version of the protocol listen. */
  notify: ServerNotifier
  close(): Promise<void>
}

/** Serves each request by its version of the protocol: with sessions up to 2025-11-25, stateless from 2026-07-28 on. */
function createMcp(create: McpServerFactory, log: (line: string) => void): McpOverHttp {
  const onerror = (error: Error) => log(error.message)
  const stateless = createMcpHandler(create, { legacy: "reject", onerror, maxSubscriptions: MAX_STREAMS })
  const sessions = createSessions(create, onerror)
  return {
    notify: stateless.notify,
    fetch: async (request) => {
      const body = request.method === "POST" ? await readBody(request, MAX_BODY_BYTES) : undefined
      if (body && "refused" in body) return body.refused
      const options = { parsedBody: body?.json }
      const era = (await isLegacyRequest(request, body?.json)) ? sessions : stateless
      return era.fetch(request, options)
    },
    close: async () => {
      await Promise.all([stateless.close(), sessions.close()])
    },
  }
}

const PARSE_ERROR = -32700
const TOO_LONG = -32000

export type JsonBody = { json: unknown } | { refused: Response }

/**
 * Reads a request's JSON, up to `maxBytes`. The rest of a longer body is left unread, because cancelling would close the
 * connection before the client gets the error.
 */
export async function readBody(request: Request, maxBytes: number): Promise<JsonBody> {
  let text: string | undefined
  try {
    text = Number(request.headers.get("content-length")) > maxBytes ? undefined : await bodyText(request, maxBytes)
  } catch {
    return refuse(400, PARSE_ERROR, "The request ended before its body was complete.") // nobody is left to read this answer
  }
  if (text === undefined) return refuse(413, TOO_LONG, `A request may have at most ${maxBytes} bytes.`)
  try {
    return { json: JSON.parse(text) }
  } catch {
    return refuse(400, PARSE_ERROR, "The body is not JSON. Send one JSON-RPC message.")
  }
}

async function bodyText({ body }: Request, maxBytes: number): Promise<string | undefined> {
  if (!body) return ""
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks, length).toString("utf8")
    length += value.length
    if (length > maxBytes) return undefined
    chunks.push(value)
  }
}

function refuse(status: number, code: number, message: string): JsonBody {
  return { refused: Response.json({ jsonrpc: "2.0", id: null, error: { code, message } }, { status }) }
}

/**
 * The maximum number of open sessions. Above it, the least recently used one is closed; its client gets 404 and starts a new one,
 * as the protocol requires.
 */
const MAX_SESSIONS = 200
const SESSION_NOT_FOUND = -32001

/**
 * Keeps one server for each client that begins with `initialize`, until the client ends its session, or the session is closed to
 * make room for a newer one.
 */
function createSessions(create: McpServerFactory, onerror: (error: Error) => void) {
  // A Map keeps its order, so the first session is the least recently used one.
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const startSession = async (request: Request, options: McpHandlerRequestOptions): Promise<Response> => {
    const server = await create({ era: "legacy", requestInfo: request })
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, transport)
        const [oldest] = sessions.entries()
        if (sessions.size > MAX_SESSIONS) closeSession(...oldest!)
      },
      onsessionclosed: (id) => void sessions.delete(id),
    })
    transport.onerror = onerror
    await server.connect(transport)
    const response = await transport.handleRequest(request, options)
    if (transport.sessionId === undefined) await server.close()
    return response
  }
  const closeSession = (id: string, transport: WebStandardStreamableHTTPServerTransport) => {
    sessions.delete(id)
    transport.close().catch(onerror)
  }
  return {
    fetch: async (request: Request, options: McpHandlerRequestOptions): Promise<Response> => {
      const id = request.headers.get("mcp-session-id")
      if (id === null) return startSession(request, options)
      const transport = sessions.get(id)
      if (!transport) return sessionNotFound()
      sessions.delete(id)
      sessions.set(id, transport)
      return transport.handleRequest(request, options)
    },
    close: async () => {
      for (const [id, transport] of [...sessions]) closeSession(id, transport)
    },
  }
}

function sessionNotFound(): Response {
  const message = "This session does not exist or has ended. Start a new one with initialize."
  return Response.json({ jsonrpc: "2.0", id: null, error: { code: SESSION_NOT_FOUND, message } }, { status: 404 })
}
