import { loadSettings } from "../../config/load.ts"
import { PERSONS_KINDS, type SourceId } from "../../core/conversation.ts"
import { DexError } from "../../core/error.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import type { Schema } from "../../core/schema.ts"
import { charactersWithin, tokensOf } from "../../core/tokens.ts"
import type { Model } from "../../llm/model.ts"
import type { Dex } from "../../tools/context.ts"
import { dateRange } from "../../tools/fields.ts"
import { answer, type Desk, type MapOutcome } from "./answer.ts"
import { cacheKey, openCache } from "./cache.ts"
import { type Dropped, NOTHING_DROPPED } from "./check.ts"
import { type Measured, measure, type Piece, readPieceText } from "./data.ts"
import type { MapFormat } from "./formats.ts"
import { type Batch, type KnownBatch, LOOSE, longestUnit, planBatches, remembered } from "./pack.ts"
import { mapQuestion, mergeQuestion } from "./prompt.ts"
import { countItems, itemRefs, type PartialResult, reduce, refsIn, shownPart } from "./reduce.ts"
import { itemsOf, listsOf, type MapResult } from "./schema.ts"
import { openPurse, type Purse } from "./spend.ts"

export type MapFilters = {
  project?: string
  source?: SourceId
  from?: string
  to?: string
  all?: boolean
  limit?: number
}

export type Job = {
  task: string
  schema: Schema
  filters: MapFilters
  format: MapFormat
  batch_tokens: number
  parallel: number
  max_tokens_total?: number
}

/** What is to be done: conversations, and how they are packed. Nothing is asked and nothing written for it. */
export type Prepared = {
  rows: number
  /** Conversations that say nothing of their own. */
  without_text: number
  left_out: Record<string, number>
  conversations: Map<string, Measured>
  batches: Batch[]
  isDone: (batch: Batch) => boolean
  budget: number
  planKey: string
}

/** What is part of every key: answers to another question must not be taken for answers to this one. */
const VERSION = "1"
const EVERYTHING = 1_000_000
/** A merge has to be said in one answer: it is given at most so many times the tokens that an answer may have. */
const MERGE_RATIO = 4

export async function prepare(dex: Dex, job: Job, model: Model | undefined): Promise<Prepared> {
  const store = await dex.store()
  const { filters, format, schema, task } = job
  const { rows, left_out } = await store.list({
    ...(filters.project !== undefined && { project: filters.project }),
    ...(filters.source !== undefined && { source: filters.source }),
    ...dateRange(filters, dex.now()),
    ...(!filters.all && { kinds: PERSONS_KINDS }),
    inside: dex.project,
    limit: filters.limit ?? EVERYTHING,
    offset: 0,
  })
  const budget = charactersWithin(job.batch_tokens)
  const measured: Measured[] = []
  for (const row of rows) measured.push(await measure(store, row, longestUnit(budget), format))
  const saying = measured.filter(({ units }) => units.length > 0)
  const cache = openCache(dex.home.dir)
  const planKey = `plan-${cacheKey(VERSION, model?.id ?? "", task, JSON.stringify([schema, filters, job.batch_tokens, format]))}`
  const isDone = (hash: string) => model !== undefined && cache.has(mapKey(model, job, hash))
  return {
    rows: rows.length,
    without_text: measured.length - saying.length,
    left_out: left_out as Record<string, number>,
    conversations: new Map(saying.map((one) => [formatRef(one.ref), one])),
    batches: planBatches(saying, budget, knownBatches(cache.get(planKey)), isDone),
    isDone: (batch) => isDone(batch.hash),
    budget,
    planKey,
  }
}

export type Mapped = {
  result: MapResult
  cached: number
  asked: number
  failed: { refs: string[]; reason: string }[]
  not_done: number
  /** Why it ended before all was done. */
  stopped?: string
  merges: { asked: number; cached: number; failed: string[]; unmerged: number }
  dropped: Dropped
  /** Answers for which the server counted far fewer tokens than were sent. */
  short: number
  items_before_merge: number
  items: number
  refs_not_in_result: number
}

