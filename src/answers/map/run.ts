import { loadSettings } from "../../config/load.ts"
import { LISTED_KINDS, type SourceId } from "../../core/conversation.ts"
import { DexError } from "../../core/error.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import type { Schema } from "../../core/schema.ts"
import { charactersWithin } from "../../core/tokens.ts"
import type { Model } from "../../llm/model.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { dateRange } from "../../tools/fields.ts"
import { resolveRef } from "../../tools/resolve.ts"
import { run as runSearch } from "../../tools/search/run.ts"
import type { MapFormat } from "../map.ts"
import {
  answerPrompt,
  createTokenBudget,
  type DroppedCounts,
  type MapOutcome,
  type MapRun,
  NOTHING_DROPPED,
  type PartialResult,
  type TokenBudget,
} from "./answer.ts"
import { cacheKey, openCache } from "./cache.ts"
import { type MeasuredConversation, measureConversation, type Piece, readPieceText } from "./data.ts"
import { type Batch, maxUnitChars, planBatches, storedBatch, storedBatches } from "./pack.ts"
import { mapPrompt, mergePrompt, resultForModel } from "./prompt.ts"
import { countItems, itemRefs, itemsOf, listsOf, type MapResult } from "./schema.ts"

export type MapFilters = {
  project?: string
  source?: SourceId
  from?: string
  to?: string
  all?: boolean
  /** Only the conversations that a search for these words finds, the best first. */
  query?: string
  limit?: number
}

export type MapJob = {
  task: string
  schema: Schema
  filters: MapFilters
  format: MapFormat
  batch_tokens: number
  parallel: number
  max_tokens_total?: number
}

/** The chosen conversations and their batches. Preparing calls no model and writes nothing. */
export type PreparedMap = {
  rows: number
  /** The number of conversations that have no text of their own. */
  without_text: number
  left_out: Record<string, number>
  conversations: Map<string, MeasuredConversation>
  batches: Batch[]
  isDone: (batch: Batch) => boolean
  budget: number
  planKey: string
}

/** Part of every cache key, so that answers to an older prompt are not reused. */
const PROMPT_VERSION = "1"
const NO_LIMIT = 1_000_000
/** How many conversations a query chooses if there is no limit. */
const FOUND_CONVERSATIONS = 30
const SEARCH_PAGE = 100
/** The data to merge may be at most this many times as long as an answer, because the result must fit into one answer. */
const MERGE_RATIO = 4

export async function prepareMap(dex: Dex, job: MapJob, model: Model | undefined): Promise<PreparedMap> {
  const store = await dex.store()
  const { filters, format, schema, task } = job
  const { rows, left_out } = await chosenConversations(dex, filters)
  const budget = charactersWithin(job.batch_tokens)
  const measured: MeasuredConversation[] = []
  for (const row of rows) measured.push(await measureConversation(store, row, maxUnitChars(budget), format))
  const nonEmpty = measured.filter(({ units }) => units.length > 0)
  const cache = openCache(dex.home.dir)
  const planKey = `plan-${cacheKey(PROMPT_VERSION, model?.id ?? "", task, JSON.stringify([schema, filters, job.batch_tokens, format]))}`
  const isDone = (hash: string) => model !== undefined && cache.has(mapKey(model, job, hash))
  return {
    rows: rows.length,
    without_text: measured.length - nonEmpty.length,
    left_out: left_out as Record<string, number>,
    conversations: new Map(nonEmpty.map((one) => [formatRef(one.ref), one])),
    batches: planBatches(nonEmpty, budget, storedBatches(cache.get(planKey)), isDone),
    isDone: (batch) => isDone(batch.hash),
    budget,
    planKey,
  }
}

async function chosenConversations(dex: Dex, filters: MapFilters) {
  const { query, project, source, from, to, all } = filters
  const store = await dex.store()
  if (query === undefined)
    return store.list({
      project,
      source,
      ...dateRange(filters, dex.now()),
      kinds: all ? undefined : LISTED_KINDS,
      inside: dex.project,
      limit: filters.limit ?? NO_LIMIT,
      offset: 0,
    })
  const wanted = filters.limit ?? FOUND_CONVERSATIONS
  const rows: ConversationRow[] = []
  const left_out: Record<string, number> = {}
  for (let offset = 0; rows.length < wanted; offset += SEARCH_PAGE) {
    const request = { query, project, source, from, to, in: "history", by: "conversation", explain: false } as const
    const { results } = await runSearch(dex, { ...request, limit: SEARCH_PAGE, offset }, { prose: false })
    for (const { id } of results) {
      const { row } = await resolveRef(dex, id)
      if (rows.length === wanted) break
      if (all || LISTED_KINDS.includes(row.kind)) rows.push(row)
      else left_out[row.kind] = (left_out[row.kind] ?? 0) + 1
    }
    if (results.length < SEARCH_PAGE) break
  }
  return { rows, left_out }
}

