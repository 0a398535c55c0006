import { createServer } from "node:http"
import { getRequestListener } from "@hono/node-server"
import type { Hono } from "hono"

export type Serving = { port: number; close(): Promise<void> }

/** What is under way when it is closed is finished first, for this long. */
const GRACE_MS = 10_000

export async function serveApp(
  app: Pick<Hono, "fetch">,
  { host, port }: { host: string; port: number },
): Promise<Serving> {
  const server = createServer(getRequestListener(app.fetch))
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return {
    port: typeof address === "object" && address ? address.port : port,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      const late = setTimeout(() => server.closeAllConnections(), GRACE_MS)
      await closed
      clearTimeout(late)
    },
  }
}
