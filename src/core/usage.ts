/** Tokens as the provider counted them; `input` excludes what came from the cache, whatever the agent reports. */
export type Usage = {
  input: number
  output: number
  cache_read: number
  cache_write: number
  /** How `cache_write` divides by how long it is kept, where the agent says so: an hour costs more than five minutes. */
  cache_write_5m?: number
  cache_write_1h?: number
  /** Part of `output`. */
  reasoning?: number
  web_searches?: number
  web_fetches?: number
  cost?: number
  /** What the longest request was given, where this is the sum of several of one message: long ones cost more. */
  longest?: number
  /** What the provider charged this answer at, in its own words. A sum of several answers has neither, unless all have the same. */
  service_tier?: string
  speed?: string
}

/** What is always there comes first; the rest only where at least one of the two has it. */
const REQUIRED = ["input", "output", "cache_read", "cache_write"] as const
const OPTIONAL = ["cache_write_5m", "cache_write_1h", "reasoning", "web_searches", "web_fetches", "cost"] as const

export function addUsage(a: Usage | undefined, b: Usage): Usage {
  return a ? combineUsage(a, b, (x, y) => x + y) : b
}

/** `by` gets 0 for what one of the two does not have. */
export function combineUsage(a: Usage, b: Usage, by: (x: number, y: number) => number): Usage {
  const both = {} as Usage
  for (const field of REQUIRED) both[field] = by(a[field], b[field])
  for (const field of OPTIONAL)
    if (a[field] !== undefined || b[field] !== undefined) both[field] = by(a[field] ?? 0, b[field] ?? 0)
  return both
}

/** Another request of the same message. */
export function addRequest(a: Usage | undefined, b: Usage): Usage {
  if (!a) return b
  return {
    ...addUsage(a, b),
    longest: Math.max(longestIn(a), longestIn(b)),
    service_tier: a.service_tier === b.service_tier ? a.service_tier : undefined,
    speed: a.speed === b.speed ? a.speed : undefined,
  }
}

/** How many tokens the longest of the requests was given. */
export function longestIn({ longest, input, cache_read, cache_write }: Usage): number {
  return longest ?? input + cache_read + cache_write
}

/** Undefined where nothing was counted. */
export function totalUsage(counted: Iterable<Usage | undefined>): Usage | undefined {
  let total: Usage | undefined
  for (const usage of counted)
    if (usage) total = addUsage(total ?? { input: 0, output: 0, cache_read: 0, cache_write: 0 }, usage)
  return total
}

/** What one model was given and gave at one price: the sum of requests that do not differ in anything that decides it. */
export type Spending = {
  /** Undefined where no record says it. */
  model?: string
  at: number
  /** How long these requests were: the step, of those at which prices change, that each of them is beyond. */
  context: number
  service_tier?: string
  speed?: string
  /** How many answers these are the sum of. */
  answers: number
  input: number
  output: number
  /** Part of `output`. */
  reasoning: number
  cache_read: number
  cache_write_5m: number
  cache_write_1h: number
  /** Written for a time that the agent does not say; it costs what five minutes cost. */
  cache_write_other: number
  web_searches: number
  web_fetches: number
  /** Dollars, as the agent itself reckoned. */
  recorded: number
}
