import { messageOf } from "../../core/error.ts"
import type { Ref } from "../../core/ref.ts"
import { readAs, type Schema } from "../../core/schema.ts"
import { estimateTokens } from "../../core/tokens.ts"
import type { Model, ModelReply } from "../../llm/model.ts"
import type { Cache } from "./cache.ts"
import { type CheckedReply, checkReply, type Dropped, NOTHING_DROPPED } from "./check.ts"
import { askedAgain, type Question } from "./prompt.ts"
import type { PartialResult } from "./reduce.ts"
import type { MapResult } from "./schema.ts"
import type { Purse } from "./spend.ts"

type ReplyUsage = ModelReply["usage"]

/** What one run works with, and what has happened in it so far. */
export type Desk = {
  model: Model
  purse: Purse
  cache: Cache
  schema: Schema
  signal: AbortSignal
  dropped: Dropped
  /** Answers for which the server counted far fewer tokens than were sent. */
  short: number
  /** Why nothing more is asked, and the error behind it. */
  stopped?: string
  error?: unknown
}

type PreparedQuestion = {
  question: Question
  /** All that was shown, and whether a ref was in it. */
  data: string
  holds(ref: Ref): boolean
}

export type MapOutcome =
  | { type: "part"; part: PartialResult; was: "kept" | "asked" }
  | { type: "failed"; reason: string }
  | { type: "not_done" }

/**
 * The answer that is kept under a key, or the model's, which is kept at once. `prepare` is called only when it has to be
 * asked. Never throws: what stops one request stops those that come after it.
 */
export async function answer(
  desk: Desk,
  { key, refs }: { key: string; refs: string[] },
  prepare: () => Promise<PreparedQuestion | { reason: string }>,
): Promise<MapOutcome> {
  const known = keptPart(desk.cache.get(key), desk.schema)
  if (known) {
    note(desk, known)
    return { type: "part", part: known.part, was: "kept" }
  }
  if (desk.stopped !== undefined) return { type: "not_done" }
  try {
    const asked = await prepare()
    if ("reason" in asked) return { type: "failed", reason: asked.reason }
    const { question, data, holds } = asked
    const answered = await askJson(desk, question, desk.schema, (reply) => checkReply(reply, desk.schema, holds, data))
    if (answered.type === "bad") return { type: "failed", reason: answered.reason }
    if (answered.type === "no_tokens") {
      desk.stopped ??= desk.purse.refusal(question)
      return { type: "not_done" }
    }
    const { result, dropped } = answered.value
    const short = isShort(question, answered.usage)
    desk.cache.put(key, { refs, value: { result, refs, dropped, short } })
    note(desk, { dropped, short })
    return { type: "part", part: { result, refs }, was: "asked" }
  } catch (error) {
    desk.stopped ??= messageOf(error).replace(/\.$/, "")
    desk.error ??= error
    return { type: "not_done" }
  }
}

/** Some servers cut a prompt that is longer than their context and say nothing. What they count tells. */
function isShort({ system, text }: Question, { input, is_estimate }: ReplyUsage): boolean {
  return !is_estimate && input < estimateTokens(system + text) / 2
}

function note(desk: Desk, { dropped, short }: { dropped: Dropped; short: boolean }): void {
  for (const name of Object.keys(NOTHING_DROPPED) as (keyof Dropped)[]) desk.dropped[name] += dropped[name]
  if (short) desk.short++
}

/** What is in the cache was once checked; a file that somebody changed is as good as none. */
function keptPart(
  value: unknown,
  schema: Schema,
): { part: PartialResult; dropped: Dropped; short: boolean } | undefined {
  if (typeof value !== "object" || value === null) return undefined
  const { result, refs, dropped, short } = value as {
    result?: unknown
    refs?: unknown
    dropped?: Dropped
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

export type Answered<T> =
  | { type: "answer"; value: T; usage: ModelReply["usage"] }
  /** It was asked as often as it may be, and no answer could be taken. */
  | { type: "bad"; reason: string }
  /** It was not asked, or not again: there were no tokens left for it. */
  | { type: "no_tokens" }

const RETRIES = 2

/** Asks until an answer can be taken, telling the model what was wrong with the last one. Throws what `reply` throws. */
async function askJson(
  { model, purse, signal }: { model: Model; purse: Purse; signal: AbortSignal },
  question: Question,
  schema: Schema,
  check: (reply: ModelReply) => CheckedReply,
): Promise<Answered<Extract<CheckedReply, { ok: unknown }>["ok"]>> {
  let reason = ""
  for (let tries = 0; tries <= RETRIES; tries++) {
    const { system, text } = reason === "" ? question : askedAgain(question, reason)
    const giveBack = purse.take({ system, text })
    if (!giveBack) return { type: "no_tokens" }
    let reply: ModelReply
    try {
      reply = await model.reply({ system, messages: [{ role: "user", content: text }], json_schema: schema, signal })
    } finally {
      giveBack()
    }
    const checked = check(reply)
    if ("ok" in checked) return { type: "answer", value: checked.ok, usage: reply.usage }
    reason = checked.wrong
  }
  return { type: "bad", reason: `${RETRIES + 1} answers could not be taken; of the last one, ${reason}` }
}
