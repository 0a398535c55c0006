import type { Part } from "../core/conversation.ts"
import { isDexError } from "../core/error.ts"
import type { Embedder, EmbedSettings } from "../embed/embedder.ts"
import { matchingStoredId, openEmbedder } from "../embed/open-embedder.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { EmbeddedGroup, UnembeddedMessage, VectorIndex } from "../store/index/vector-index.ts"
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

/** The number of messages that are looked up at once. */
const PAGE_SIZE = 256
/**
 * The number of texts per save. Each save rewrites the last chunk of vectors, so they must not be too few. A local model is slower,
 * so it saves more often.
 */
const TEXTS_PER_SAVE = 256
const LOCAL_TEXTS_PER_SAVE = 64
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
 * Creates vectors of what was said and has none yet, people's prompts first and newest first, until all are done, the time is up or the
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
  const textsPerSave = settings.provider === "local" ? LOCAL_TEXTS_PER_SAVE : TEXTS_PER_SAVE
  const readPlan = planReader(store, vectors)
  pages: for (const page of pagesOf(vectors, embedder.id)) {
    for (const batch of batchesOf(await groupsOf(readPlan, page), textsPerSave)) {
      const { saved } = vectors.save(embedder.id, await embedBatch(embedder, batch, signal, failures))
      report.embedded += saved
      options.onProgress?.(report.embedded, total)
      if (signal.aborted || failures.consecutive >= MAX_FAILURES) break pages
    }
  }
  report.left = countMissing(vectors, embedder.id)
  if (failures.reason !== undefined)
    report.problem = `${failures.reason} ${failures.skippedTexts} ${failures.skippedTexts === 1 ? "text was" : "texts were"} skipped; the next \`dex sync\` will try again.`
  if (report.embedded > 0) index.checkpoint()
}

/**
 * Yields the messages to embed. What people typed describes a conversation best, so it comes first, with what was answered
 * at once. The second pass omits them, even those that failed.
 */
function* pagesOf(vectors: VectorIndex, embedder: string): Generator<UnembeddedMessage[]> {
  const yielded = new Set<UnembeddedMessage["doc"]>()
  for (const subset of ["prompts", undefined] as const) {
    let last: UnembeddedMessage | undefined
    for (;;) {
      const page = vectors.missing(embedder, PAGE_SIZE, last, subset)
      if (page.length === 0) break
      last = page.at(-1)
      yield page.filter(({ doc }) => !yielded.has(doc))
      if (subset) for (const { doc } of page) yielded.add(doc)
    }
  }
}

/** A group of messages, and the texts of its windows. */
type GroupTexts = { messages: UnembeddedMessage[]; windows: { message: UnembeddedMessage; text: string }[] }
/** The groups of a conversation, by the number of each message in them. */
type Plan = Map<number, GroupTexts>
type PlanReader = (message: UnembeddedMessage) => Promise<Plan>

/** The number of conversations to keep in memory: the messages of one are nearly always looked up together. */
const MAX_PLANS = 4

function planReader(store: HistoryReader, vectors: VectorIndex): PlanReader {
  const plans = new Map<number, Plan>()
  return async (message) => {
    const known = plans.get(message.conversation)
    if (known) return known
    const indexed = new Map(vectors.conversationOf(message).map((one) => [one.number, one]))
    const messages = (await store.messages(message.ref)).filter(({ number }) => indexed.has(number))
    const plan: Plan = new Map()
    for (const group of groupsToEmbed(messages)) {
      const texts = withIndexed(group, indexed)
      for (const number of group.numbers) plan.set(number, texts)
    }
    const [oldest] = plans.keys()
    if (plans.size >= MAX_PLANS) plans.delete(oldest!)
    plans.set(message.conversation, plan)
    return plan
  }
}

function withIndexed({ numbers, windows }: MessageGroup, indexed: Map<number, UnembeddedMessage>): GroupTexts {
  return {
    messages: numbers.map((number) => indexed.get(number)!),
    windows: windows.map(({ number, text }) => ({ message: indexed.get(number)!, text })),
  }
}

/** Returns the groups of these messages. A message that is no longer in the history is in none. */
async function groupsOf(readPlan: PlanReader, page: UnembeddedMessage[]): Promise<Set<GroupTexts>> {
  const groups = new Set<GroupTexts>()
  for (const message of page) {
    // Row 0 is the conversation's title. Embedding titles was tried and did not improve the results; see docs/retrieval.md.
    if (message.number === 0) groups.add({ messages: [message], windows: [] })
    const group = message.number === 0 ? undefined : (await readPlan(message)).get(message.number)
    if (group) groups.add(group)
  }
  return groups
}

/** Divides groups into batches of about this many texts. */
function* batchesOf(groups: Iterable<GroupTexts>, textCount: number): Generator<GroupTexts[]> {
  let batch: GroupTexts[] = []
  let count = 0
  for (const group of groups) {
    batch.push(group)
    count += group.windows.length
    if (count < textCount) continue
    yield batch
    batch = []
    count = 0
  }
  if (batch.length > 0) yield batch
}

type Failures = { consecutive: number; skippedTexts: number; reason?: string }

