import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { getRequestListener } from "@hono/node-server"
import { DexError } from "../../core/error.ts"
import { foreignTo, inUrl, type ServerAddress } from "./guard.ts"

type Listening = { url: string; close(): void }

/** A request must be complete within this time; an answer may stream for as long as it likes. */
const REQUEST_WITHIN_MS = 30_000
const HEADERS_WITHIN_MS = 5_000
/** By default, Node checks for late requests twice a minute. */
const LOOK_EVERY_MS = 1_000
const MAX_CONNECTIONS = 256
const MAX_STRANGERS = 64
const MAX_REFUSALS_LOGGED = 20

type ListenParts = {
  fetch(request: Request): Response | Promise<Response>
  place: ServerAddress
  /** Whether a request's headers show that it is the owner's. */
  isOwner(headers: IncomingHttpHeaders): boolean
  log(line: string): void
}

/**
 * Passes requests whose Host and Origin are this server's to `fetch`, and refuses all others with 403 and an empty body, before
 * checking anything else. Logs the first few refusals.
 */
export async function listen({ fetch, place, isOwner, log }: ListenParts): Promise<Listening> {
  const answer = getRequestListener(fetch, { overrideGlobalObjects: false })
  let foreign = foreignTo(place)
  const strangers = createStrangers(MAX_STRANGERS)
  let refused = 0
  const server = createServer(
    {
      requestTimeout: REQUEST_WITHIN_MS,
      headersTimeout: HEADERS_WITHIN_MS,
      connectionsCheckingInterval: LOOK_EVERY_MS,
    },
    (incoming, outgoing) => {
      if (isOwner(incoming.headers)) strangers.admit(incoming.socket)
      outgoing.setHeader("X-Content-Type-Options", "nosniff")
      outgoing.setHeader("Cache-Control", "no-store")
      const what = foreign(incoming.headers)
      if (what === undefined) return void answer(incoming, outgoing)
      if (refused++ < MAX_REFUSALS_LOGGED) {
        const value = incoming.headers[what === "Host" ? "host" : "origin"] ?? ""
        log(`Refused a request: its ${what} is "${value.slice(0, 100)}", not this server's.`)
      }
      outgoing.writeHead(403, { Connection: "close", "Content-Length": 0 }).end()
    },
  )
  server.maxConnections = MAX_CONNECTIONS
  server.on("connection", strangers.add)
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(explained(error, place)))
    server.listen(place.port, place.host.replace(/^\[|\]$/g, ""), resolve)
  })
  const { port } = server.address() as AddressInfo
  foreign = foreignTo({ ...place, port })
  return {
    url: `http://${inUrl(place.host)}:${port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

function explained(error: NodeJS.ErrnoException, { host, port }: ServerAddress): unknown {
  const where = `${inUrl(host)}:${port}`
  if (error.code === "EADDRINUSE")
    return new DexError("port", `Port ${port} is taken on ${host}. Choose another one, or --port 0 for any free one.`)
  if (error.code === "EACCES")
    return new DexError("port", `${where} may not be used by this user. Choose a port above 1023.`)
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND")
    return new DexError("port", `This machine has no address ${host}. Leave --host out for 127.0.0.1.`)
  return error
}

type Strangers = {
  /** Adds a new connection. */
  add(socket: Socket): void
  /** This connection has sent the token: it no longer makes room for others. */
  admit(socket: Socket): void
}

/**
 * Keeps connections that never sent the token from using up the limit. The oldest of them makes room for the next one, so the
 * owner, who sends it immediately, always gets in.
 */
function createStrangers(most: number): Strangers {
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
