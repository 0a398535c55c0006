import type { McpServerFactory } from "@modelcontextprotocol/server"
import { type Context, Hono } from "hono"
import { bearerOf, bucketOf, type Rate } from "./guard.ts"
import { createMcp } from "./mcp.ts"
import { createStreams, type StreamParts } from "./suggestions.ts"

export type AppParts = {
  token: string
  /** Makes an MCP server for one request, or for one session. */
  createServer: McpServerFactory
  /** What is streamed to subscribers. Nothing, where it is left out. */
  stream?: Omit<StreamParts, "log">
  log(line: string): void
  rate?: Rate
  now?: () => number
}

/** Far above what agents ask, and a bound for one that asks in a loop. */
const RATE: Rate = { burst: 300, perSecond: 50 }

/** The routes, and what stands before them. Where a request comes from was looked at before it gets here. */
export function createApp({
  token,
  createServer,
  log,
  stream = { suggestions: () => undefined, mayLeave: async () => false },
  rate = RATE,
  now = () => performance.now(),
}: AppParts) {
  const mcp = createMcp(createServer, log)
  const streams = createStreams({ ...stream, log })
  const hasToken = bearerOf(token)
  const waitMs = bucketOf(rate, now)
  const app = new Hono()

  app.get("/healthz", (c) => c.text("ok\n"))
  app.all("/healthz", notAllowed("GET, HEAD"))

  // What is declared below is for callers with the token.
  app.use(async (c, next) => {
    if (!hasToken(c.req.header("authorization"))) return c.body(null, 401, { "WWW-Authenticate": CHALLENGE })
    const wait = waitMs()
    if (wait > 0) return c.text("Too many requests.\n", 429, { "Retry-After": String(Math.ceil(wait / 1000)) })
    return next()
  })
  app.on(["POST", "GET", "DELETE"], "/mcp", (c) => mcp.fetch(c.req.raw))
  app.all("/mcp", notAllowed("POST, GET, DELETE"))
  app.get("/suggestions", (c) => streams(c.req.raw))
  app.all("/suggestions", notAllowed("GET, HEAD"))
  app.notFound((c) => c.text("There is nothing here. MCP is at /mcp, a stream of suggestions at /suggestions.\n", 404))
  app.onError((error, c) => {
    log(error.stack ?? String(error))
    return c.text("An error that should not happen. What dex serve printed says more.\n", 500)
  })
  return { app, notify: mcp.notify, close: mcp.close }
}

const CHALLENGE =
  'Bearer realm="dex", error="invalid_token", error_description="Send the token from the file that dex serve names at its start"'

function notAllowed(allowed: string) {
  return (c: Context) => c.text("Method not allowed.\n", 405, { Allow: allowed })
}
