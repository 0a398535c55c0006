import { DexError, isDexError } from "../core/error.ts"
import { type Embedder, type EmbedRole, type EmbedSettings, GOLDEN_TEXT } from "./embedder.ts"
import { localPackage } from "./local-package.ts"
import { askServer, wrongServerAnswer } from "./post.ts"
import { probeEmbedder } from "./probe.ts"

/** Returns the address to which text is sent, or undefined if text stays on this machine. */
export function embedUrl({ provider, url }: Pick<EmbedSettings, "provider" | "url">): string | undefined {
  if (provider === "none" || provider === "local") return undefined
  return url ?? (provider === "openai" ? OPENAI_URL : OLLAMA_URL)
}

/**
 * Opens the configured embedder. Returns undefined if none is configured. `storedIds` are the ids of stored vectors. If one of
 * them belongs to the configured model, no request is needed to find out the model's revision and dimensions, which makes a
 * search faster. Omit `storedIds` to embed documents, so that a model that changed under the same name gets a new id.
 */
export async function openEmbedder(
  settings: EmbedSettings,
  storedIds: string[] = [],
  signal?: AbortSignal,
): Promise<Embedder | undefined> {
  const { provider, model } = settings
  if (provider === "local") return (await import("./local.ts")).localEmbedder(settings.dexDir ?? "")
  const url = embedUrl(settings)
  if (provider === "none" || url === undefined) return undefined
  if (!model)
    throw new DexError(
      "embed_settings",
      `No embedding model is set. Set one: dex config set embed.model ${provider === "openai" ? "text-embedding-3-small" : "nomic-embed-text"}`,
    )
  const family = familyOf(model)
  const requestedDims = family.canShorten ? settings.dims : undefined
  const wire = (provider === "openai" ? openaiWire : ollamaWire)(url, model, requestedDims)
  const apiKey = settings.apiKey === undefined ? {} : { apiKey: settings.apiKey }
  const abortOptions = signal ? { signal } : {}
  const idPrefix = `${provider}:${model}@`
  const storedId = matchingStoredId(settings, storedIds)
  const storedVersion = storedId === undefined ? undefined : readId(storedId, idPrefix, family.prompts)
  const revision =
    storedVersion?.revision ??
    (provider === "ollama" ? await ollamaRevision(url, model, { ...apiKey, ...abortOptions }) : undefined) ??
    "-"
  const dims =
    settings.dims ??
    storedVersion?.dims ??
    (await fetchVectors(wire, [prepareText(GOLDEN_TEXT, "document", family)], { ...apiKey, ...abortOptions }))[0]!
      .length
  return remoteEmbedder({ wire, id: `${idPrefix}${revision}:${dims}:${family.prompts}`, dims, family, ...apiKey })
}

/** Returns the newest stored id that belongs to the configured embedder. Sends no request. */
export function matchingStoredId(
  { provider, model, dims, dexDir }: EmbedSettings,
  storedIds: string[],
): string | undefined {
  if (provider === "local") {
    const localModel = localPackage(dexDir ?? "")
    return storedIds.find((id) => id === localModel?.id)
  }
  if (provider === "none" || !model) return undefined
  const { prompts } = familyOf(model)
  return storedIds.findLast((id) => matchesDims(readId(id, `${provider}:${model}@`, prompts), dims))
}

type StoredVersion = { revision: string; dims: number }

function readId(id: string, idPrefix: string, prompts: string): StoredVersion | undefined {
  if (!id.startsWith(idPrefix)) return undefined
  const [, revision, dims, storedPrompts] = /^([^:]*):(\d+):([^:]*)$/.exec(id.slice(idPrefix.length)) ?? []
  return storedPrompts === prompts ? { revision: revision!, dims: Number(dims) } : undefined
}

function matchesDims(version: StoredVersion | undefined, dims: number | undefined): boolean {
  return version !== undefined && (dims === undefined || version.dims === dims)
}

const OPENAI_URL = "https://api.openai.com/v1"

/** The format of servers with `/v1/embeddings`. `url` may end with or without `/embeddings`. */
function openaiWire(url: string, model: string, dims: number | undefined): Wire {
  const base = url.replace(/\/+$/, "")
  return {
    url: base.endsWith("/embeddings") ? base : `${base}/embeddings`,
    body: (texts) => ({ model, input: texts, dimensions: dims }),
    vectors: (answer) => {
      const data = (answer as { data?: unknown } | null)?.data
      if (!Array.isArray(data)) return undefined
      const vectors: unknown[] = []
      for (const [i, item] of data.entries()) {
        const { index = i, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown }
        if (typeof index !== "number" || !(index >= 0 && index < data.length) || index in vectors) return undefined
        vectors[index] = embedding
      }
      return vectors
    },
  }
}

const OLLAMA_URL = "http://127.0.0.1:11434"