export type MapRunResult = {
  result: MapResult
  cached: number
  asked: number
  failed: { refs: string[]; reason: string }[]
  not_done: number
  /** Why the run ended early. */
  stopped?: string
  merges: { asked: number; cached: number; failed: string[]; unmerged: number }
  dropped: DroppedCounts
  /** The number of answers for which the server counted far fewer tokens than were sent. */
  cutByServer: number
  items_before_merge: number
  items: number
  refs_not_in_result: number
}

/** Asks the model about every batch that has no cached answer, then merges the results. Each answer is cached immediately. */
export async function runMap(dex: Dex, job: MapJob, prepared: PreparedMap, model: Model): Promise<MapRunResult> {
  const { batches, conversations, budget } = prepared
  const { schema, task } = job
  const store = await dex.store()
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.place })
  const answerTokens = settings["llm.max_tokens"]
  const cache = openCache(dex.home.dir)
  const measuredOf = (piece: Piece) => conversations.get(formatRef(piece.ref))!
  cache.sweep()
  cache.put(prepared.planKey, { refs: [], value: batches.map(storedBatch) })
  const tokenBudget = createTokenBudget(model, job.max_tokens_total, answerTokens)
  const signal = dex.signal ?? new AbortController().signal
  const mapRun: MapRun = {
    model,
    tokenBudget,
    cache,
    schema,
    signal,
    dropped: { ...NOTHING_DROPPED },
    cutByServer: 0,
  }
  const reportProgress = progressReporter(dex, batches, tokenBudget)

  const outcomes = await inParallel(batches, job.parallel, async (batch) => {
    const refs = conversationsOf(batch)
    const outcome = await answerPrompt(mapRun, { key: mapKey(model, job, batch.hash), refs }, async () => {
      const texts = await Promise.all(
        batch.pieces.map((piece) => readPieceText(store, measuredOf(piece), piece, maxUnitChars(budget))),
      )
      if (texts.includes(undefined)) return { reason: "the data changed while it was read; run this again" }
      const data = texts.join("\n")
      return { prompt: mapPrompt(task, schema, data), data, contains: refChecker(batch, measuredOf) }
    })
    reportProgress(batch)
    return outcome
  })
  const parts = outcomes.flatMap((outcome) => (outcome.type === "part" ? [outcome.part] : []))
  const failed = outcomes.flatMap((outcome, i) =>
    outcome.type === "failed" ? [{ refs: conversationsOf(batches[i]!), reason: outcome.reason }] : [],
  )
  if (parts.length === 0)
    throw mapRun.error ?? new DexError("map_failed", `Nothing was mapped: ${mapRun.stopped ?? failed[0]?.reason}.`)

  const maxMergeChars = Math.min(budget, charactersWithin(answerTokens * MERGE_RATIO))
  const { result, unmerged, outcomes: mergeOutcomes } = await mergeParts(mapRun, job, parts, maxMergeChars)
  const mergedRefs = new Set(itemRefs(result, schema))
  const refsBefore = new Set(parts.flatMap((part) => itemRefs(part.result, schema)))
  return {
    result: withoutWiderRefs(result, schema),
    cached: countOf(outcomes, "cached"),
    asked: countOf(outcomes, "asked") + failed.length,
    failed,
    not_done: outcomes.filter(({ type }) => type === "not_done").length,
    stopped: mapRun.stopped,
    merges: {
      cached: countOf(mergeOutcomes, "cached"),
      asked: countOf(mergeOutcomes, "asked"),
      failed: mergeOutcomes.flatMap((outcome) => (outcome.type === "failed" ? [outcome.reason] : [])),
      unmerged,
    },
    dropped: mapRun.dropped,
    cutByServer: mapRun.cutByServer,
    items_before_merge: parts.reduce((sum, part) => sum + countItems(part.result, schema), 0),
    items: countItems(result, schema),
    refs_not_in_result: [...refsBefore].filter((ref) => !mergedRefs.has(ref)).length,
  }
}

function progressReporter(dex: Dex, batches: Batch[], tokenBudget: TokenBudget): (batch: Batch) => void {
  const charsTotal = batches.reduce((sum, { chars }) => sum + chars, 0)
  let done = 0
  let charsDone = 0
  return ({ chars }) => {
    done++
    charsDone += chars
    dex.onProgress?.({
      phase: "mapping",
      done,
      total: batches.length,
      bytes: charsDone,
      bytesTotal: charsTotal,
      tokens: tokenBudget.spent(),
    })
  }
}

