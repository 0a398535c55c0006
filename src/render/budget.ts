import { DexError } from "../core/error.ts"
import { charactersWithin, estimateTokens } from "../core/tokens.ts"
import { toJson } from "./json.ts"

// A budget counts the complete answer as an agent gets it: JSON with its names, quotes and escapes. The same answer is
// shorter on a terminal.

export type Sized<A> = A & { estimated_tokens: number }

/** The answer with its own size in it. */
export function sized<A extends object>(answer: A): Sized<A> {
  let tokens = 0
  for (;;) {
    const withSize = { ...answer, estimated_tokens: tokens }
    const now = estimateTokens(`${toJson(withSize)}\n`)
    if (now <= tokens) return withSize
    tokens = now // one more digit may be one more token; it only grows, so this ends
  }
}

/**
 * The answer with as many of the first items as fit into `maxTokens`. `build` gets their number; the answer says what it
 * leaves out. `least(i)` is a lower bound for the size of item i in characters. Undefined if not even zero items fit.
 */
export function fitted<A extends object>(
  count: number,
  build: (kept: number) => A,
  maxTokens: number | undefined,
  least: (item: number) => number = () => 1,
): { answer: Sized<A>; kept: number } | undefined {
  if (maxTokens === undefined) return { answer: sized(build(count)), kept: count }
  const most = reachable(count, charactersWithin(maxTokens), least)
  const within = (kept: number) => sized(build(kept)).estimated_tokens <= maxTokens
  if (most === count && within(count)) return { answer: sized(build(count)), kept: count }
  const kept = largest(0, Math.min(most, count - 1), within)
  return kept === undefined ? undefined : { answer: sized(build(kept)), kept }
}

/** A fallback with only the first item, cut: `build` makes the answer with the item up to character `n`. */
type FirstCut<A> = { from: number; to: number; build: (n: number) => A }

/**
 * Like `fitted`, but at least `enough` items must fit. If they do not, it cuts the first one, or throws an error if there
 * is nothing to cut.
 */
export function fittedOrCut<A extends object>(
  count: number,
  build: (kept: number) => A,
  maxTokens: number | undefined,
  least: (item: number) => number,
  enough: number,
  first: FirstCut<A> | undefined,
): Sized<A> {
  const fit = fitted(count, build, maxTokens, least)
  if (fit && fit.kept >= enough) return fit.answer
  const most = maxTokens! // without a budget everything fits
  if (!first) throw tooSmall(most, build(enough))
  const cut = (n: number) => sized(first.build(n))
  const length = largest(first.from, first.to, (n) => cut(n).estimated_tokens <= most)
  if (length === undefined) throw tooSmall(most, first.build(first.from))
  return cut(length)
}

/** The largest integer of a range that passes. If a number passes, all smaller ones must pass too. */
export function largest(from: number, to: number, passes: (n: number) => boolean): number | undefined {
  if (to < from || !passes(from)) return undefined
  let [low, high] = [from, to]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (passes(middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** An upper bound for the number of items that fit, so that far too long answers are not built. */
function reachable(count: number, characters: number, least: (item: number) => number): number {
  let sum = 0
  for (let item = 0; item < count; item++) {
    sum += least(item)
    if (sum > characters) return item
  }
  return count
}

export function tooSmall(maxTokens: number, smallest: object): DexError {
  const needed = sized(smallest).estimated_tokens
  return new DexError(
    "budget",
    `${maxTokens} tokens are too few: the smallest answer takes about ${needed}. Try --max-tokens ${Math.ceil((needed + 200) / 100) * 100}.`,
  )
}