/** Asks for every batch that is not answered yet, then merges. What was answered is kept at once. */
export async function runMap(dex: Dex, job: Job, prepared: Prepared, model: Model): Promise<Mapped> {
  const { batches, conversations, budget } = prepared
  const { schema, task } = job
  const store = await dex.store()
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.project })
  const answerTokens = settings["llm.max_tokens"]
  const cache = openCache(dex.home.dir)
  const measuredOf = (piece: Piece) => conversations.get(formatRef(piece.ref))!
  cache.sweep()
  cache.put(prepared.planKey, { refs: [], value: batches.map(remembered) })
  const purse = openPurse(model, job.max_tokens_total, answerTokens)
  const signal = dex.signal ?? new AbortController().signal
  const desk: Desk = { model, purse, cache, schema, signal, dropped: { ...NOTHING_DROPPED }, short: 0 }
  const say = progressOf(dex, batches, purse)

  const outcomes = await inParallel(batches, job.parallel, async (batch) => {
    const refs = conversationsOf(batch)
    const outcome = await answer(desk, { key: mapKey(model, job, batch.hash), refs }, async () => {
      const texts = await Promise.all(
        batch.pieces.map((piece) => readPieceText(store, measuredOf(piece), piece, longestUnit(budget))),
      )
      if (texts.includes(undefined)) return { reason: "it changed while it was read; run this again" }
      const data = texts.join("\n")
      return { question: mapQuestion(task, schema, data), data, holds: refsOf(batch, measuredOf) }
    })
    say(batch)
    return outcome
  })
  const parts = partsOf(outcomes)
  const failed = outcomes.flatMap((outcome, i) =>
    outcome.type === "failed" ? [{ refs: conversationsOf(batches[i]!), reason: outcome.reason }] : [],
  )
  if (parts.length === 0)
    throw desk.error ?? new DexError("map_failed", `Nothing was mapped: ${desk.stopped ?? failed[0]?.reason}.`)

  const merged: MapOutcome[] = []
  const merge = async (group: PartialResult[]): Promise<PartialResult | undefined> => {
    const shown = group.map((part) => shownPart(part, schema))
    const key = cacheKey("merge", VERSION, model.id, task, JSON.stringify(schema), ...shown)
    const refs = [...new Set(group.flatMap((part) => part.refs))]
    const question = mergeQuestion(task, schema, shown)
    const asked = { question, data: shown.join(""), holds: refsIn(group, schema) }
    const outcome = await answer(desk, { key, refs }, async () => asked)
    merged.push(outcome)
    return outcome.type === "part" ? outcome.part : undefined
  }
  const mergeBudget = Math.min(budget, charactersWithin(answerTokens * MERGE_RATIO))
  const { part, unmerged } = await reduce(parts, schema, mergeBudget, (groups) =>
    inParallel(groups, job.parallel, merge),
  )
  const kept = new Set(itemRefs(part.result, schema))
  const before = new Set(parts.flatMap(({ result }) => itemRefs(result, schema)))
  return {
    result: withoutWiderRefs(part.result, schema),
    cached: countOf(outcomes, "kept"),
    asked: countOf(outcomes, "asked") + failed.length,
    failed,
    not_done: outcomes.filter(({ type }) => type === "not_done").length,
    ...(desk.stopped !== undefined && { stopped: desk.stopped }),
    merges: {
      cached: countOf(merged, "kept"),
      asked: countOf(merged, "asked"),
      failed: merged.flatMap((outcome) => (outcome.type === "failed" ? [outcome.reason] : [])),
      unmerged,
    },
    dropped: desk.dropped,
    short: desk.short,
    items_before_merge: parts.reduce((sum, { result }) => sum + countItems(result, schema), 0),
    items: countItems(part.result, schema),
    refs_not_in_result: [...before].filter((ref) => !kept.has(ref)).length,
  }
}

function progressOf(dex: Dex, batches: Batch[], purse: Purse): (batch: Batch) => void {
  const bytesTotal = batches.reduce((sum, { chars }) => sum + chars, 0)
  let done = 0
  let bytes = 0
  return ({ chars }) => {
    done++
    bytes += chars
    dex.onProgress?.({ phase: "mapping", done, total: batches.length, bytes, bytesTotal, tokens: purse.spent() })
  }
}

function partsOf(outcomes: MapOutcome[]): PartialResult[] {
  return outcomes.flatMap((outcome) => (outcome.type === "part" ? [outcome.part] : []))
}

function countOf(outcomes: MapOutcome[], was: "kept" | "asked"): number {
  return outcomes.filter((outcome) => outcome.type === "part" && outcome.was === was).length
}

/** How many batches are emptier than they may be; the last one always may. */
export function looseBatches({ batches, budget }: Pick<Prepared, "batches" | "budget">): number {
  return batches.slice(0, -1).filter(({ chars }) => chars < budget * (1 - LOOSE)).length
}

export function tokensOfBatch({ chars }: Batch): number {
  return tokensOf(chars)
}

function mapKey(model: Model, job: Job, hash: string): string {
  return cacheKey("map", VERSION, model.id, job.task, JSON.stringify(job.schema), hash)
}

function conversationsOf({ pieces }: Batch): string[] {
  return [...new Set(pieces.map(({ ref }) => formatRef(ref)))]
}

/** Whether a ref is one of a conversation, or of a message, in the batch. */
function refsOf(batch: Batch, measuredOf: (piece: Piece) => Measured): (ref: Ref) => boolean {
  const numbers = new Map<string, Set<number>>()
  for (const piece of batch.pieces) {
    const name = formatRef(piece.ref)
    const known = numbers.get(name) ?? new Set()
    for (const unit of measuredOf(piece).units.slice(piece.from, piece.from + piece.count)) known.add(unit.number)
    numbers.set(name, known)
  }
  return ({ number, section: _, ...ref }) => {
    const known = numbers.get(formatRef(ref))
    return known !== undefined && (number === undefined || known.has(number))
  }
}

function isPiece(piece: Partial<KnownBatch["pieces"][number]> | null): boolean {
  return typeof piece?.ref === "string" && Number.isInteger(piece.from) && Number.isInteger(piece.count)
}

function knownBatches(value: unknown): KnownBatch[] {
  if (!Array.isArray(value)) return []
  return (value as (Partial<KnownBatch> | null)[]).flatMap((batch) =>
    Array.isArray(batch?.pieces) ? [{ pieces: batch.pieces.filter(isPiece) }] : [],
  )
}

/** A ref of a whole conversation says nothing beside one of its messages. */
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

/** Runs `work` on every item, at most `most` at once, and gives the results in order. */
async function inParallel<T, R>(items: T[], most: number, work: (item: T, i: number) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(items.length)
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const i = next++
      results[i] = await work(items[i]!, i)
    }
  }
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker))
  return results
}
