import { messageOf } from "../../core/error.ts"
import { formatRef, parseCompleteRef, type Ref } from "../../core/ref.ts"
import { readAs, type Schema } from "../../core/schema.ts"
import { estimateTokens } from "../../core/tokens.ts"
import type { Model, ModelReply } from "../../llm/model.ts"
import { findJson } from "../../llm/reply.ts"
import { redactRecord } from "../../redact/redact.ts"
import { linksIn } from "../cited.ts"
import type { MapCache } from "./cache.ts"
import { type MapPrompt, retryPrompt } from "./prompt.ts"
import { itemsOf, listsOf, type MapItem, type MapResult } from "./schema.ts"

type ReplyUsage = ModelReply["usage"]

/** The dependencies and state of one run. */
export type MapRun = {
  model: Model
  tokenBudget: TokenBudget
  cache: MapCache
  schema: Schema
  signal: AbortSignal
  dropped: DroppedCounts
  /** The number of answers for which the server counted far fewer tokens than were sent. */
  cutByServer: number
  /** Why no more requests are made, and the error that caused it. */
  stopped?: string
  error?: unknown
}

type PreparedPrompt = {
  prompt: MapPrompt
  /** Everything that the model was shown. `contains` checks whether a ref occurs in it. */
  data: string
  contains(ref: Ref): boolean
}

/** The result for some of the conversations, and the refs of those conversations. */
export type PartialResult = { result: MapResult; refs: string[] }

export type MapOutcome =
  | { type: "part"; part: PartialResult; was: "cached" | "asked" }
  | { type: "failed"; reason: string }
  | { type: "not_done" }

/**
 * Returns the cached answer, or asks the model and caches its answer at once. Calls `prepare` only if the model has to be asked.
 * Never throws: an error that stops one request also stops later ones.
 */
export async function answerPrompt(
  mapRun: MapRun,
  { key, refs }: { key: string; refs: string[] },
  prepare: () => Promise<PreparedPrompt | { reason: string }>,
): Promise<MapOutcome> {
  const cached = cachedPart(mapRun.cache.get(key), mapRun.schema)
  if (cached) {
    countAnswer(mapRun, cached)
    return { type: "part", part: cached.part, was: "cached" }
  }
  if (mapRun.stopped !== undefined) return { type: "not_done" }
  try {
    const prepared = await prepare()
    if ("reason" in prepared) return { type: "failed", reason: prepared.reason }
    const { prompt, data, contains } = prepared
    const answered = await askJson(mapRun, prompt, mapRun.schema, (reply) =>
      checkReply(reply, mapRun.schema, contains, data),
    )
    if (answered.type === "bad") return { type: "failed", reason: answered.reason }
    if (answered.type === "no_tokens") {
      mapRun.stopped ??= mapRun.tokenBudget.refusal(prompt)
      return { type: "not_done" }
    }
    const { result, dropped } = answered.value
    const short = isCutByServer(prompt, answered.usage)
    mapRun.cache.put(key, { refs, value: { result, refs, dropped, short } })
    countAnswer(mapRun, { dropped, short })
    return { type: "part", part: { result, refs }, was: "asked" }
  } catch (error) {
    mapRun.stopped ??= messageOf(error).replace(/\.$/, "")
    mapRun.error ??= error
    return { type: "not_done" }
  }
}

/** True if the server counted far fewer tokens than were sent: some servers silently cut a prompt that exceeds their context. */
function isCutByServer({ system, text }: MapPrompt, { input, is_estimate }: ReplyUsage): boolean {
  return !is_estimate && input < estimateTokens(system + text) / 2
}

function countAnswer(mapRun: MapRun, { dropped, short }: { dropped: DroppedCounts; short: boolean }): void {
  for (const name of Object.keys(NOTHING_DROPPED) as (keyof DroppedCounts)[]) mapRun.dropped[name] += dropped[name]
  if (short) mapRun.cutByServer++
}

/**
 * Reads a cached answer. Returns undefined if it does not match the schema, which means that the file was changed or is missing.
 */
function cachedPart(
  value: unknown,
  schema: Schema,
): { part: PartialResult; dropped: DroppedCounts; short: boolean } | undefined {
  if (typeof value !== "object" || value === null) return undefined
  const { result, refs, dropped, short } = value as {
    result?: unknown
    refs?: unknown
    dropped?: DroppedCounts
    short?: unknown
  }
  const checked = readAs(schema, result)
  if ("wrong" in checked || !Array.isArray(refs)) return undefined
  return {
    part: { result: checked.ok as MapResult, refs: refs.map(String) },
    dropped: { ...NOTHING_DROPPED, ...dropped },
    short: short === true,
  }
}

type AskedAnswer<T> =
  | { type: "answer"; value: T; usage: ModelReply["usage"] }
  /** The model was asked as often as is allowed, but none of its answers was valid. */
  | { type: "bad"; reason: string }
  /** The model was not asked (again), because no tokens were left. */
  | { type: "no_tokens" }

const MAX_RETRIES = 2

/**
 * Asks until an answer is valid or MAX_RETRIES is reached. Each retry tells the model what was wrong. Throws the model's errors.
 */
