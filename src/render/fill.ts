import { largest, type Sized, sized, tooSmall } from "./budget.ts"
import { LEAST_TOKENS_PER_MSG } from "./limits.ts"
import { type Line, wholeFrom } from "./line.ts"

/** Which lines, from one to before another. */
export type LineRange = { from: number; to: number }

/**
 * One limit for all lines, solved from their real lengths: the most of each that lets all of them fit into the budget.
 * Where even the least of all is too much, the lines that `near` puts first when only so many can be shown.
 */
export function filled<A extends object>(
  lines: Line[],
  maxTokens: number,
  near: (count: number) => LineRange,
  answer: (span: LineRange, tokensPerMsg: number) => A,
): Sized<A> {
  const found = filledFrom(LEAST_TOKENS_PER_MSG, lines, maxTokens, near, answer)
  if (found === undefined) throw tooSmall(maxTokens, answer(near(Math.min(1, lines.length)), LEAST_TOKENS_PER_MSG))
  return found.answer
}

/** The same with a least of the caller's own; undefined where not even one line fits. `isWhole`: all lines are there. */
export function filledFrom<A extends object>(
  least: number,
  lines: Line[],
  maxTokens: number,
  near: (count: number) => LineRange,
  answer: (span: LineRange, tokensPerMsg: number) => A,
): { answer: Sized<A>; isWhole: boolean } | undefined {
  const fits = (span: LineRange, tokensPerMsg: number) =>
    sized(answer(span, tokensPerMsg)).estimated_tokens <= maxTokens
  const all = { from: 0, to: lines.length }
  const whole = Math.max(Math.ceil(wholeFrom(lines)), least)
  // In tenths: between two whole numbers there can be many tokens for a long conversation.
  const tenths = largest(10 * least, 10 * whole, (n) => fits(all, n / 10))
  if (tenths !== undefined) return { answer: sized(answer(all, tenths / 10)), isWhole: true }
  const count = largest(1, lines.length - 1, (n) => fits(near(n), least))
  return count === undefined ? undefined : { answer: sized(answer(near(count), least)), isWhole: false }
}
