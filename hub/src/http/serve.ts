import { createServer, type ServerResponse } from "node:http"
import { getRequestListener } from "@hono/node-server"
import type { Hono } from "hono"

export type RunningServer = {
  port: number
  /** Closes each connection after its next answer, so that a proxy switches to another hub. */
  drain(): void
  /**
   * Accepts no new connections, waits up to `graceMs` for open requests, then aborts them. Returns the number of aborted
   * requests.
   */
  close(graceMs?: number): Promise<number>
}

const GRACE_MS = 30_000
/**
 * How long an idle connection is kept, in milliseconds: longer than proxies keep it (typically 60 s), so that a proxy never uses
 * one that is being closed.
 */
const IDLE_MS = 65_000

export async function serveApp(
  app: Pick<Hono, "fetch">,
  { host, port }: { host: string; port: number },
): Promise<RunningServer> {
  const handleRequest = getRequestListener(app.fetch)
  const openResponses = new Set<ServerResponse>()
  let isDraining = false
  const server = createServer((request, response) => {
    openResponses.add(response)
    response.once("close", () => openResponses.delete(response))
    if (isDraining) response.shouldKeepAlive = false
    void handleRequest(request, response)
  })
  server.keepAliveTimeout = IDLE_MS
  server.headersTimeout = IDLE_MS + 1_000
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, host, resolve)
  })
  const address = server.address()
  const drain = () => {
    isDraining = true
    for (const response of openResponses) response.shouldKeepAlive = false
  }
  return {
    port: typeof address === "object" && address ? address.port : port,
    drain,
    close: async (graceMs = GRACE_MS) => {
      drain()
      let aborted = 0
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      const timer = setTimeout(() => {
        aborted = openResponses.size
        server.closeAllConnections()
      }, graceMs)
      await closed
      clearTimeout(timer)
      return aborted
    },
  }
}
