import { type Context, Hono } from "hono"
import { bodyLimit } from "hono/body-limit"
import { codeOf, messageOf } from "../../../src/core/error.ts"
import { readAs, type Schema } from "../../../src/core/schema.ts"
import { type AdminCommand, type AdminRoute, adminRoutes } from "../../../src/hub-client/admin-routes.ts"
import type { AdminCall, AdminHandlers, AdminParts } from "../admin/call.ts"
import { adminHandlers } from "../admin/for-admins.ts"
import { operatorHandlers } from "../admin/for-operators.ts"
import type { Identity } from "../store/identity.ts"
import type { Operator } from "../store/operators.ts"
import { HubProblem } from "../store/problem.ts"

/** The caller of a route for administration: an operator, or a member. */
export type AdminEnv = { Variables: { identity?: Identity; operator?: Operator } }

/** The maximum size of a body, in bytes. */
const MAX_BYTES = 64 << 10
/** PostgreSQL's code for a row that a policy does not allow. */
const NOT_ALLOWED = "42501"

const handlers: AdminHandlers = { ...operatorHandlers, ...adminHandlers }

/** The routes of administration. Whoever calls them was identified before. */
export function createAdminApp(parts: AdminParts, onTooLarge: (c: Context) => Response) {
  const app = new Hono<AdminEnv>()
  const limit = bodyLimit({ maxSize: MAX_BYTES, onError: onTooLarge })
  for (const [command, route] of Object.entries(adminRoutes) as [AdminCommand, AdminRoute][])
    app.on(route.method, route.path, limit, async (c) => c.json(await answer(c, command, route, parts)))
  return app
}

async function answer(c: Context<AdminEnv>, command: AdminCommand, route: AdminRoute, parts: AdminParts) {
  const { operator, identity } = c.get("operator") ? { operator: c.get("operator") } : { identity: c.get("identity") }
  checkCaller(route, operator, identity)
  const input = await inputOf(c, route)
  const work = (tenant: number) => (query: AdminCall<never>["query"]) =>
    (handlers[command] as (call: AdminCall<object>) => Promise<object>)({ query, tenant, input, parts })
  try {
    if (identity) return await parts.db.asAdmin(identity.viewer, work(identity.viewer.tenant))
    return await parts.db.asOperator(operator!.id, work(0))
  } catch (error) {
    // The wall behind the checks above: nothing was changed.
    if (codeOf(error) === NOT_ALLOWED && messageOf(error).includes("row-level security"))
      throw new HubProblem(403, "refused", "An admin cannot do this for themselves. Ask another admin, or an owner.")
    throw error
  }
}

function checkCaller({ who }: AdminRoute, operator: Operator | undefined, identity: Identity | undefined): void {
  if (who === "operator") {
    if (operator) return
    throw new HubProblem(
      403,
      "forbidden",
      "Only an operator of the hub can do this. `dex hub admin login` logs one in.",
    )
  }
  if (!identity)
    throw new HubProblem(403, "forbidden", "Only an admin of a tenant can do this. Operators belong to no tenant.")
  const { role } = identity.viewer
  if (role !== "admin" && !(who === "auditor" && role === "auditor"))
    throw new HubProblem(403, "forbidden", `Your role (${role}) does not allow this. Ask an admin to do it.`)
  const scope = role === "admin" ? "admin" : "read"
  if (!identity.scopes.includes(scope))
    throw new HubProblem(403, "forbidden", `This token does not have the scope ${scope}. Log in again.`)
}

/** Fields are in the path, in the query of a GET, or in the body. */
async function inputOf(c: Context<AdminEnv>, { method, path, input }: AdminRoute): Promise<object> {
  const inPath = new Set([...path.matchAll(/:(\w+)/g)].map(([, name]) => name!))
  const rest = method === "GET" ? c.req.query() : await bodyOf(c)
  const given: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(rest))
    if (!inPath.has(name)) given[name] = method === "GET" ? typed(input.properties?.[name], value) : value
  for (const name of inPath) given[name] = typed(input.properties?.[name], c.req.param(name))
  const read = readAs(input as Schema<object>, given)
  if ("wrong" in read) throw new HubProblem(400, "invalid", `${read.wrong}.`)
  if (JSON.stringify(read.ok).includes("\\u0000"))
    throw new HubProblem(400, "invalid", "A text cannot contain a NUL character.")
  return read.ok
}

async function bodyOf(c: Context): Promise<object> {
  const text = await c.req.text()
  if (text === "") return {}
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === "object" && body !== null && !Array.isArray(body)) return body
  } catch {
    // reported below
  }
  throw new HubProblem(400, "invalid", "The body is not a JSON object.")
}

/** Paths and queries have only text. */
function typed(schema: Schema | undefined, value: unknown): unknown {
  return schema?.type === "integer" && /^\d{1,15}$/.test(String(value)) ? Number(value) : value
}
