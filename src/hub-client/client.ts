import type { IncomingHttpHeaders } from "node:http"
import { DexError, isDexError } from "../core/error.ts"
import {
  isNetError,
  isThisMachine,
  openConnections,
  pauseBeforeRetry,
  removeKey,
  retryAfterMs,
  send,
} from "../net/client.ts"
import type {
  CommitRequest,
  CommitResponse,
  DeviceLogin,
  DeviceLoginState,
  HubMemberLevel,
  HubRequest,
  PlanAnswer,
  PlanRequest,
  PlanResponse,
  PositionResponse,
  WireChunk,
  WireNotice,
  WireProblem,
} from "./wire.ts"

/** Why a request to a hub failed. After `offline`, `busy` and `failed`, a retry may succeed. */
export type HubTrouble =
  | "offline"
  | "busy"
  | "failed"
  | "token"
  | "denied"
  | "conflict"
  | "secret"
  | "full"
  | "refused"
  | "stopped"

export class HubError extends DexError {
  readonly trouble: HubTrouble
  readonly rules: string[]
  /** Milliseconds to wait before the next attempt. */
  readonly retryAfterMs: number | undefined
  readonly status: number | undefined

  constructor(
    trouble: HubTrouble,
    message: string,
    more: { rules?: string[]; retryAfterMs?: number | undefined; status?: number; cause?: unknown } = {},
  ) {
    super(`hub_${trouble}`, message, { cause: more.cause })
    this.trouble = trouble
    this.rules = more.rules ?? []
    this.retryAfterMs = more.retryAfterMs
    this.status = more.status
  }
}

/** Checks a property instead of the class, because the bundle may contain the class in more than one file. */
export function isHubError(error: unknown): error is HubError {
  return isDexError(error) && "trouble" in error
}

export type HubMember = {
  tenant: string
  member: { name: string; role: string }
  projects: { key: string; title?: string; level: string }[]
  /** A hub of another version may send no notices, or types of notices that this dex does not know. */
  notices?: WireNotice[]
  /** The number of access requests that wait for the member's decision. */
  requests?: number
  /** Present if storage is limited. */
  stored?: { yours?: HubStored; team?: HubStored }
}

/** A member's access to a project after a change. */
export type HubAccess = { member: string; project: string; level?: string }

/** The uncompressed size of what is stored on the hub, and its limit. */
export type HubStored = { bytes: number; quota_bytes: number }

/** A deletion on the hub, without the content. Times are ISO dates. */
export type HubReceipt = {
  at: string
  conversations: number
  why: string
  by?: string
  key_gone_at?: string
  words_gone_at?: string
  words_wait_for?: string[]
}

/** A conversation that the hub hides from everybody except its owner, because newer rules found what looks like a secret. */
export type HubQuarantined = { source: string; id: string; at: string; rules: string[] }

/** Times are ISO dates. */
export type HubToken = {
  id: number
  name: string
  kind: string
  scopes: string[]
  created_at: string
  expires_at?: string
  last_used_at?: string
  revoked_at?: string
}

