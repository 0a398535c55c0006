import type { Part } from "../core/conversation.ts"
import { isDexError } from "../core/error.ts"
import { formatRef } from "../core/ref.ts"
import type { Embedder, EmbedSettings } from "../embed/embedder.ts"
import { matchingStoredId, openEmbedder } from "../embed/open-embedder.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { UnembeddedMessage, VectorIndex } from "../store/index/vector-index.ts"
import { tryLock } from "../store/sqlite/lock.ts"

type EmbedDeps = { store: HistoryReader; index: SearchIndex; home: { dir: string } }

type EmbedOptions = {
  /** Returns the settings. Throws a DexError if they are incomplete. */
  settings: () => EmbedSettings
  /** True to recreate existing vectors too. */
  recreate?: boolean
  deadline?: number
  signal?: AbortSignal
  onProgress?: (done: number, total: number) => void
}

export type EmbedReport = {
  embedder: string
  /** The number of messages processed in this run. */
  embedded: number
  /** The number of messages that still have no vector; the next sync continues with them. */
  left: number
  duration_ms: number
  /** The reason why some messages have no vectors. */
  problem?: string
}

/**
 * The number of messages per save. Each save rewrites the last chunk of vectors, so a page must not be too small. A local model
 * is slower, so its pages are smaller.
 */
const PAGE_SIZE = 256
const LOCAL_PAGE_SIZE = 64
/** How long a sync without a deadline embeds with the local model, in milliseconds; the next sync continues. */
const MAX_LOCAL_MS = 60_000
/** The number of texts per request. An interruption loses at most the work of one request. */
const TEXTS_PER_REQUEST = 32
/**
 * Embedding stops after this many failed requests in a row. If a server rejects one text, dex continues with the rest, but it
 * does not keep asking a server that rejects everything.
 */
const MAX_FAILURES = 3

/**
 * Creates vectors for messages without one, people's prompts first and newest first, until all are done, the time is up or the
 * server fails. Finished work is saved, and the next call continues. Problems with a server or a setting are reported, never
 * thrown. Returns undefined if no embedder is configured.
 */
export async function embedMessages(deps: EmbedDeps, options: EmbedOptions): Promise<EmbedReport | undefined> {
  const started = Date.now()
  const report = await embedMissing(deps, options)
  return report && { ...report, duration_ms: Date.now() - started }
}

async function embedMissing(deps: EmbedDeps, options: EmbedOptions): Promise<EmbedReport | undefined> {
  const vectors = await deps.index.vectors()
  const report: EmbedReport = { embedder: "", embedded: 0, left: vectors.documents(), duration_ms: 0 }
  try {
    const settings = options.settings()
    if (settings.provider === "none") return undefined
    report.embedder = `${settings.provider}:${settings.model ?? ""}`
    const storedId = matchingStoredId(
      settings,
      vectors.stats().map((space) => space.embedder),
    )
    if (storedId !== undefined) Object.assign(report, { embedder: storedId, left: countMissing(vectors, storedId) })
    if (report.left === 0 && !options.recreate) return report
    const abortSignal = stopSignal(options, settings)
    if (abortSignal.aborted) return report
    const lock = tryLock(`${deps.home.dir}/embed.lock`)
    if (!lock)
      return { ...report, problem: "Another dex process is already creating vectors, so this one created none." }
    try {
      await embedAll(deps, vectors, settings, options, abortSignal, report)
    } finally {
      lock.release()
    }
  } catch (error) {
    if (!isDexError(error)) throw error
    if (error.code !== "embed_stopped") report.problem = error.message
  }
  return report
}

async function embedAll(
  { store, index }: EmbedDeps,
  vectors: VectorIndex,
  settings: EmbedSettings,
  options: EmbedOptions,
  signal: AbortSignal,
  report: EmbedReport,
): Promise<void> {
  // Ignore the stored id, so that a model that changed under the same name gets a new id.
  const embedder = (await openEmbedder(settings, [], signal))!
  report.embedder = embedder.id
  const golden = options.recreate ? undefined : vectors.golden(embedder.id)
  const probe = await embedder.probe(golden, signal)
  if (!probe.ok) {
    if (probe.changed) vectors.distrust(embedder.id)
    report.left = countMissing(vectors, embedder.id)
    if (!signal.aborted) report.problem = probe.reason!
    return
  }
  if (options.recreate) vectors.drop()
  if (golden === undefined) vectors.saveGolden(embedder.id, probe.vector!)
  report.left = countMissing(vectors, embedder.id)
  const total = report.left
  const failures: Failures = { consecutive: 0, skippedTexts: 0 }
  const pageSize = settings.provider === "local" ? LOCAL_PAGE_SIZE : PAGE_SIZE
  for (const batch of pagesOf(vectors, embedder.id, pageSize)) {
    const { saved } = vectors.save(embedder.id, await embedPage(store, embedder, batch, signal, failures))
    report.embedded += saved
    options.onProgress?.(report.embedded, total)
    if (signal.aborted || failures.consecutive >= MAX_FAILURES) break
  }
  report.left = countMissing(vectors, embedder.id)
  if (failures.reason !== undefined)
    report.problem = `${failures.reason} ${failures.skippedTexts} ${failures.skippedTexts === 1 ? "message was" : "messages were"} skipped; the next \`dex sync\` will try again.`
  if (report.embedded > 0) index.checkpoint()
}