function ollamaWire(url: string, model: string, dims: number | undefined): Wire {
  return {
    url: `${url.replace(/\/+$/, "")}/api/embed`,
    body: (texts) => ({ model, input: texts, truncate: true, dimensions: dims }),
    vectors: (answer) => {
      const vectors = (answer as { embeddings?: unknown } | null)?.embeddings
      return Array.isArray(vectors) ? vectors : undefined
    },
  }
}

/**
 * Returns the revision to which a model's name currently refers; `ollama pull` may change it. Returns undefined if the server
 * does not report it.
 */
async function ollamaRevision(
  url: string,
  model: string,
  options: { apiKey?: string; signal?: AbortSignal },
): Promise<string | undefined> {
  try {
    const answer = await askServer({
      url: `${url.replace(/\/+$/, "")}/api/tags`,
      ...options,
    })
    const models = (answer as { models?: unknown } | null)?.models
    if (!Array.isArray(models)) return undefined
    const installedModel = (models as { name?: unknown; digest?: unknown }[]).find(
      (entry) => entry?.name === model || entry?.name === `${model}:latest`,
    )
    return typeof installedModel?.digest === "string"
      ? installedModel.digest.replace(/^sha256:|[^0-9a-f]/g, "").slice(0, 12)
      : undefined
  } catch (error) {
    // An older server, or one with only a part of Ollama's API, does not report revisions.
    if (isDexError(error) && !["embed_unreachable", "embed_stopped"].includes(error.code)) return undefined
    throw error
  }
}

/** The format of requests and answers of one kind of server. */
type Wire = {
  url: string
  body(texts: string[]): object
  /** Returns the raw vectors, one for each text in the same order, or undefined if the answer has another form. */
  vectors(answer: unknown): unknown[] | undefined
}

type RemoteSettings = { wire: Wire; id: string; dims: number; family: Family; apiKey?: string }

/** The number of texts per request. Servers on a laptop can handle 32 at once; more is hardly faster. */
const BATCH_SIZE = 32
/** The minimum length, in characters, of a text that is halved if the server reports that it is too long. */
const MIN_HALVED_CHARS = 64

function remoteEmbedder({ wire, id, dims, family, apiKey }: RemoteSettings): Embedder {
  const requestVectors = (texts: string[], signal?: AbortSignal) => fetchVectors(wire, texts, { dims, apiKey, signal })
  const embed = async (texts: string[], { role, signal }: { role: EmbedRole; signal?: AbortSignal }) => {
    const vectors: Float32Array[] = []
    for (let start = 0; start < texts.length; start += BATCH_SIZE) {
      const batch = texts.slice(start, start + BATCH_SIZE).map((text) => prepareText(text, role, family))
      vectors.push(...(await requestVectors(batch, signal)))
    }
    return vectors
  }
  return {
    id,
    dims,
    maxTokens: family.maxTokens,
    normalized: true,
    embed,
    probe: (golden, signal) => probeEmbedder({ id, embed }, golden, signal),
  }
}

type VectorRequestOptions = { dims?: number; apiKey?: string; signal?: AbortSignal }

/**
 * Gets the vectors of texts. If the server reports that a text is too long, finds that text by halving the batch, and then
 * halves the text itself, so that the other texts still get their vectors.
 */
async function fetchVectors(
  wire: Wire,
  texts: string[],
  { dims, ...options }: VectorRequestOptions,
): Promise<Float32Array[]> {
  try {
    const answer = await askServer({ url: wire.url, body: wire.body(texts), ...options })
    const vectors = wire.vectors(answer)
    if (!vectors) throw wrongServerAnswer(wire, "answered in an unexpected format")
    if (vectors.length !== texts.length)
      throw wrongServerAnswer(wire, `sent ${vectors.length} vectors for ${texts.length} texts`)
    return vectors.map((vector) => readVector(wire, vector, dims))
  } catch (error) {
    if (!isDexError(error) || error.code !== "embed_too_long") throw error
    const [text] = texts
    if (texts.length === 1 && text!.length < MIN_HALVED_CHARS) throw error
    const retry = (part: string[]) => fetchVectors(wire, part, { dims, ...options })
    if (texts.length === 1) return retry([text!.slice(0, text!.length / 2).toWellFormed()])
    const half = Math.ceil(texts.length / 2)
    return [...(await retry(texts.slice(0, half))), ...(await retry(texts.slice(half)))]
  }
}

/** Checks a vector that a server sent, and scales it to length 1. */
function readVector(wire: Wire, value: unknown, dims: number | undefined): Float32Array {
  if (!Array.isArray(value) || value.length === 0) throw wrongServerAnswer(wire, "sent something that is not a vector")
  if (dims !== undefined && value.length !== dims)
    throw wrongServerAnswer(wire, `sent a vector of ${value.length} numbers instead of ${dims}`)
  let sumOfSquares = 0
  for (const number of value as unknown[]) {
    if (typeof number !== "number") throw wrongServerAnswer(wire, "sent a vector with an element that is not a number")
    sumOfSquares += number * number
  }
  if (!(sumOfSquares > 0 && sumOfSquares < Number.POSITIVE_INFINITY))
    throw wrongServerAnswer(wire, "sent a vector of zeros, or of numbers that are too large")
  const length = Math.sqrt(sumOfSquares)
  return Float32Array.from(value as number[], (number) => number / length)
}