export type HubClient = {
  address: string
  me(): Promise<HubMember>
  /** The ways to log in. This needs no token. An old hub, which does not list them, accepts only tokens. */
  loginMethods(): Promise<string[]>
  beginDeviceLogin(): Promise<DeviceLogin>
  askDeviceLogin(login: string): Promise<DeviceLoginState>
  /** Exchanges an invitation for a token. Each invitation works once. */
  redeem(code: string): Promise<string>
  /** Receipts for the member's deleted conversations, and the conversations that the hub has quarantined. */
  mine(): Promise<{ receipts: HubReceipt[]; quarantined: HubQuarantined[] }>
  /** The member's own tokens, without their secrets. */
  tokens(): Promise<HubToken[]>
  revokeToken(id: number): Promise<void>
  /** The requests that wait for the member's decision. */
  requests(): Promise<HubRequest[]>
  decide(project: string, member: string, decision: "approve" | "deny"): Promise<HubAccess>
  grant(project: string, member: string, level: string): Promise<HubAccess>
  members(project: string): Promise<HubMemberLevel[]>
  consent(project: string, what: readonly string[]): Promise<void>
  withdraw(project: string): Promise<void>
  plan(request: PlanRequest): Promise<PlanAnswer[]>
  sendChunk(project: string, ref: SharedRef, chunk: WireChunk): Promise<void>
  commit(request: CommitRequest): Promise<CommitResponse>
  /** Whether the hub's history still includes a position. Undefined if the hub is too old to say. */
  position(of: string): Promise<PositionResponse | undefined>
  /** Runs a tool on the team's history. Its input and output are the same as on this machine. */
  ask<O>(tool: string, input: object): Promise<O>
  /** Exchanges an operator's one-time code for their token. */
  redeemOperatorCode(code: string): Promise<{ token: string; name: string }>
  /** Asks for or changes something of a tenant or of the hub, as `admin-routes.ts` describes. */
  administer(method: string, path: string, body?: object): Promise<unknown>
  breakGlass(request: { ref: string; reason: string; hours?: number }): Promise<{ ref: string; until: string }>
  /** Also succeeds if the hub has no such conversation. */
  remove(ref: SharedRef): Promise<void>
  close(): void
}

export type SharedRef = { source: string; id: string }

export type ClientOptions = {
  address: string
  /** Absent before the login. */
  token?: string
  signal?: AbortSignal
  timeoutMs?: number
  /** How many times to try if the hub is busy or fails. The hub may say how long to wait before the next attempt. */
  maxTries?: number
  /** The last sentence of the error message if the hub cannot answer now: what this means for the user. */
  consequence?: string
}

const TIMEOUT_MS = 30_000
const SENT_LATER_NOTE = "Conversations that are waiting will be sent later."
const MAX_TRIES = 4
const MAX_WAIT_MS = 20_000
const DEFAULT_WAIT_MS = 1_000
const MAX_ANSWER_BYTES = 16 << 20

