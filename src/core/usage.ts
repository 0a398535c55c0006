/** Tokens as the provider counted them. `input` excludes what came from the cache, even if the agent reports it otherwise. */
export type Usage = {
  input: number
  output: number
  cache_read: number
  cache_write: number
  /** `cache_write` by lifetime, if the agent reports it. One hour costs more than five minutes. */
  cache_write_5m?: number
  cache_write_1h?: number
  /** Part of `output`. */
  reasoning?: number
  web_searches?: number
  web_fetches?: number
  cost?: number
  /** The context size of the longest request, if this is the sum of several requests. Long requests cost more. */
  longest?: number
  /** The provider's name for the price category of this answer. A sum has one only if all its answers share it. */
  service_tier?: string
  speed?: string
}

/** Every usage has the REQUIRED fields. A combined usage has an OPTIONAL field if one of its operands has it. */
const REQUIRED = ["input", "output", "cache_read", "cache_write"] as const
const OPTIONAL = ["cache_write_5m", "cache_write_1h", "reasoning", "web_searches", "web_fetches", "cost"] as const

export function addUsage(a: Usage | undefined, b: Usage): Usage {
  return a ? combineUsage(a, b, (x, y) => x + y) : b
}

/** Combines two usages field by field. `combine` receives 0 for a field that one operand does not have. */
export function combineUsage(a: Usage, b: Usage, combine: (x: number, y: number) => number): Usage {
  const combined = {} as Usage
  for (const field of REQUIRED) combined[field] = combine(a[field], b[field])
  for (const field of OPTIONAL)
    if (a[field] !== undefined || b[field] !== undefined) combined[field] = combine(a[field] ?? 0, b[field] ?? 0)
  return combined
}

/** Adds the usage of another request for the same message. */
export function addRequest(a: Usage | undefined, b: Usage): Usage {
  if (!a) return b
  return {
    ...addUsage(a, b),
    longest: Math.max(longestRequest(a), longestRequest(b)),
    service_tier: a.service_tier === b.service_tier ? a.service_tier : undefined,
    speed: a.speed === b.speed ? a.speed : undefined,
  }
}

/** Returns the context size of the longest request. */
export function longestRequest({ longest, input, cache_read, cache_write }: Usage): number {
  return longest ?? input + cache_read + cache_write
}

/** Returns the sum of usages, or undefined if nothing was counted. */
export function totalUsage(counted: Iterable<Usage | undefined>): Usage | undefined {
  let total: Usage | undefined
  for (const usage of counted)
    if (usage) total = addUsage(total ?? { input: 0, output: 0, cache_read: 0, cache_write: 0 }, usage)
  return total
}

/** The tokens of one model at one price: the sum of requests that share everything that affects the price. */
export type Spending = {
  /** Undefined if no record names the model. */
  model?: string
  at: number
  /** The size class of these requests: the largest price step that all of them exceed. */
  context: number
  service_tier?: string
  speed?: string
  /** The number of answers in the sum. */
  answers: number
  input: number
  output: number
  /** Part of `output`. */
  reasoning: number
  cache_read: number
  cache_write_5m: number
  cache_write_1h: number
  /** Tokens written to the cache for a time that the agent does not report. dex assumes five minutes for the price. */
  cache_write_other: number
  web_searches: number
  web_fetches: number
  /** The cost in dollars, as the agent calculated it. */
  recorded: number
}