async function askJson(
  { model, tokenBudget, signal }: { model: Model; tokenBudget: TokenBudget; signal: AbortSignal },
  prompt: MapPrompt,
  schema: Schema,
  check: (reply: ModelReply) => CheckedReply,
): Promise<AskedAnswer<Extract<CheckedReply, { ok: unknown }>["ok"]>> {
  let reason = ""
  for (let tries = 0; tries <= MAX_RETRIES; tries++) {
    const { system, text } = reason === "" ? prompt : retryPrompt(prompt, reason)
    const release = tokenBudget.reserve({ system, text })
    if (!release) return { type: "no_tokens" }
    let reply: ModelReply
    try {
      reply = await model.reply({ system, messages: [{ role: "user", content: text }], json_schema: schema, signal })
    } finally {
      release()
    }
    const checked = check(reply)
    if ("ok" in checked) return { type: "answer", value: checked.ok, usage: reply.usage }
    reason = checked.wrong
  }
  return { type: "bad", reason: `${MAX_RETRIES + 1} answers were invalid. The problem with the last one: ${reason}` }
}

/** Counts of what was removed from an answer, by reason. */
export type DroppedCounts = { foreign_refs: number; items_without_refs: number; items_with_foreign_links: number }
export const NOTHING_DROPPED: DroppedCounts = { foreign_refs: 0, items_without_refs: 0, items_with_foreign_links: 0 }

type CheckedReply = { ok: { result: MapResult; dropped: DroppedCounts } } | { wrong: string }

/**
 * Accepts the parts of an answer that match the schema and refer to the data: `contains` checks a ref, `data` is everything that
 * was shown. `wrong` is a message to the model and contains none of the model's own words.
 */
function checkReply(
  reply: Pick<ModelReply, "text" | "finish">,
  schema: Schema,
  contains: (ref: Ref) => boolean,
  data: string,
): CheckedReply {
  if (reply.finish === "length") return { wrong: "it was cut off, because it was too long; say it in fewer words" }
  const json = findJson(reply.text)
  if (typeof json !== "object" || json === null || Array.isArray(json)) return { wrong: "it held no JSON object" }
  const parsed = readAs(schema, json)
  if ("wrong" in parsed) return { wrong: withoutModelWords(parsed.wrong) }
  const result = redactRecord(parsed.ok as Record<string, never>).record as MapResult
  const dropped = { ...NOTHING_DROPPED }
  let itemCount = 0
  let keptCount = 0
  for (const name of listsOf(schema)) {
    const items = itemsOf(result, name)
    itemCount += items.length
    result[name] = items.flatMap((item) => checkItem(item, contains, data, dropped))
    keptCount += itemsOf(result, name).length
  }
  if (itemCount > 0 && keptCount === 0)
    return { wrong: "no item has a ref of the data, exactly as it is there, and no foreign link" }
  return { ok: { result, dropped } }
}

function checkItem(item: MapItem, contains: (ref: Ref) => boolean, data: string, dropped: DroppedCounts): MapItem[] {
  const refs = [...new Set(item.refs.flatMap((text) => validRef(text, contains)))]
  dropped.foreign_refs += item.refs.length - refs.length
  if (refs.length === 0) dropped.items_without_refs++
  const isClean = stringsIn(item)
    .flatMap(linksIn)
    .every((link) => data.includes(link))
  if (!isClean) dropped.items_with_foreign_links++
  return refs.length > 0 && isClean ? [{ ...item, refs }] : []
}

function validRef(text: string, contains: (ref: Ref) => boolean): string[] {
  const parsed = parseCompleteRef(text)
  if (!parsed) return []
  const { section: _, ...ref } = parsed
  return contains(ref) ? [formatRef(ref)] : []
}

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

/** The error in our own words, because the names of unknown fields are the model's words. */
function withoutModelWords(wrong: string): string {
  return wrong.endsWith(" is not known") ? "it has a field that is not in the schema" : wrong
}

/** The token budget of a run. A request is made only if it fits together with the longest possible answer. */
export type TokenBudget = {
  /**
   * Reserves tokens for a request. Returns a function that releases them, to be called when the request is over and its real
   * cost is counted. Undefined if too few tokens are left.
   */
  reserve(prompt: MapPrompt): (() => void) | undefined
  /** Explains why a request does not fit. */
  refusal(prompt: MapPrompt): string
  spent(): number
}

export function createTokenBudget(model: Model, limit: number | undefined, answerTokens: number): TokenBudget {
  let reserved = 0
  const spent = () => model.used().input + model.used().output
  const neededFor = ({ system, text }: MapPrompt) => estimateTokens(system + text) + answerTokens
  return {
    spent,
    refusal: (prompt) =>
      `the next request may need ${neededFor(prompt)} tokens, and ${spent()} of ${limit} tokens are already spent`,
    reserve(prompt) {
      const needed = neededFor(prompt)
      if (limit !== undefined && spent() + reserved + needed > limit) return undefined
      reserved += needed
      return () => {
        reserved -= needed
      }
    },
  }
}
