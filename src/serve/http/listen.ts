import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { getRequestListener } from "@hono/node-server"
import { DexError } from "../../core/error.ts"
import { foreignHeader, hostInUrl, type ServerAddress } from "./guard.ts"

type ListeningServer = { url: string; close(): void }

/** How long a request may take to arrive completely, in milliseconds. An answer may stream for any time. */
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 5_000
/** How often to check for requests that take too long, in milliseconds. By default, Node checks twice a minute. */
const CHECK_INTERVAL_MS = 1_000
const MAX_CONNECTIONS = 256
const MAX_UNAUTHENTICATED = 64
const MAX_REFUSALS_LOGGED = 20

type ListenParts = {
  fetch(request: Request): Response | Promise<Response>
  address: ServerAddress
  /** True if a request's headers show that it comes from the owner. */
  isOwner(headers: IncomingHttpHeaders): boolean
  log(line: string): void
}

/**
 * Passes requests whose Host and Origin are this server's to `fetch`. Refuses all others with 403 and an empty body, and logs the
 * first few refusals.
 */
export async function listen({ fetch, address, isOwner, log }: ListenParts): Promise<ListeningServer> {
  const handleRequest = getRequestListener(fetch, { overrideGlobalObjects: false })
  let findForeignHeader = foreignHeader(address)
  const unauthenticated = createUnauthenticatedConnections(MAX_UNAUTHENTICATED)
  let refused = 0
  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
    },
    (incoming, outgoing) => {
      if (isOwner(incoming.headers)) unauthenticated.admit(incoming.socket)
      outgoing.setHeader("X-Content-Type-Options", "nosniff")
      outgoing.setHeader("Cache-Control", "no-store")
      const header = findForeignHeader(incoming.headers)
      if (header === undefined) return void handleRequest(incoming, outgoing)
      if (refused++ < MAX_REFUSALS_LOGGED) {
        const value = incoming.headers[header === "Host" ? "host" : "origin"] ?? ""
        log(`Refused a request whose ${header}, "${value.slice(0, 100)}", is not this server's.`)
      }
      outgoing.writeHead(403, { Connection: "close", "Content-Length": 0 }).end()
    },
  )
  server.maxConnections = MAX_CONNECTIONS
  server.on("connection", unauthenticated.add)
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(listenError(error, address)))
    server.listen(address.port, address.host.replace(/^\[|\]$/g, ""), resolve)
  })
  const { port } = server.address() as AddressInfo
  findForeignHeader = foreignHeader({ ...address, port })
  return {
    url: `http://${hostInUrl(address.host)}:${port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

function listenError(error: NodeJS.ErrnoException, { host, port }: ServerAddress): unknown {
  const address = `${hostInUrl(host)}:${port}`
  if (error.code === "EADDRINUSE")
    return new DexError(
      "port",
      `Port ${port} on ${host} is in use. Choose another one, or use --port 0 for any free port.`,
    )
  if (error.code === "EACCES")
    return new DexError("port", `This user may not listen on ${address}. Choose a port above 1023.`)
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND")
    return new DexError("port", `This machine has no address ${host}. Omit --host to use 127.0.0.1.`)
  return error
}

type UnauthenticatedConnections = {
  add(socket: Socket): void
  /** Removes a connection that has sent the token, so that it is not closed to make room for another one. */
  admit(socket: Socket): void
}

/**
 * Keeps connections that never sent the token from using up the limit. The oldest of them is closed to make room for a new one,
 * so the owner, who sends the token immediately, can always connect.
 */
function createUnauthenticatedConnections(limit: number): UnauthenticatedConnections {
  const waiting = new Set<Socket>()
  return {
    add(socket) {
      waiting.add(socket)
      socket.once("close", () => waiting.delete(socket))
      const [oldest] = waiting
      if (waiting.size <= limit || !oldest) return
      waiting.delete(oldest)
      oldest.destroy()
    },
    admit: (socket) => void waiting.delete(socket),
  }
}