/** The properties of a family of models: the prefixes with which they were trained, and the length of text that they read. */
type Family = {
  /** The version of `prefixes`, which is part of the embedder's id. Change it whenever the prefixes change. */
  prompts: string
  prefixes: Record<EmbedRole, string>
  maxTokens: number
  /** True if the models can return fewer dimensions on request. */
  canShorten: boolean
}

const DEFAULT_FAMILY: Family = {
  prompts: "p0",
  prefixes: { query: "", document: "" },
  maxTokens: 2048,
  canShorten: false,
}

const SENTENCE_PREFIXES = { query: "Represent this sentence for searching relevant passages: ", document: "" }
const PASSAGE_PREFIXES = { query: "query: ", document: "passage: " }

/** Maps patterns of model names to families. The first match applies. */
const FAMILIES: [RegExp, Partial<Family>][] = [
  [/text-embedding-3/, { maxTokens: 8191, canShorten: true }],
  [/text-embedding-ada/, { maxTokens: 8191 }],
  [/nomic-embed-text/, { prompts: "p1", prefixes: { query: "search_query: ", document: "search_document: " } }],
  [/arctic-embed(2|-[ml]-v2)/, { prompts: "p1", prefixes: { query: "query: ", document: "" }, maxTokens: 8192 }],
  [/arctic-embed|mxbai-embed/, { prompts: "p1", prefixes: SENTENCE_PREFIXES, maxTokens: 512 }],
  [/bge-m3/, { maxTokens: 8192 }],
  [/bge-(small|base|large)-en/, { prompts: "p1", prefixes: SENTENCE_PREFIXES, maxTokens: 512 }],
  [/\be5-(small|base|large)(?!.*instruct)/, { prompts: "p1", prefixes: PASSAGE_PREFIXES, maxTokens: 512 }],
  [/minilm|gte-(small|base|large)/, { maxTokens: 512 }],
]

export function familyOf(model: string): Family {
  const family = FAMILIES.find(([name]) => name.test(model.toLowerCase()))?.[1]
  return { ...DEFAULT_FAMILY, ...family }
}

/**
 * The approximate maximum number of tokens per ASCII character: dense code has 2.5 characters per token. Other characters
 * count as one token, or as two outside Unicode's Basic Multilingual Plane.
 */
const TOKENS_PER_ASCII_CHAR = 0.4

/** Returns the input for the model: the prefix, and as much of the text as certainly fits. */
function prepareText(text: string, role: EmbedRole, family: Family): string {
  const prefix = family.prefixes[role]
  return (
    prefix +
    cutToTokens(
      text.toWellFormed().trim() || "(empty)",
      family.maxTokens - Math.ceil(prefix.length * TOKENS_PER_ASCII_CHAR),
    )
  )
}

function cutToTokens(text: string, maxTokens: number): string {
  if (text.length <= maxTokens) return text
  let tokens = 0
  let end = 0
  for (const character of text) {
    tokens += character.charCodeAt(0) < 128 ? TOKENS_PER_ASCII_CHAR : character.length
    if (tokens > maxTokens) return text.slice(0, end)
    end += character.length
  }
  return text
}

type EmbeddedQuery = { vector: Float32Array; ms: number } | { degraded: string; ms: number }

/**
 * Returns the vector of a query, or the reason why there is none within the time limit. Never rejects: without a vector, a
 * search continues and reports the reason.
 */
export async function embedQuery(embedder: Embedder, query: string, timeoutMs: number): Promise<EmbeddedQuery> {
  const startedAt = performance.now()
  const elapsedMs = () => Math.round(performance.now() - startedAt)
  const lateReason = embedder.id.startsWith("local:")
    ? `the local model did not answer within ${timeoutMs} ms: it is being loaded, or this machine is busy.`
    : `the embedding server did not answer within ${timeoutMs} ms (embed.timeout_ms)`
  const abort = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const timeLimit = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), timeoutMs)
  })
  try {
    const answer = embedder.embed([query], { role: "query", signal: abort.signal })
    answer.catch(() => {}) // ignore an error after the time limit
    const outcome = await Promise.race([answer, timeLimit])
    return outcome === "late" ? { degraded: lateReason, ms: elapsedMs() } : { vector: outcome[0]!, ms: elapsedMs() }
  } catch (error) {
    return { degraded: isDexError(error) ? error.message : String(error), ms: elapsedMs() }
  } finally {
    clearTimeout(timer)
    abort.abort()
  }
}