/** Embeds a batch. Leaves out groups of which a request failed or was never sent. */
async function embedBatch(
  embedder: Embedder,
  groups: GroupTexts[],
  signal: AbortSignal,
  failures: Failures,
): Promise<EmbeddedGroup[]> {
  const windows = groups.flatMap((group) => group.windows)
  const vectorOf = new Map<GroupTexts["windows"][number], Float32Array>()
  for (
    let start = 0;
    start < windows.length && !signal.aborted && failures.consecutive < MAX_FAILURES;
    start += TEXTS_PER_REQUEST
  ) {
    const some = windows.slice(start, start + TEXTS_PER_REQUEST)
    try {
      const vectors = await embedder.embed(
        some.map(({ text }) => text),
        { role: "document", signal },
      )
      for (const [i, window] of some.entries()) vectorOf.set(window, vectors[i]!)
      failures.consecutive = 0
    } catch (error) {
      if (signal.aborted) break
      if (!isDexError(error)) throw error
      failures.reason = error.message
      failures.skippedTexts += some.length
      failures.consecutive = STOPPING_ERRORS.has(error.code) ? MAX_FAILURES : failures.consecutive + 1
    }
  }
  return groups
    .filter((group) => group.windows.every((window) => vectorOf.has(window)))
    .map((group) => ({
      messages: group.messages,
      windows: group.windows.map((window) => ({ message: window.message, vector: vectorOf.get(window)! })),
    }))
}

/** Codes of errors after which every further request would fail too. */
const STOPPING_ERRORS = new Set(["embed_unreachable", "embed_refused", "embed_settings", "embed_timeout"])

function countMissing(vectors: VectorIndex, embedder: string): number {
  const stats = vectors.stats().find((candidate) => candidate.embedder === embedder)
  return Math.max(0, vectors.documents() - (stats?.done ?? 0))
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

/** A window's text, and the number of the message that contains most of its words. */
export type TextWindow = { number: number; text: string }
/** Messages that are embedded together, as numbers. Without windows, there is nothing to embed. */
export type MessageGroup = { numbers: number[]; windows: TextWindow[] }

type SpokenMessage = { number: number; parts: Part[] }
type Word = { number: number; text: string }

/** The number of words in a window: the local model reads 128 tokens, about 90 words. */
const WINDOW_WORDS = 90
/** A group ends with the message that fills this many windows, so that a new message changes only the last few. */
const GROUP_WINDOWS = 8
/** The maximum number of characters in a window, for texts without spaces. */
const MAX_WINDOW_CHARS = 2_000
/** The maximum number of characters of a message to embed. Longer ones are mostly pasted. */
const MAX_MESSAGE_CHARS = 20_000

/**
 * Groups a conversation's messages, given in order. Many messages are a few words long ("All passing."), and mean something only
 * together with the ones around them. So a group is everything that was said from one prompt to the next, but ends with the message
 * that fills eight windows. So a new message changes only the last group. Documents' sections are groups of their own.
 */
export function groupsToEmbed(messages: SpokenMessage[]): MessageGroup[] {
  const groups: MessageGroup[] = []
  let words: Word[] = []
  let numbers: number[] = []
  const close = () => {
    if (numbers.length > 0) groups.push({ numbers, windows: windowsOf(words) })
    words = []
    numbers = []
  }
  for (const { number, parts } of messages) {
    const text = spokenText(parts)
    if (text === undefined) {
      groups.push({ numbers: [number], windows: [] })
      continue
    }
    if (isPrompt(parts)) close()
    numbers.push(number)
    words.push(...wordsOf(text).map((word) => ({ number, text: word })))
    if (words.length >= GROUP_WINDOWS * WINDOW_WORDS) close()
  }
  close()
  return groups
}

/** True if a person typed the message, or if it is part of a document. */
function isPrompt(parts: Part[]): boolean {
  return parts.some(({ type, origin }) => type === "text" && origin !== "agent" && origin !== "injected")
}

/**
 * Returns what was said in a message, or undefined if nothing was. Tool calls and their results, injected text and thinking are
 * not embedded; they are found only by their words.
 */
export function spokenText(parts: Part[]): string | undefined {
  const spoken = parts.flatMap((part) => (part.type === "text" && part.origin !== "injected" ? [part.text] : []))
  const text = spoken.join("\n").trim().slice(0, MAX_MESSAGE_CHARS).toWellFormed()
  return /[\p{L}\p{N}]/u.test(text) ? text : undefined
}

/** Splits a text at white space, and words of more than a window's length into pieces. */
function wordsOf(text: string): string[] {
  return (text.match(/\S+/g) ?? []).flatMap((word) =>
    word.length <= MAX_WINDOW_CHARS ? [word] : (word.match(LONGEST_PIECES) ?? []),
  )
}

const LONGEST_PIECES = new RegExp(`[^]{1,${MAX_WINDOW_CHARS}}`, "gu")

function windowsOf(words: Word[]): TextWindow[] {
  const windows: TextWindow[] = []
  let window: Word[] = []
  let length = 0
  const close = () => {
    const text = window.map((word) => word.text).join(" ")
    if (/[\p{L}\p{N}]/u.test(text)) windows.push({ number: mostFrequentNumber(window), text })
    window = []
    length = 0
  }
  for (const word of words) {
    if (window.length === WINDOW_WORDS || length + word.text.length > MAX_WINDOW_CHARS) close()
    window.push(word)
    length += word.text.length + 1
  }
  if (window.length > 0) close()
  return windows
}

/** Returns the message with the most words; of several, the first. */
function mostFrequentNumber(words: Word[]): number {
  const byNumber = [...Map.groupBy(words, ({ number }) => number)]
  return byNumber.reduce((most, entry) => (entry[1].length > most[1].length ? entry : most))[0]
}