/**
 * Merges the batches' results with one prompt, in order, as long as they fit into `maxMergeChars` characters. Results that do
 * not fit or could not be merged are appended, so nothing is lost.
 */
async function mergeParts(
  mapRun: MapRun,
  { task, schema }: MapJob,
  parts: PartialResult[],
  maxMergeChars: number,
): Promise<{ result: MapResult; unmerged: number; outcomes: MapOutcome[] }> {
  let charsLeft = maxMergeChars
  const group: (PartialResult & { shown: string })[] = []
  const others: PartialResult[] = []
  for (const part of parts) {
    const resultText = resultForModel(part.result, schema)
    if (resultText.length > charsLeft) {
      others.push(part)
      continue
    }
    group.push({ ...part, shown: resultText })
    charsLeft -= resultText.length
  }
  if (group.length < 2)
    return { result: concatenateResults(parts, schema), unmerged: parts.length === 1 ? 0 : parts.length, outcomes: [] }
  const resultTexts = group.map((part) => part.shown)
  const key = cacheKey("merge", PROMPT_VERSION, mapRun.model.id, task, JSON.stringify(schema), ...resultTexts)
  const refs = [...new Set(group.flatMap((part) => part.refs))]
  const groupRefs = new Set(group.flatMap((part) => itemRefs(part.result, schema)))
  const outcome = await answerPrompt(mapRun, { key, refs }, async () => ({
    prompt: mergePrompt(task, schema, resultTexts),
    data: resultTexts.join(""),
    contains: (ref) => groupRefs.has(formatRef(ref)),
  }))
  const isMerged = outcome.type === "part"
  return {
    result: concatenateResults(isMerged ? [outcome.part, ...others] : parts, schema),
    unmerged: isMerged ? others.length : parts.length,
    outcomes: [outcome],
  }
}

/** Concatenates lists and joins texts. For other values, uses the first one. */
function concatenateResults(parts: PartialResult[], schema: Schema): MapResult {
  if (parts.length === 1) return parts[0]!.result
  const result: MapResult = {}
  for (const [name, { type, enum: choices }] of Object.entries(schema.properties ?? {})) {
    const values = parts.flatMap((part) => (part.result[name] === undefined ? [] : [part.result[name]]))
    if (values.length === 0) continue
    if (type === "array") result[name] = values.flat()
    else result[name] = type === "string" && !choices ? [...new Set(values)].join("\n") : values[0]
  }
  return result
}

function countOf(outcomes: MapOutcome[], was: "cached" | "asked"): number {
  return outcomes.filter((outcome) => outcome.type === "part" && outcome.was === was).length
}

function mapKey(model: Model, job: MapJob, hash: string): string {
  return cacheKey("map", PROMPT_VERSION, model.id, job.task, JSON.stringify(job.schema), hash)
}

function conversationsOf({ pieces }: Batch): string[] {
  return [...new Set(pieces.map(({ ref }) => formatRef(ref)))]
}

/** Returns a function that checks whether a ref names a conversation or message in the batch. */
function refChecker(batch: Batch, measuredOf: (piece: Piece) => MeasuredConversation): (ref: Ref) => boolean {
  const numbers = new Map<string, Set<number>>()
  for (const piece of batch.pieces) {
    const name = formatRef(piece.ref)
    const numbersInConversation = numbers.get(name) ?? new Set()
    for (const unit of measuredOf(piece).units.slice(piece.from, piece.from + piece.count))
      numbersInConversation.add(unit.number)
    numbers.set(name, numbersInConversation)
  }
  return ({ number, section: _, ...ref }) => {
    const numbersInConversation = numbers.get(formatRef(ref))
    return numbersInConversation !== undefined && (number === undefined || numbersInConversation.has(number))
  }
}

/** Removes the ref of a conversation from an item that also has the ref of one of its messages. */
function withoutWiderRefs(result: MapResult, schema: Schema): MapResult {
  const lists = listsOf(schema).map((name) => [
    name,
    itemsOf(result, name).map((item) => ({
      ...item,
      refs: item.refs.filter((ref) => !item.refs.some((other) => other.startsWith(`${ref}#`))),
    })),
  ])
  return { ...result, ...Object.fromEntries(lists) }
}

/** Runs `work` on every item, on at most `limit` items at once, and returns the results in order. */
async function inParallel<T, R>(items: T[], limit: number, work: (item: T, i: number) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(items.length)
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const i = next++
      results[i] = await work(items[i]!, i)
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  return results
}
