import { randomBytes } from "node:crypto"
import { type Context, Hono, type MiddlewareHandler } from "hono"
import { bodyLimit } from "hono/body-limit"
import { codeOf } from "../../../src/core/error.ts"
import { conversationRefOf, formatRef, parseCompleteRef } from "../../../src/core/ref.ts"
import { MAX_CHUNK_BYTES, type WireProblem } from "../../../src/hub-client/wire.ts"
import { type HubLogin, resourceOf } from "../login/login.ts"
import type { Metrics } from "../metrics.ts"
import { type ChunkChecker, openChecker } from "../push/checker.ts"
import { checkName, readCommit, readConsent, readDecision, readLevel, readPlan } from "../push/incoming.ts"
import type { Readiness } from "../ready.ts"
import type { TeamRequest } from "../search/answer.ts"
import { type Search, throwLocation } from "../search/pool.ts"
import type { OidcSettings } from "../settings.ts"
import { type Decider, decideRequest, grantAccess, membersOf, requestsFor } from "../store/access.ts"
import { auditLines, recordAudit } from "../store/audit.ts"
import { breakGlass, noticesFor } from "../store/break-glass.ts"
import { type Database, databaseUnavailable, type MemberRole } from "../store/connection.ts"
import { positionFor } from "../store/feeds.ts"
import { type Identity, identify } from "../store/identity.ts"
import { redeemInvitation } from "../store/invitations.ts"
import { quarantinedOf } from "../store/late-secrets.ts"
import { identifyOperator, isOperatorToken, type Operator, redeemOperatorCode } from "../store/operators.ts"
import { isOwnToken, type Scope } from "../store/people.ts"
import { HubProblem } from "../store/problem.ts"
import { consentTo, projectsOf, withdrawConsent } from "../store/projects.ts"
import { commitPush, forgetPushed, planPush, storeChunk } from "../store/push.ts"
import { createQuotas } from "../store/quota.ts"
import { receiptsOf } from "../store/receipts.ts"
import { ownTokens, revokeOwnToken } from "../store/tokens.ts"
import { createAdminApp } from "./admin.ts"
import {
  type ByteCounter,
  type LoginLimits,
  limitLogins,
  limitRequests,
  limitUnknown,
  type RequestLimits,
  type UnknownLimits,
} from "./limits.ts"
import { createTeamMcp } from "./mcp.ts"
import { openApiDocument } from "./openapi.ts"
import { frontPage, PAGE_HEADERS } from "./page.ts"

/** The parts of a running hub that its routes need. */
type HubParts = {
  db: Database
  search: Search
  checker?: ChunkChecker
  version: string
  log(event: Record<string, unknown>): void
  metrics?: Metrics
  /** Called after a deletion. Returns the time by which PostgreSQL's files lose the key. Absent if the hub cannot remove keys. */
  onForgotten?(): Date
  ready?: Readiness
  limits?: RequestLimits & LoginLimits & UnknownLimits
  /** Absent if no identity provider is set. */
  login?: HubLogin
  /** True if the hub has a cluster for words. */
  hasCluster?: boolean
}

/** The values that the first handlers set for the later ones. */
type Env = { Variables: { identity?: Identity; operator?: Operator; request: string } & ByteCounter }

/** The maximum size of a JSON body, in bytes. */
const MAX_JSON_BYTES = 8 << 20
/** Matches a token. The limit allows for access tokens of identity providers, which are longer than the hub's own tokens. */
const BEARER = /^Bearer (\S{1,8192})$/i
/** The maximum number of lines of the audit log in one answer. */
const MAX_LINES = 1_000

/**
 * The hub's routes. Anybody may use the front page, the health checks, the login routes and the OAuth metadata; all others
 * identify the caller first.
 */
