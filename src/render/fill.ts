import { budgetTooSmall, largestPassing, type WithSize, withSize } from "./budget.ts"
import { MIN_TOKENS_PER_MSG } from "./limits.ts"
import { type Line, uncutLimit } from "./line.ts"

/** A range of lines; `to` is exclusive. */
export type LineRange = { from: number; to: number }

/**
 * Finds one limit for all lines, from their real lengths: the highest at which all of them fit into the budget. If even the
 * lowest limit is too high, only some lines are shown, chosen by `near`.
 */
export function fillLines<A extends object>(
  lines: Line[],
  maxTokens: number,
  near: (count: number) => LineRange,
  answer: (span: LineRange, tokensPerMsg: number) => A,
): WithSize<A> {
  const found = fillLinesFrom(MIN_TOKENS_PER_MSG, lines, maxTokens, near, answer)
  if (found === undefined) throw budgetTooSmall(maxTokens, answer(near(Math.min(1, lines.length)), MIN_TOKENS_PER_MSG))
  return found.answer
}

/**
 * Like `fillLines`, but with the caller's lowest limit. Undefined if not even one line fits. `isComplete`: all lines are
 * included.
 */
export function fillLinesFrom<A extends object>(
  least: number,
  lines: Line[],
  maxTokens: number,
  near: (count: number) => LineRange,
  answer: (span: LineRange, tokensPerMsg: number) => A,
): { answer: WithSize<A>; isWhole: boolean } | undefined {
  const fits = (span: LineRange, tokensPerMsg: number) =>
    withSize(answer(span, tokensPerMsg)).estimated_tokens <= maxTokens
  const all = { from: 0, to: lines.length }
  const whole = Math.max(Math.ceil(uncutLimit(lines)), least)
  // In tenths, because in a long conversation a full step may be many tokens.
  const tenths = largestPassing(10 * least, 10 * whole, (n) => fits(all, n / 10))
  if (tenths !== undefined) return { answer: withSize(answer(all, tenths / 10)), isWhole: true }
  const count = largestPassing(1, lines.length - 1, (n) => fits(near(n), least))
  return count === undefined ? undefined : { answer: withSize(answer(near(count), least)), isWhole: false }
}
