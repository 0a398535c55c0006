import {
  createMcpHandler,
  isLegacyRequest,
  type McpServerFactory,
  type ServerNotifier,
} from "@modelcontextprotocol/server"
import { readBody } from "./body.ts"
import { createSessions } from "./sessions.ts"

/** A longer body is refused with 413: no request of ours needs it. */
const LONGEST_BODY_BYTES = 1 << 20
const MOST_STREAMS = 64

export type McpOverHttp = {
  fetch(request: Request): Promise<Response>
  /** Tells clients that listen for it, in the stateless era, what has changed. */
  notify: ServerNotifier
  close(): Promise<void>
}

/** MCP for whichever protocol era a request speaks: with sessions until 2025-11-25, stateless from 2026-07-28 on. */
export function createMcp(create: McpServerFactory, log: (line: string) => void): McpOverHttp {
  const onerror = (error: Error) => log(error.message)
  const stateless = createMcpHandler(create, { legacy: "reject", onerror, maxSubscriptions: MOST_STREAMS })
  const sessions = createSessions(create, onerror)
  return {
    notify: stateless.notify,
    fetch: async (request) => {
      const body = request.method === "POST" ? await readBody(request, LONGEST_BODY_BYTES) : undefined
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