export function createHubApp({
  db,
  search,
  checker = openChecker(),
  version,
  log,
  metrics,
  onForgotten,
  ready,
  limits,
  login,
  hasCluster = false,
}: HubParts) {
  const app = new Hono<Env>()
  app.use(async (c, next) => {
    const startedAt = Date.now()
    const request = requestId(c.req.header("traceparent"))
    c.set("request", request)
    await next()
    c.header("X-Request-Id", request)
    // Logs the route's pattern, never the path, which names conversations and projects.
    const [route, { status }, ms] = [c.req.routePath, c.res, Date.now() - startedAt]
    const { tenant, member } = c.get("identity")?.viewer ?? {}
    const operator = c.get("operator")?.id
    log({ level: "info", event: "request", method: c.req.method, route, status, ms, tenant, member, operator, request })
    metrics?.count("hub_requests_total", { route, status })
    metrics?.recordDuration("hub_request_seconds", ms, { route })
    if (route === "/v1/tools/:name" || route === "/mcp") metrics?.recordDuration("hub_search_seconds", ms)
  })
  app.get("/", (c) => c.html(frontPage(login?.settings.url), 200, PAGE_HEADERS))
  app.get("/healthz", (c) => c.text("ok\n"))
  app.get("/readyz", async (c) => {
    const why = await ready?.check()
    if (why !== undefined) return c.text(`${why}\n`, 503)
    // Everything else works, so a proxy should not stop using this hub.
    return c.text(search.state().isAvailable === false ? "ready\nsearch: unavailable\n" : "ready\n")
  })
  app.use(async (c, next) => {
    const why = await ready?.checkTables()
    return why === undefined ? next() : problemResponse(c, new HubProblem(503, "not_ready", why))
  })

  const limitJson = bodyLimit({ maxSize: MAX_JSON_BYTES, onError: tooLargeResponse })
  const ask = createAuditedAsk(db, search)
  const mcp = createTeamMcp({ ask, version, log })
  const identifyWith = (lookUp: (token: string) => Promise<Identity | undefined>) => {
    const holderOf = limitUnknown(limits?.unknownTokensPerMinute ?? 0, lookUp)
    return async (c: Context<Env>, next: () => Promise<void>) => {
      const [, token] = BEARER.exec(c.req.header("authorization") ?? "") ?? []
      const identity = token === undefined ? undefined : await holderOf(token)
      if (!identity)
        return problemResponse(
          c,
          new HubProblem(401, "unauthorized", "Send a token of this hub. `dex hub login` gets one."),
        )
      c.set("identity", identity)
      return next()
    }
  }
  // No token gives access to these routes: they need a signature with the master key.
  app.get("/v1/login", (c) => c.json({ methods: [...(login ? ["device"] : []), "token", "invitation"] }))
  if (limits) app.use("/v1/login/invitation", limitLogins(limits))
  app.post("/v1/login/invitation", limitJson, async (c) => {
    const code = await codeOfBody(c)
    return c.json({ token: await redeemInvitation(db, String(code)) })
  })
  if (login) {
    const { devices, settings, holderOf } = login
    if (limits) app.use("/v1/login/device", limitLogins(limits))
    app.post("/v1/login/device", async (c) => c.json(await devices.begin()))
    app.post("/v1/login/device/token", limitJson, async (c) =>
      c.json(await devices.ask((await jsonOf<DevicePoll>(c)).login)),
    )
    app.get("/.well-known/oauth-protected-resource/mcp", (c) => c.json(resourceMetadata(settings)))
    const identifyByAnyToken = identifyWith((token) => (isOwnToken(token) ? identify(db, token) : holderOf(token)))
    app.use("/mcp", withChallenge(settings), identifyByAnyToken)
  }
  app.get("/v1/openapi.json", (c) => c.json(openApiDocument(version)))
  if (limits) app.use("/v1/admin/login", limitLogins(limits))
  app.post("/v1/admin/login", limitJson, async (c) => {
    const code = await codeOfBody(c)
    return c.json(await redeemOperatorCode(db, String(code)))
  })
  const identifyByOwnToken = identifyWith((token) => identify(db, token))
  const operatorWith = limitUnknown(limits?.unknownTokensPerMinute ?? 0, (token) => identifyOperator(db, token))
  app.use("/v1/admin/*", async (c, next) => {
    const [, token = ""] = BEARER.exec(c.req.header("authorization") ?? "") ?? []
    if (isOperatorToken(token)) c.set("operator", await operatorWith(token))
    return next()
  })
  app.use("/v1/*", (c, next) => (c.get("operator") ? next() : identifyByOwnToken(c, next)))
  if (!login) app.use("/mcp", identifyByOwnToken)
  if (limits) {
    const limitByToken = limitRequests(limits)
    app.use("/v1/*", limitByToken)
    app.use("/mcp", limitByToken)
  }
  const quotas = createQuotas(db)
  const requireScope =
    (scope: Scope, ...roles: MemberRole[]) =>
    async (c: Context<Env>, next: () => Promise<void>) => {
      const { scopes, viewer } = c.get("identity")!
      if (!scopes.includes(scope))
        return problemResponse(
          c,
          new HubProblem(
            403,
            "forbidden",
            `This token does not have the scope ${scope}. Ask the hub's operator for a token that has it.`,
          ),
        )
      if (roles.includes(viewer.role)) return next()
      return problemResponse(
        c,
        new HubProblem(403, "forbidden", `Your role (${viewer.role}) does not allow this. Ask an admin to do it.`),
      )
    }
  const requirePush = requireScope("push", "member", "admin")
  const requireRead = requireScope("read", "member", "admin", "service")
  const limitChunk = bodyLimit({ maxSize: MAX_CHUNK_BYTES, onError: tooLargeResponse })

  app.get("/v1/me", async (c) => {
    const { viewer, tenant, scopes } = c.get("identity")!
    const { name, role } = viewer
    const [projects, notices] = [await projectsOf(db, viewer), await noticesFor(db, viewer)]
    const stored = await quotas.storedFor(viewer)
    const requests = (await requestsFor(db, viewer, deciderOf(c).isAdmin)).length
    return c.json({ tenant, member: { name, role }, scopes, projects, notices, stored, requests })
  })
  app.get("/v1/tokens", async (c) => c.json({ tokens: await ownTokens(db, viewerOf(c)) }))
  app.delete("/v1/tokens/:id{[0-9]{1,15}}", async (c) => {
    await revokeOwnToken(db, viewerOf(c), Number(pathParam(c, "id")))
    return c.body(null, 204)
  })
  app.put("/v1/consents/:key", requirePush, limitJson, async (c) => {
    await consentTo(db, viewerOf(c), pathParam(c, "key"), readConsent(await jsonOf(c)))
    return c.body(null, 204)
  })
  app.delete("/v1/consents/:key", requirePush, async (c) => {
    await withdrawConsent(db, viewerOf(c), pathParam(c, "key"))
    return c.body(null, 204)
  })
  app.get("/v1/requests", requirePush, async (c) => {
    const { viewer, isAdmin } = deciderOf(c)
    return c.json({ requests: await requestsFor(db, viewer, isAdmin) })
  })
  app.put("/v1/requests/:key/:name", requirePush, limitJson, async (c) => {
    const decision = readDecision(await jsonOf(c))
    return c.json(
      await decideRequest(db, deciderOf(c), { key: pathParam(c, "key"), name: pathParam(c, "name"), decision }),
    )
  })
  app.get("/v1/projects/:key/members", requirePush, async (c) =>
    c.json({ members: await membersOf(db, deciderOf(c), pathParam(c, "key")) }),
  )
  app.put("/v1/projects/:key/members/:name", requirePush, limitJson, async (c) => {
    const level = readLevel(await jsonOf(c))
    return c.json(await grantAccess(db, deciderOf(c), { key: pathParam(c, "key"), name: pathParam(c, "name"), level }))
  })
  app.post("/v1/push/plan", requirePush, limitJson, async (c) =>
    c.json({ conversations: await planPush(db, viewerOf(c), readPlan(await jsonOf(c)), quotas) }),
  )
  app.get("/v1/push/position", requirePush, async (c) =>
    c.json(await positionFor(db, viewerOf(c), c.req.query("of") ?? "")),
  )
  app.put("/v1/conversations/:source/:id/chunks/:hash", requirePush, limitChunk, async (c) => {
    const [conversation, hash] = [conversationIn(c), pathParam(c, "hash")]
    const data = Buffer.from(await c.req.arrayBuffer())
    const checked = await checker.check(hash, data)
    c.get("spend")?.(checked.plainBytes)
    await storeChunk(db, viewerOf(c), conversation, { hash, data, ...checked })
    return c.body(null, 204)
  })
  app.post("/v1/push/commit", requirePush, limitJson, async (c) => {
    const commit = readCommit(await jsonOf(c))
    const receipt = await commitPush(db, viewerOf(c), commit)
    metrics?.count("hub_pushes_total")
    metrics?.count("hub_pushed_messages_total", {}, commit.head.message_count)
    return c.json(receipt)
  })
  app.delete("/v1/conversations/:source/:id", requirePush, async (c) => {
    const { forgotten, receipt } = await forgetPushed(db, viewerOf(c), [conversationIn(c)])
    const keyGoneBy = receipt && onForgotten?.()
    return c.json({ forgotten, receipt: receipt && { ...receipt, key_gone_by: keyGoneBy?.toISOString() } })
  })
  app.get("/v1/mine", async (c) =>
    c.json({ receipts: await receiptsOf(db, viewerOf(c)), quarantined: await quarantinedOf(db, viewerOf(c)) }),
  )

  app.post("/v1/tools/:name", requireRead, limitJson, async (c) =>
    c.json((await ask({ viewer: viewerOf(c), tool: pathParam(c, "name"), input: await jsonOf(c) })) as object),
  )

  const adminParts = { db, search, version, ready, issuer: login?.settings.issuer, hasCluster }
  app.route("/", createAdminApp(adminParts, tooLargeResponse))
  app.get("/v1/audit", requireScope("read", "auditor", "admin"), async (c) => {
    const { before, limit } = c.req.query()
    return c.json(await auditLines(db, viewerOf(c), { before, limit: parseLimit(limit) }))
  })
  app.post("/v1/break-glass", requireScope("admin", "admin"), limitJson, async (c) =>
    c.json(await breakGlass(db, viewerOf(c), await jsonOf(c))),
  )

  app.all("/mcp", requireRead, (c) => mcp.fetch(c.req.raw, viewerOf(c)))

  app.notFound((c) =>
    problemResponse(c, new HubProblem(404, "not_found", "This hub has no such route. It may be older than your dex.")),
  )
  app.onError((error, c) => {
    if (error instanceof HubProblem) {
      for (const rule of error.rules ?? []) metrics?.count("hub_refused_total", { rule })
      return problemResponse(c, error)
    }
    const unavailable = databaseUnavailable(error)
    // Only the kind of error is logged, because the message of a database error may quote what a client sent.
    log({
      level: "error",
      request: c.get("request"),
      route: c.req.routePath,
      error: error.name,
      code: codeOf(error) || undefined,
      at: throwLocation(error.stack ?? ""),
    })
    return problemResponse(
      c,
      unavailable ?? new HubProblem(500, "failed", "Unexpected error. The hub's log shows the details."),
    )
  })
  return app
}

