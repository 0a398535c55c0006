import { DexError } from "../core/error.ts"
import { charactersWithin, estimateTokens } from "../core/tokens.ts"
import { toJson } from "./json.ts"

// An answer with its own size. A budget counts the complete answer as an agent gets it: JSON with its names, quotes and escapes.
// The same answer is shorter on a terminal.

export type WithSize<A> = A & { estimated_tokens: number }

/** The answer with its own size in it. */
export function withSize<A extends object>(answer: A): WithSize<A> {
  let tokens = 0
  for (;;) {
    const withSize = { ...answer, estimated_tokens: tokens }
    const now = estimateTokens(`${toJson(withSize)}\n`)
    if (now <= tokens) return withSize
    tokens = now // one more digit may be one more token; it only grows, so this ends
  }
}

/**
 * The answer with as many of the first items as fit into `maxTokens`. `build` gets their number; the answer says what it leaves
 * out. `least(i)` is a lower bound for the size of item i in characters. Undefined if not even the empty answer fits.
 */
export function fitItems<A extends object>(
  count: number,
  build: (kept: number) => A,
  maxTokens: number | undefined,
  least: (item: number) => number = () => 1,
): { answer: WithSize<A>; kept: number } | undefined {
  if (maxTokens === undefined) return { answer: withSize(build(count)), kept: count }
  const most = maxItems(count, charactersWithin(maxTokens), least)
  const within = (kept: number) => withSize(build(kept)).estimated_tokens <= maxTokens
  if (most === count && within(count)) return { answer: withSize(build(count)), kept: count }
  const kept = largestPassing(0, Math.min(most, count - 1), within)
  return kept === undefined ? undefined : { answer: withSize(build(kept)), kept }
}

/** A fallback with only the first item, cut: `build` makes the answer with the item up to character `n`. */
type FirstCut<A> = { from: number; to: number; build: (n: number) => A }

/**
 * Like `fitItems`, but at least `enough` items must fit. Otherwise it cuts the first one, or throws an error if there is nothing
 * to cut.
 */
export function fitItemsOrCut<A extends object>(
  count: number,
  build: (kept: number) => A,
  maxTokens: number | undefined,
  least: (item: number) => number,
  enough: number,
  first: FirstCut<A> | undefined,
): WithSize<A> {
  const fit = fitItems(count, build, maxTokens, least)
  if (fit && fit.kept >= enough) return fit.answer
  const most = maxTokens! // without a budget everything fits
  if (!first) throw budgetTooSmall(most, build(enough))
  const cut = (n: number) => withSize(first.build(n))
  const length = largestPassing(first.from, first.to, (n) => cut(n).estimated_tokens <= most)
  if (length === undefined) throw budgetTooSmall(most, first.build(first.from))
  return cut(length)
}

/** The largest integer of a range that passes. If a number passes, all smaller ones must pass too. */
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
function maxItems(count: number, characters: number, least: (item: number) => number): number {
  let sum = 0
  for (let item = 0; item < count; item++) {
    sum += least(item)
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
