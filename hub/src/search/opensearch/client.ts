import type { ClusterSettings } from "../../settings.ts"

/** A cluster, and the beginning of the names of the hub's indexes in it. */
export type Cluster = {
  prefix: string
  shards: number
  ask<Answer>(request: ClusterRequest): Promise<Answer>
  close(): Promise<void>
}

export type ClusterRequest = {
  method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE"
  path: string
  query?: Record<string, string | number | boolean>
  body?: object
  /** One JSON value a line. */
  lines?: string
  /** How long to wait for the answer, in milliseconds. */
  timeoutMs?: number
}

/** The cluster did not answer, or only some of its shards did. The same request may succeed later. */
export class ClusterUnavailable extends Error {
  override name = "ClusterUnavailable"
}

/** The cluster refused a request. `type` is its name for the reason. */
export class ClusterRefusal extends Error {
  override name = "ClusterRefusal"
  readonly status: number
  readonly type: string

  constructor(status: number, type: string) {
    // The reason itself may quote the request.
    super(`OpenSearch refused a request: ${status} ${type}`)
    this.status = status
    this.type = type
  }
}

const DEFAULT_TIMEOUT_MS = 30_000
/** How often a request is sent again, to another address, if there was no answer. */
const RETRIES = 2
const UNAVAILABLE_STATUS = [408, 429, 502, 503, 504]

export function openCluster({ addresses, prefix, shards, ...access }: ClusterSettings): Cluster {
  const { user, password, authority, certificate, key } = access
  // Loaded late, because every thread of every hub imports this file, and most hubs have no cluster.
  const open = async () => {
    const { Client, errors } = await import("@opensearch-project/opensearch")
    const client = new Client({
      nodes: addresses,
      auth: user === undefined ? undefined : { username: user, password: password ?? "" },
      ssl: { ca: authority, cert: certificate, key, rejectUnauthorized: true },
    })
    return { client, errors }
  }
  let opened: ReturnType<typeof open> | undefined
  // The client's own second close never ends.
  let closed: Promise<void> | undefined
  return {
    prefix,
    shards,
    ask: async <Answer>({ method, path, query, body, lines, timeoutMs = DEFAULT_TIMEOUT_MS }: ClusterRequest) => {
      opened ??= open()
      const { client, errors } = await opened
      try {
        const request = { method, path, querystring: query, body, bulkBody: lines }
        const answer = await client.transport.request(request, { requestTimeout: timeoutMs, maxRetries: RETRIES })
        return answer.body as Answer // its type is the caller's claim about OpenSearch's API
      } catch (error) {
        if (!(error instanceof errors.OpenSearchClientError)) throw error
        if (!(error instanceof errors.ResponseError)) throw new ClusterUnavailable(error.name)
        const { statusCode = 0, body: problem } = error
        const type = typeof problem?.error === "object" ? String(problem.error.type) : String(problem?.error ?? "")
        if (UNAVAILABLE_STATUS.includes(statusCode)) throw new ClusterUnavailable(`${statusCode} ${type}`)
        throw new ClusterRefusal(statusCode, type)
      }
    },
    close: () => {
      closed ??= opened?.then(({ client }) => client.close()) ?? Promise.resolve()
      return closed
    },
  }
}

export type SearchHitAnswer = { _id: string; _score: number | null; sort?: unknown[] }
type Buckets = { buckets: { key: string; doc_count: number; conversations: { buckets: unknown[] } }[] }

/** The parts of an answer that the hub reads. */
export type SearchAnswer = {
  hits: { total?: { value: number }; hits: SearchHitAnswer[] }
  aggregations?: { kinds?: Buckets; terms?: { buckets: Record<string, { doc_count: number }> } }
}
type OneAnswer = SearchAnswer & {
  timed_out?: boolean
  _shards?: { failed: number }
  status?: number
  error?: { type: string }
}