type DevicePoll = { login?: unknown }

/** Matches a trace context of W3C, version 00 or later. Its first number names the whole trace. */
const TRACE_PARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The number that this request has in answers and logs: the trace's, if the caller or a proxy began one. */
function requestId(traceparent = ""): string {
  return TRACE_PARENT.exec(traceparent)?.[1] ?? randomBytes(16).toString("hex")
}

/** The member who sent the request, set by the first handlers. */
function viewerOf(c: Context<Env>) {
  return c.get("identity")!.viewer
}

/** The viewer as a decider. An admin's token without the admin scope decides only about the admin's own projects. */
function deciderOf(c: Context<Env>): Decider {
  const { viewer, scopes } = c.get("identity")!
  return { viewer, isAdmin: viewer.role === "admin" && scopes.includes("admin") }
}

function pathParam(c: Context, key: string): string {
  const name = c.req.param(key) ?? ""
  // PostgreSQL cannot store NUL in a text.
  if (name.includes("\0")) throw new HubProblem(400, "invalid", "A name cannot contain a NUL character.")
  return name
}

function parseLimit(text = "100"): number {
  const limit = Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LINES) return limit
  throw new HubProblem(400, "invalid", `limit must be a number from 1 to ${MAX_LINES}.`)
}

/** The conversation in the path of the request. */
function conversationIn(c: Context): { source: string; id: string } {
  const conversation = { source: pathParam(c, "source"), id: pathParam(c, "id") }
  checkName(conversation.source, conversation.id)
  return conversation
}

