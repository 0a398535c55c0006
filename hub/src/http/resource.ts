import type { MiddlewareHandler } from "hono"
import { resourceOf } from "../login/login.ts"
import type { OidcSettings } from "../settings.ts"
import { HubProblem } from "../store/problem.ts"

// The hub's MCP as a resource server of OAuth: whose tokens it takes, and how a client learns that.

/** RFC 9728. */
export function resourceMetadata(settings: OidcSettings) {
  return {
    resource: resourceOf(settings),
    resource_name: "dex hub",
    authorization_servers: [settings.issuer],
    scopes_supported: [settings.mcpScope],
    bearer_methods_supported: ["header"],
  }
}

/** Who is refused is told where tokens come from, and which scope one needs. */
export function challenged({ url, mcpScope }: OidcSettings): MiddlewareHandler {
  const where = `scope="${mcpScope}", resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"`
  return async (c, next) => {
    await next()
    const { status } = c.res
    const isScope = c.error instanceof HubProblem && c.error.code === "insufficient_scope"
    if (isScope) c.res.headers.set("WWW-Authenticate", `Bearer error="insufficient_scope", ${where}`)
    if (status !== 401) return
    const error = c.req.header("authorization") === undefined ? "" : 'error="invalid_token", '
    c.res.headers.set("WWW-Authenticate", `Bearer ${error}${where}`)
  }
}
