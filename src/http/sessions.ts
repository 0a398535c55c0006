import { randomUUID } from "node:crypto"
import {
  type McpHandlerRequestOptions,
  type McpServerFactory,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server"

/** The one that was asked longest ago makes room; its client is told 404 and begins anew, as the protocol has it. */
const MOST_SESSIONS = 200
const SESSION_NOT_FOUND = -32001

/** The sessions of clients that begin with `initialize`: one server for each, until it is ended or makes room. */
export function createSessions(create: McpServerFactory, onerror: (error: Error) => void) {
  // In the order of their last use.
  const open = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const begin = async (request: Request, options: McpHandlerRequestOptions): Promise<Response> => {
    const server = await create({ era: "legacy", requestInfo: request })
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        open.set(id, transport)
        const [oldest] = open.entries()
        if (open.size > MOST_SESSIONS) end(...oldest!)
      },
      onsessionclosed: (id) => void open.delete(id),
    })
    transport.onerror = onerror
    await server.connect(transport)
    const response = await transport.handleRequest(request, options)
    if (transport.sessionId === undefined) await server.close()
    return response
  }
  const end = (id: string, transport: WebStandardStreamableHTTPServerTransport) => {
    open.delete(id)
    transport.close().catch(onerror)
  }
  return {
    fetch: async (request: Request, options: McpHandlerRequestOptions): Promise<Response> => {
      const id = request.headers.get("mcp-session-id")
      if (id === null) return begin(request, options)
      const transport = open.get(id)
      if (!transport) return notFound()
      open.delete(id)
      open.set(id, transport)
      return transport.handleRequest(request, options)
    },
    close: async () => {
      for (const [id, transport] of [...open]) end(id, transport)
    },
  }
}

function notFound(): Response {
  const message = "There is no such session (any more). Begin a new one with initialize."
  return Response.json({ jsonrpc: "2.0", id: null, error: { code: SESSION_NOT_FOUND, message } }, { status: 404 })
}