/** The normalised base address of a hub. Throws a DexError if a token must not be sent there. */
export function hubAddress(typed: string): string {
  let url: URL
  try {
    url = new URL(/^[a-z]+:\/\//i.test(typed) ? typed : `https://${typed}`)
  } catch (error) {
    throw new DexError("usage", `"${typed}" is not an address. For example: dex hub login https://hub.example.com`, {
      cause: error,
    })
  }
  if (url.username !== "" || url.password !== "")
    throw new DexError("usage", "The address contains a name or password. Leave them out; dex asks for the token.")
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isThisMachine(url.hostname)))
    throw new DexError(
      "usage",
      `Without TLS, others could read your token and your conversations on the way to ${url.hostname}. Use an https address.`,
    )
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`
}

/** Opens a connection to a hub for `work`, and closes it afterwards. */
export async function useHub<T>(options: ClientOptions, work: (hub: HubClient) => Promise<T>): Promise<T> {
  const hub = openHub(options)
  try {
    return await work(hub)
  } finally {
    hub.close()
  }
}

/** A connection to a hub as one member. Redirects are not followed, because the user did not agree to another address. */
export function openHub({
  address,
  token,
  signal,
  timeoutMs = TIMEOUT_MS,
  maxTries = MAX_TRIES,
  consequence = SENT_LATER_NOTE,
}: ClientOptions): HubClient {
  const connections = openConnections()
  const host = new URL(address).host
  const stoppedError = (cause?: unknown) => new HubError("stopped", "Stopped before the hub answered.", { cause })

  const sendRequest = async ({ method, path, body, type, isUnrepeatable }: HubRequestParts): Promise<Reply> => {
    try {
      const headers = { accept: "application/json", ...(body && { "content-type": type }) }
      const request = { url: `${address}${path}`, method, headers, key: token, body, isUnrepeatable, connections }
      const answer = await send({ ...request, timeoutMs, signal, maxBytes: MAX_ANSWER_BYTES })
      return { status: answer.status, text: await answer.text(), headers: answer.headers }
    } catch (error) {
      if (signal?.aborted) throw stoppedError(error)
      if (!isNetError(error)) throw error
      const { reason, code } = error
      const reasonText =
        reason === "timeout" ? "no answer in time" : reason === "size" ? "the answer is too long" : code
      throw new HubError("offline", `The hub at ${host} cannot be reached (${reasonText}). ${consequence}`, {
        cause: error,
      })
    }
  }

  const call = async <T>(method: string, path: string, body?: object | Buffer, isUnrepeatable = false): Promise<T> => {
    const content = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
    const type = Buffer.isBuffer(body) ? "application/zstd" : "application/json"
    for (let tries = 1; ; tries++) {
      const reply = await sendRequest({ method, path, body: content, type, isUnrepeatable })
      if (reply.status >= 200 && reply.status < 300) return jsonOf(reply, host) as T
      const problem = problemOf(reply, { host, token, consequence })
      if ((problem.trouble !== "busy" && problem.trouble !== "failed") || tries >= maxTries) throw problem
      // Only 429 and 503 mean that the hub has not done anything yet.
      if (isUnrepeatable && reply.status !== 429 && reply.status !== 503) throw problem
      const waitMs = problem.retryAfterMs ?? DEFAULT_WAIT_MS * tries
      if (waitMs > MAX_WAIT_MS) throw problem
      await pauseBeforeRetry(waitMs, signal).catch((error: unknown) => {
        throw stoppedError(error)
      })
    }
  }

  const conversation = ({ source, id }: SharedRef) =>
    `/v1/conversations/${encodeURIComponent(source)}/${encodeURIComponent(id)}`
  const membersAt = (project: string) => `/v1/projects/${encodeURIComponent(project)}/members`
  return {
    address,
    me: () => call("GET", "/v1/me"),
    loginMethods: async () => {
      try {
        const { methods } = await call<{ methods?: unknown }>("GET", "/v1/login")
        return Array.isArray(methods) ? methods.map(String) : ["token"]
      } catch (error) {
        // An older hub requires a token for every route.
        if (isHubError(error) && (error.trouble === "token" || error.status === 404)) return ["token"]
        throw error
      }
    },
    beginDeviceLogin: () => call("POST", "/v1/login/device", undefined, true),
    askDeviceLogin: (login) => call("POST", "/v1/login/device/token", { login }, true),
    redeem: async (code) =>
      String((await call<{ token?: unknown }>("POST", "/v1/login/invitation", { code }, true)).token),
    mine: async () => {
      const { receipts = [], quarantined = [] } =
        (await undefinedIfAbsent(
          call<{ receipts?: HubReceipt[]; quarantined?: HubQuarantined[] }>("GET", "/v1/mine"),
        )) ?? {}
      return { receipts, quarantined }
    },
    tokens: async () => (await call<{ tokens?: HubToken[] }>("GET", "/v1/tokens")).tokens ?? [],
    revokeToken: (id) => call("DELETE", `/v1/tokens/${id}`),
    requests: async () => (await call<{ requests?: HubRequest[] }>("GET", "/v1/requests")).requests ?? [],
    decide: (project, member, decision) =>
      call("PUT", `/v1/requests/${encodeURIComponent(project)}/${encodeURIComponent(member)}`, { decision }),
    grant: (project, member, level) => call("PUT", `${membersAt(project)}/${encodeURIComponent(member)}`, { level }),
    members: async (project) => (await call<{ members?: HubMemberLevel[] }>("GET", membersAt(project))).members ?? [],
    consent: (project, what) => call("PUT", `/v1/consents/${encodeURIComponent(project)}`, { what }),
    withdraw: (project) => ignoreAbsence(call("DELETE", `/v1/consents/${encodeURIComponent(project)}`)),
    plan: async (request) => {
      const { conversations } = await call<Partial<PlanResponse>>("POST", "/v1/push/plan", request)
      if (conversations?.length === request.conversations.length) return conversations
      throw new HubError("refused", `${host} is not a dex hub. Check the address.`)
    },
    position: async (of) => {
      try {
        return await call<PositionResponse>("GET", `/v1/push/position?of=${encodeURIComponent(of)}`)
      } catch (error) {
        if (isHubError(error) && error.status === 404) return undefined
        throw error
      }
    },
    sendChunk: (project, ref, { hash, data }) =>
      call("PUT", `${conversation(ref)}/chunks/${hash}?project=${encodeURIComponent(project)}`, data),
    commit: (request) => call("POST", "/v1/push/commit", request),
    ask: (tool, input) => call("POST", `/v1/tools/${encodeURIComponent(tool)}`, input),
    redeemOperatorCode: (code) => call("POST", "/v1/admin/login", { code }, true),
    administer: (method, path, body) => call(method, path, body, method === "POST"),
    breakGlass: (request) => call("POST", "/v1/break-glass", request, true),
    remove: (ref) => ignoreAbsence(call("DELETE", conversation(ref))),
    close: connections.close,
  }
}

/** `isUnrepeatable`: a repeated call would have another effect, so it is retried only if the hub has not done anything yet. */
type HubRequestParts = { method: string; path: string; body: Buffer | undefined; type: string; isUnrepeatable: boolean }

type Reply = { status: number; text: string; headers: IncomingHttpHeaders }

function jsonOf({ text }: Reply, host: string): unknown {
  if (text.trim() === "") return {}
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new HubError("refused", `${host} is not a dex hub. Check the address.`, { cause: error })
  }
}

function problemOf(
  { status, text, headers }: Reply,
  { host, token, consequence }: { host: string; token: string | undefined; consequence: string },
): HubError {
  const { code, message, rules } = wireProblemIn(text)
  const details = message === undefined ? "" : `: ${removeKey(message, token).slice(0, 300)}`
  if (status === 401)
    return new HubError("token", `The hub at ${host} does not accept your token. Log in again: dex hub login ${host}`)
  if (status === 403) return new HubError("denied", `The hub at ${host} does not allow this${details}`)
  if (status === 409) return new HubError("conflict", `The hub at ${host} has a different version of this${details}`)
  if (status === 422 && code === "secret")
    return new HubError("secret", `The hub found what looks like a secret (${rules.join(", ") || "no rule named"}).`, {
      rules,
    })
  if (status === 429 || status === 503 || status === 502 || status === 504) {
    const isBusy = status === 429 || code === "busy"
    return new HubError(
      "busy",
      `The hub at ${host} ${isBusy ? "is busy" : "cannot answer now"} (${status}${details}). ${consequence}`,
      { retryAfterMs: retryAfterMs(headers) },
    )
  }
  if (status === 507) return new HubError("full", `The hub at ${host} accepts nothing more from you for now${details}`)
  if (status >= 500) {
    const id = headers["x-request-id"]
    const request = typeof id === "string" && /^[0-9a-f]{32}$/.test(id) ? `, request ${id}` : ""
    return new HubError("failed", `The hub at ${host} failed (${status}${request}${details}). ${consequence}`)
  }
  return new HubError("refused", `The hub at ${host} refused the request (${status}${details}).`, { status })
}

function wireProblemIn(text: string): { code?: string; message?: string; rules: string[] } {
  try {
    const { error } = JSON.parse(text) as Partial<WireProblem>
    return {
      code: typeof error?.code === "string" ? error.code : undefined,
      message: typeof error?.message === "string" ? error.message : undefined,
      rules: (error?.rules ?? []).filter((rule) => typeof rule === "string"),
    }
  } catch {
    return { rules: [] } // the page of a proxy, whose status is enough
  }
}

async function ignoreAbsence(reply: Promise<unknown>): Promise<void> {
  await undefinedIfAbsent(reply)
}

async function undefinedIfAbsent<T>(reply: Promise<T>): Promise<T | undefined> {
  try {
    return await reply
  } catch (error) {
    if (!(isHubError(error) && (error.status === 404 || error.status === 410))) throw error
    return undefined
  }
}