/**
 * Yields the pages to embed. People's prompts describe a conversation best, so they come first. The second pass omits them, even
 * those that failed.
 */
function* pagesOf(vectors: VectorIndex, embedder: string, size: number): Generator<UnembeddedMessage[]> {
  const yielded = new Set<UnembeddedMessage["doc"]>()
  for (const subset of ["prompts", undefined] as const) {
    let last: UnembeddedMessage | undefined
    for (;;) {
      const page = vectors.missing(embedder, size, last, subset)
      if (page.length === 0) break
      last = page.at(-1)
      yield page.filter(({ doc }) => !yielded.has(doc))
      if (subset) for (const { doc } of page) yielded.add(doc)
    }
  }
}

type Failures = { consecutive: number; skippedTexts: number; reason?: string }
type Row = { message: UnembeddedMessage; vector?: Float32Array }

/**
 * Embeds a page. Returns the messages without text and those that were embedded, but not those whose request failed or was never
 * sent.
 */
async function embedPage(
  store: HistoryReader,
  embedder: Embedder,
  page: UnembeddedMessage[],
  signal: AbortSignal,
  failures: Failures,
): Promise<Row[]> {
  const { texts, empty } = await textsOf(store, page)
  const rows: Row[] = empty.map((message) => ({ message }))
  for (
    let start = 0;
    start < texts.length && !signal.aborted && failures.consecutive < MAX_FAILURES;
    start += TEXTS_PER_REQUEST
  ) {
    const batch = texts.slice(start, start + TEXTS_PER_REQUEST)
    try {
      const vectors = await embedder.embed(
        batch.map(({ text }) => text),
        { role: "document", signal },
      )
      rows.push(...batch.map(({ message }, i) => ({ message, vector: vectors[i]! })))
      failures.consecutive = 0
    } catch (error) {
      if (signal.aborted) break
      if (!isDexError(error)) throw error
      failures.reason = error.message
      failures.skippedTexts += batch.length
      failures.consecutive = STOPPING_ERRORS.has(error.code) ? MAX_FAILURES : failures.consecutive + 1
    }
  }
  return rows
}

/** Codes of errors after which every further request would fail too. */
const STOPPING_ERRORS = new Set(["embed_unreachable", "embed_refused", "embed_settings", "embed_timeout"])

/** Returns the texts to embed, and the messages without text. A message that is no longer in the history is in neither list. */
async function textsOf(store: HistoryReader, page: UnembeddedMessage[]) {
  const texts: { message: UnembeddedMessage; text: string }[] = []
  // Row 0 is the conversation's title. Embedding titles was tried and did not improve the results; see docs/retrieval.md.
  const empty = page.filter(({ number }) => number === 0)
  for (const group of Map.groupBy(page, ({ ref }) => formatRef(ref)).values()) {
    const numbers = group.map(({ number }) => number).filter((number) => number > 0)
    if (numbers.length === 0) continue
    const storedByNumber = new Map(
      (await store.messages(group[0]!.ref, numbers)).map((message) => [message.number, message]),
    )
    for (const message of group) {
      const storedMessage = storedByNumber.get(message.number)
      if (!storedMessage) continue
      const text = textToEmbed(storedMessage)
      if (text === undefined) empty.push(message)
      else texts.push({ message, text })
    }
  }
  return { texts, empty }
}

function countMissing(vectors: VectorIndex, embedder: string): number {
  const stats = vectors.stats().find((candidate) => candidate.embedder === embedder)
  return Math.max(0, vectors.documents() - (stats ? stats.vectors + stats.empty : 0))
}

function stopSignal({ deadline, signal, recreate }: EmbedOptions, { provider }: EmbedSettings): AbortSignal {
  const isBounded = provider === "local" && !recreate
  const stopAt = deadline ?? (isBounded ? Date.now() + MAX_LOCAL_MS : undefined)
  const signals = [
    ...(signal ? [signal] : []),
    ...(stopAt === undefined ? [] : [AbortSignal.timeout(Math.max(0, stopAt - Date.now()))]),
  ]
  return AbortSignal.any(signals)
}

/** The maximum number of characters of a message to embed. More would add little meaning, but cost as much per word. */
const MAX_EMBEDDED_CHARS = 4_000
/**
 * The maximum number of characters of a tool call to embed. The beginning identifies the call; the rest is often an entire file.
 */
const MAX_CALL_CHARS = 300

/**
 * Returns the text and the tool calls of a message, shortened, or undefined if there are none. Tool results, injected text and
 * thinking are not embedded; they are found only by their words.
 */
export function textToEmbed({ parts }: { parts: Part[] }): string | undefined {
  const pieces: string[] = []
  for (const part of parts) {
    if (part.origin === "injected") continue
    if (part.type === "text") pieces.push(part.text)
    else if (part.type === "tool_call") pieces.push(`${part.tool}: ${part.text.slice(0, MAX_CALL_CHARS)}`)
  }
  const text = pieces.join("\n").trim().slice(0, MAX_EMBEDDED_CHARS).toWellFormed()
  return /[\p{L}\p{N}]/u.test(text) ? text : undefined
}