/** Makes searches find everything that was written to an index. Throws if a copy of a part of it does not answer. */
export async function refreshIndex({ ask }: Cluster, index: string): Promise<void> {
  const path = `/${index}/_refresh`
  const { _shards } = await ask<{ _shards: { failed: number } }>({ method: "POST", path })
  if (_shards.failed > 0) throw new ClusterUnavailable("not all shards could be refreshed")
}

export type Search = (body: object) => Promise<SearchAnswer>

/** How long the cluster may take for a search, and how long the hub waits for its answer. */
const SEARCH_TIME = "3s"
const TIMEOUT_MS = 4_000

/** Sends the searches that are waiting at the same moment in one request. A search that was not complete fails. */
export function batchedSearch({ ask }: Cluster, index: string): Search {
  const header = JSON.stringify({ index, allow_partial_search_results: false })
  let waiting: { body: object; resolve(answer: SearchAnswer): void; reject(error: unknown): void }[] = []
  const send = async () => {
    const batch = waiting
    waiting = []
    try {
      const lines = batch
        .map(({ body }) => `${header}\n${JSON.stringify({ ...body, timeout: SEARCH_TIME })}\n`)
        .join("")
      const request = { method: "POST" as const, path: "/_msearch", lines, timeoutMs: TIMEOUT_MS }
      const { responses } = await ask<{ responses: OneAnswer[] }>(request)
      for (const [i, { resolve, reject }] of batch.entries()) {
        const problem = problemWith(responses[i]!)
        if (problem) reject(problem)
        else resolve(responses[i]!)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
  return (body) =>
    new Promise((resolve, reject) => {
      waiting.push({ body, resolve, reject })
      if (waiting.length === 1) setImmediate(send)
    })
}

function problemWith({ status = 200, error, timed_out, _shards }: OneAnswer): Error | undefined {
  if (error) {
    const isOurs = status >= 400 && status < 500 && status !== 404 && status !== 429
    return isOurs ? new ClusterRefusal(status, error.type) : new ClusterUnavailable(`${status} ${error.type}`)
  }
  if (timed_out || (_shards && _shards.failed > 0)) return new ClusterUnavailable("not all shards answered")
  return undefined
}

/** A change of one document. Without a document, it is deleted. */
export type DocumentWrite = { id: string; document?: object }

/** The size of a request, in characters. */
const MAX_LINES_LENGTH = 5_000_000

type ItemAnswer = { _id: string; status: number; error?: { type: string } }

/**
 * Writes documents through an alias. If they have a version, the number of their change, what is newer in the index stays. Returns
 * the ids of the documents that stayed.
 */
export async function writeDocuments(
  { ask }: Cluster,
  alias: string,
  version: number | undefined,
  writes: DocumentWrite[],
): Promise<Set<string>> {
  const kept = new Set<string>()
  let lines: string[] = []
  let length = 0
  const send = async () => {
    const request = { method: "POST" as const, path: `/${alias}/_bulk`, query: { require_alias: true } }
    const { items } = await ask<{ items: Record<string, ItemAnswer>[] }>({ ...request, lines: lines.join("") })
    for (const item of items) {
      const { _id, status, error } = Object.values(item)[0]!
      if (status === 409) kept.add(_id)
      else if (error) throw itemProblem(status, error.type)
    }
    lines = []
    length = 0
  }
  for (const { id, document } of writes) {
    const versioned = version === undefined ? {} : { version, version_type: "external" }
    const action = { [document ? "index" : "delete"]: { _id: id, ...versioned } }
    const text = `${JSON.stringify(action)}\n${document ? `${JSON.stringify(document)}\n` : ""}`
    if (length > 0 && length + text.length > MAX_LINES_LENGTH) await send()
    lines.push(text)
    length += text.length
  }
  if (length > 0) await send()
  return kept
}

function itemProblem(status: number, type: string): Error {
  return status === 429 || status >= 500
    ? new ClusterUnavailable(`${status} ${type}`)
    : new ClusterRefusal(status, type)
}