async function jsonOf<T>(c: Context): Promise<T> {
  try {
    return await c.req.json<T>()
  } catch {
    throw new HubProblem(400, "invalid", "The body is not JSON.") // the position of the error does not matter
  }
}

/** The one-time code in a body. Any other value is a code that nobody has. */
async function codeOfBody(c: Context): Promise<string> {
  const body = await jsonOf<{ code?: unknown } | null>(c)
  return String(body?.code).replaceAll("\0", "")
}

/** Answers a request that was refused or failed. */
function problemResponse(c: Context, { status, code, message, rules, afterSeconds }: HubProblem) {
  const body: WireProblem = { error: { code, message, rules } }
  return c.json(body, status as 400, afterSeconds === undefined ? {} : { "Retry-After": String(afterSeconds) })
}

function tooLargeResponse(c: Context) {
  return problemResponse(c, new HubProblem(413, "too_large", "The request is too large."))
}

/** The OAuth metadata of the hub's MCP server (RFC 9728). It tells clients which identity provider issues the tokens. */
function resourceMetadata(settings: OidcSettings) {
  return {
    resource: resourceOf(settings),
    resource_name: "dex hub",
    authorization_servers: [settings.issuer],
    scopes_supported: [settings.mcpScope],
    bearer_methods_supported: ["header"],
  }
}

