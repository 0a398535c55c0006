import { DexError } from "../core/error.ts"
import { charactersWithin, estimateTokens } from "../core/tokens.ts"
import { toJson } from "./json.ts"

// Fits answers into a budget of tokens. The budget counts the complete answer as an agent gets it: JSON with its names, quotes
// and escapes. On a terminal the same answer is shorter.

export type WithSize<A> = A & { estimated_tokens: number }

/** Adds an answer's size in tokens to the answer. */
export function withSize<A extends object>(answer: A): WithSize<A> {
  let tokens = 0
  for (;;) {
    const withSize = { ...answer, estimated_tokens: tokens }
    const needed = estimateTokens(`${toJson(withSize)}\n`)
    if (needed <= tokens) return withSize
    tokens = needed // a longer number may need another token; the number only grows, so this ends
  }
}

/**
 * Builds the answer with as many of the first items as fit into `maxTokens`. `build` gets the number of items, and its answer
 * says what it leaves out. `minSizeOf(i)` is a lower bound for the size of item i in characters. Undefined if not even the answer
 * without items fits.
 */
export function fitItems<A extends object>(
  count: number,
  build: (itemCount: number) => A,
  maxTokens: number | undefined,
  minSizeOf: (item: number) => number = () => 1,
): { answer: WithSize<A>; itemCount: number } | undefined {
  if (maxTokens === undefined) return { answer: withSize(build(count)), itemCount: count }
  const maxCount = maxItems(count, charactersWithin(maxTokens), minSizeOf)
  const fits = (itemCount: number) => withSize(build(itemCount)).estimated_tokens <= maxTokens
  if (maxCount === count && fits(count)) return { answer: withSize(build(count)), itemCount: count }
  const itemCount = largestPassing(0, Math.min(maxCount, count - 1), fits)
  return itemCount === undefined ? undefined : { answer: withSize(build(itemCount)), itemCount }
}

/** Builds a fallback that contains only the first item, cut after `n` characters. `from` and `to` are the limits of `n`. */
type FirstCut<A> = { from: number; to: number; build: (n: number) => A }

/**
 * Like `fitItems`, but at least `minItems` items must fit. If they do not, cuts the first item, or throws an error if it cannot
 * be cut.
 */
export function fitItemsOrCut<A extends object>(
  count: number,
  build: (itemCount: number) => A,
  maxTokens: number | undefined,
  minSizeOf: (item: number) => number,
  minItems: number,
  first: FirstCut<A> | undefined,
): WithSize<A> {
  const fit = fitItems(count, build, maxTokens, minSizeOf)
  if (fit && fit.itemCount >= minItems) return fit.answer
  const limit = maxTokens! // without a budget everything fits
  if (!first) throw budgetTooSmall(limit, build(minItems))
  const buildCut = (n: number) => withSize(first.build(n))
  const length = largestPassing(first.from, first.to, (n) => buildCut(n).estimated_tokens <= limit)
  if (length === undefined) throw budgetTooSmall(limit, first.build(first.from))
  return buildCut(length)
}

/** The largest integer in a range that passes. If a number passes, all smaller ones must pass too. */
export function largestPassing(from: number, to: number, passes: (n: number) => boolean): number | undefined {
  if (to < from || !passes(from)) return undefined
  let [low, high] = [from, to]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (passes(middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** An upper bound for the number of items that fit, so that answers that are far too long are not built. */
function maxItems(count: number, characters: number, minSizeOf: (item: number) => number): number {
  let sum = 0
  for (let item = 0; item < count; item++) {
    sum += minSizeOf(item)
    if (sum > characters) return item
  }
  return count
}

export function budgetTooSmall(maxTokens: number, smallest: object): DexError {
  const needed = withSize(smallest).estimated_tokens
  return new DexError(
    "budget",
    `${maxTokens} tokens are too few: the smallest answer takes about ${needed}. Try --max-tokens ${Math.ceil((needed + 200) / 100) * 100}.`,
  )
}
