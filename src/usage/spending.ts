import type { Effect } from "../core/conversation.ts"
import { longestRequest, type Spending, type Usage } from "../core/usage.ts"

/** The fields of a message from which spending is computed. */
type PaidMessage = {
  number: number
  at?: number
  model?: string
  usage?: Usage
  effects: Effect[]
  superseded: boolean
  copied: boolean
}

/** The spending in the part of a conversation that begins with message `number`. */
export type SpentPart = Spending & {
  number: number
  /** True if the agent's file no longer has these messages: they were rewound, or rewritten with other ids. */
  superseded: boolean
}

/** A commit or a pull request that a conversation made, and when. */
export type MadeThing = { number: number; at: number; type: "commit" | "pull_request"; name: string; subject?: string }

/**
 * The length of a time slot, in milliseconds. In every time zone, days and five-hour blocks begin at a multiple of this length.
 */
const SLOT_MS = 15 * 60_000

/**
 * Returns a conversation's own spending, without the messages that it copied from another conversation, which paid for them.
 * Answers in the same quarter of an hour with the same price are summed up as one part, and a commit or pull request ends a
 * part. `endedAt` is used for messages without a time.
 */
export function spendingInMessages(messages: PaidMessage[], endedAt = 0): { spent: SpentPart[]; made: MadeThing[] } {
  const parts = new Map<string, SpentPart>()
  const made: MadeThing[] = []
  let at: number | undefined
  let model: string | undefined
  for (const message of messages) {
    at = message.at ?? at
    model = message.model ?? model
    if (message.copied) continue
    const { usage, number, superseded } = message
    const time = at ?? endedAt
    if (usage && hasUsage(usage)) {
      // A web search is counted in the tool's message, which names no model: it is attributed to the latest model.
      const payingModel = message.model ?? (hasNoTokens(usage) ? model : undefined)
      const part: SpentPart = { ...spendingOf(usage, payingModel, time), number, superseded }
      const key = slotKey(part, made.length)
      const existing = parts.get(key)
      if (existing) Object.assign(existing, addSpentCounts(existing, part))
      else parts.set(key, part)
    }
    if (!superseded) made.push(...madeInMessage(message, time))
  }
  return { spent: [...parts.values()], made }
}

export const SPENT_COUNTS = [
  "answers",
  "input",
  "output",
  "reasoning",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "cache_write_other",
  "web_searches",
  "web_fetches",
  "recorded",
] as const
export type SpentCounts = Pick<Spending, (typeof SPENT_COUNTS)[number]>

export function addSpentCounts(a: SpentCounts, b: SpentCounts): SpentCounts {
  const sum = {} as SpentCounts
  for (const name of SPENT_COUNTS) sum[name] = a[name] + b[name]
  return sum
}

export function countTokens(counts: SpentCounts): number {
  const { input, output, cache_read, cache_write_5m, cache_write_1h, cache_write_other } = counts
  return input + output + cache_read + cache_write_5m + cache_write_1h + cache_write_other
}

function slotKey({ at, model, context, service_tier, speed, superseded }: SpentPart, madeCount: number): string {
  return JSON.stringify([Math.floor(at / SLOT_MS), model, context, service_tier, speed, superseded, madeCount])
}

const hasUsage = (usage: Usage) => Object.values(usage).some((amount) => typeof amount === "number" && amount > 0)
const hasNoTokens = ({ input, output, cache_read, cache_write }: Usage) =>
  input + output + cache_read + cache_write === 0

function spendingOf(usage: Usage, model: string | undefined, at: number): Spending {
  const { cache_write_5m = 0, cache_write_1h = 0, service_tier, speed } = usage
  return {
    model,
    at,
    context: contextStep(longestRequest(usage)),
    service_tier,
    speed,
    answers: 1,
    input: usage.input,
    output: usage.output,
    reasoning: usage.reasoning ?? 0,
    cache_read: usage.cache_read,
    cache_write_5m,
    cache_write_1h,
    cache_write_other: Math.max(0, usage.cache_write - cache_write_5m - cache_write_1h),
    web_searches: usage.web_searches ?? 0,
    web_fetches: usage.web_fetches ?? 0,
    recorded: usage.cost ?? 0,
  }
}

function madeInMessage({ number, effects }: PaidMessage, at: number): MadeThing[] {
  return effects.flatMap((effect): MadeThing[] => {
    if (effect.type === "commit") return [{ number, at, type: effect.type, name: effect.hash, subject: effect.subject }]
    return effect.type === "pull_request" ? [{ number, at, type: effect.type, name: effect.url }] : []
  })
}

/** The request sizes at which prices change. Spending is separated by them, so that each part has one price. */
export const CONTEXT_STEPS = [128_000, 199_999, 200_000, 271_999, 272_000, 512_000]

/** Returns the highest step that a request of this many tokens exceeds; 0 if it exceeds none. */
export function contextStep(tokens: number): number {
  return CONTEXT_STEPS.findLast((step) => tokens > step) ?? 0
}
