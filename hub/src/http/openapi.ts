import { object, optional, type Schema, text } from "../../../src/core/schema.ts"
import { type AdminRole, type AdminRoute, adminRoutes } from "../../../src/hub-client/admin-routes.ts"

/** The routes of administration that need no token or role of their own. */
const LOGIN: Pick<AdminRoute, "input" | "output" | "summary" | "method" | "path"> = {
  method: "POST",
  path: "/v1/admin/login",
  summary: "Exchange an operator's one-time code for a token",
  input: object({ code: text("As `dex-hub init` or `dex hub admin operator add` prints it.") }),
  output: object({ token: text("It is shown only now."), name: text() }),
}

const PROBLEM = object({
  error: object({ code: text(), message: text(), rules: optional({ type: "array", items: text() }) }),
})

/** The answers that are no success. */
const PROBLEMS: Record<string, string> = {
  400: "The request is not valid",
  401: "There is no valid token",
  403: "The role or the scope of the token does not allow this",
  404: "It does not exist here",
  409: "It cannot be done in the present state",
  413: "The request is too large",
  429: "Too many requests: Retry-After says how long to wait",
  503: "The hub or its database cannot answer now: Retry-After says how long to wait",
}

const CALLER: Record<AdminRole, string> = {
  operator: "An operator of the hub",
  admin: "An admin of a tenant, with the scope admin",
  auditor: "An admin or an auditor of a tenant",
}

/** The OpenAPI 3.1 document of the hub's administration, from the same table as the routes themselves. */
export function openApiDocument(version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  const add = (route: typeof LOGIN, operationId: string, more: object) => {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}")
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: { operationId, ...operationOf(route), ...more } }
  }
  add(LOGIN, "admin-login", { security: [] })
  for (const [command, route] of Object.entries(adminRoutes as Record<string, AdminRoute>))
    add(route, command.replaceAll(" ", "-"), { tags: [route.who], description: `${CALLER[route.who]} may do this.` })
  return {
    openapi: "3.1.0",
    info: { title: "dex hub: administration", version, license: { name: "MIT", identifier: "MIT" } },
    security: [{ token: [] }],
    paths,
    components: { securitySchemes: { token: { type: "http", scheme: "bearer" } }, schemas: { Problem: PROBLEM } },
  }
}

function operationOf({ method, path, summary, input, output }: typeof LOGIN): object {
  const inPath = new Set([...path.matchAll(/:(\w+)/g)].map(([, name]) => name!))
  const fields = Object.entries(input.properties ?? {})
  const required = new Set(input.required)
  const rest = fields.filter(([name]) => !inPath.has(name))
  const parameters = fields
    .filter(([name]) => inPath.has(name) || method === "GET")
    .map(([name, { description, ...schema }]) => ({
      ...{ name, in: inPath.has(name) ? "path" : "query", required: inPath.has(name), description, schema },
    }))
  const body: Schema = {
    type: "object",
    properties: Object.fromEntries(rest),
    required: rest.map(([name]) => name).filter((name) => required.has(name)),
    additionalProperties: false,
  }
  const json = (schema: object) => ({ "application/json": { schema } })
  return {
    summary,
    parameters,
    requestBody:
      method === "GET" || rest.length === 0 ? undefined : { required: body.required!.length > 0, content: json(body) },
    responses: {
      200: { description: "Done", content: json(output) },
      ...Object.fromEntries(
        Object.entries(PROBLEMS).map(([status, description]) => [
          status,
          { description, content: json({ $ref: "#/components/schemas/Problem" }) },
        ]),
      ),
    },
  }
}