/** Tells a refused client where tokens come from and which scope it needs. */
function withChallenge({ url, mcpScope }: OidcSettings): MiddlewareHandler {
  const challenge = `scope="${mcpScope}", resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"`
  return async (c, next) => {
    await next()
    const { status } = c.res
    const lacksScope = c.error instanceof HubProblem && c.error.code === "insufficient_scope"
    if (lacksScope) c.res.headers.set("WWW-Authenticate", `Bearer error="insufficient_scope", ${challenge}`)
    if (status !== 401) return
    const error = c.req.header("authorization") === undefined ? "" : 'error="invalid_token", '
    c.res.headers.set("WWW-Authenticate", `Bearer ${error}${challenge}`)
  }
}

/**
 * Returns a function that searches and records which conversations are in the answer, before the viewer gets it. The
 * words that were searched for are not recorded.
 */
function createAuditedAsk(db: Database, search: Pick<Search, "ask">): (request: TeamRequest) => Promise<unknown> {
  return async (request) => {
    const { viewer, tool } = request
    if (viewer.role === "auditor")
      throw new HubProblem(403, "forbidden", "Auditors can read the audit log, but not conversations.")
    const output = await search.ask(request)
    const conversations = [...refsIn(output)]
    await db.as(viewer, (query) =>
      recordAudit(query, viewer, { action: "read", target: tool, detail: { conversations } }),
    )
    return output
  }
}

/** Collects the conversations in an answer. In the output of every tool, a ref is in a field `id`. */
function refsIn(value: unknown, refs = new Set<string>()): Set<string> {
  if (typeof value !== "object" || value === null) return refs
  for (const [key, inner] of Object.entries(value)) {
    const ref = key === "id" && typeof inner === "string" ? parseCompleteRef(inner) : undefined
    if (ref) refs.add(formatRef(conversationRefOf(ref)))
    else refsIn(inner, refs)
  }
  return refs
}
