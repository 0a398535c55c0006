import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { getRequestListener } from "@hono/node-server"
import { DexError } from "../../core/error.ts"
import { foreignHeader, hostInUrl, type ServerAddress } from "./guard.ts"

type ListeningServer = { url: string; close(): void }

/** How long a request may take to arrive completely, in milliseconds. An answer may stream for any time. */
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 5_000
/** How often to check for late requests, in milliseconds. Node's default is twice a minute. */
const CHECK_EVERY_MS = 1_000
const MAX_CONNECTIONS = 256
const MAX_STRANGERS = 64
const MAX_REFUSALS_LOGGED = 20

type ListenParts = {
  fetch(request: Request): Response | Promise<Response>
  place: ServerAddress
  /** True if a request's headers show that it comes from the owner. */
  isOwner(headers: IncomingHttpHeaders): boolean
  log(line: string): void
}

/**
 * Passes requests whose Host and Origin are this server's to `fetch`. Refuses all others with 403 and an empty body, before
 * checking anything else, and logs the first few refusals.
 */
export async function listen({ fetch, place, isOwner, log }: ListenParts): Promise<ListeningServer> {
  const answer = getRequestListener(fetch, { overrideGlobalObjects: false })
  let foreign = foreignHeader(place)
  const strangers = createUnauthenticatedConnections(MAX_STRANGERS)
  let refused = 0
  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
    },
    (incoming, outgoing) => {
      if (isOwner(incoming.headers)) strangers.admit(incoming.socket)
      outgoing.setHeader("X-Content-Type-Options", "nosniff")
      outgoing.setHeader("Cache-Control", "no-store")
      const what = foreign(incoming.headers)
      if (what === undefined) return void answer(incoming, outgoing)
      if (refused++ < MAX_REFUSALS_LOGGED) {
        const value = incoming.headers[what === "Host" ? "host" : "origin"] ?? ""
        log(`Refused a request whose ${what}, "${value.slice(0, 100)}", is not this server's.`)
      }
      outgoing.writeHead(403, { Connection: "close", "Content-Length": 0 }).end()
    },
  )
  server.maxConnections = MAX_CONNECTIONS
  server.on("connection", strangers.add)
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(listenError(error, place)))
    server.listen(place.port, place.host.replace(/^\[|\]$/g, ""), resolve)
  })
  const { port } = server.address() as AddressInfo
  foreign = foreignHeader({ ...place, port })
  return {
    url: `http://${hostInUrl(place.host)}:${port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

function listenError(error: NodeJS.ErrnoException, { host, port }: ServerAddress): unknown {
  const where = `${hostInUrl(host)}:${port}`
  if (error.code === "EADDRINUSE")
    return new DexError(
      "port",
      `Port ${port} on ${host} is in use. Choose another one, or use --port 0 for any free port.`,
    )
  if (error.code === "EACCES")
    return new DexError("port", `This user may not listen on ${where}. Choose a port above 1023.`)
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND")
    return new DexError("port", `This machine has no address ${host}. Omit --host to use 127.0.0.1.`)
  return error
}

type UnauthenticatedConnections = {
  /** Adds a new connection. */
  add(socket: Socket): void
  /** Marks a connection that has sent the token, so that it is no longer closed to make room. */
  admit(socket: Socket): void
}

/**
 * Keeps connections that never sent the token from using up the limit. The oldest of them is closed for the next one, so the
 * owner, who sends the token immediately, always gets in.
 */
function createUnauthenticatedConnections(most: number): UnauthenticatedConnections {
  const waiting = new Set<Socket>()
  return {
    add(socket) {
      waiting.add(socket)
      socket.once("close", () => waiting.delete(socket))
      const [longest] = waiting
      if (waiting.size <= most || !longest) return
      waiting.delete(longest)
      longest.destroy()
    },
    admit: (socket) => void waiting.delete(socket),
  }
}
