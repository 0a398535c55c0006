import { budgetTooSmall, largestPassing, type WithSize, withSize } from "./budget.ts"
import { MIN_TOKENS_PER_MSG, tokensPerMsgFor } from "./limits.ts"
import type { Line } from "./line.ts"

/** A range of lines; `to` is exclusive. */
export type LineRange = { from: number; to: number }

/**
 * Finds one length limit for all lines: the highest at which all of them fit into the budget. If they do not fit even with the
 * lowest limit, only some lines are shown: `rangeFor(n)` returns the range of those n lines.
 */
export function fillLines<A extends object>(
  lines: Line[],
  maxTokens: number,
  rangeFor: (count: number) => LineRange,
  answer: (span: LineRange, tokensPerMsg: number) => A,
): WithSize<A> {
  const filled = fillLinesFrom(MIN_TOKENS_PER_MSG, lines, maxTokens, rangeFor, answer)
  if (filled === undefined)
    throw budgetTooSmall(maxTokens, answer(rangeFor(Math.min(1, lines.length)), MIN_TOKENS_PER_MSG))
  return filled.answer
}

/**
 * Like `fillLines`, but the caller chooses the lowest limit. Undefined if not even one line fits. `isComplete` is true if all
 * lines are included.
 */
export function fillLinesFrom<A extends object>(
  minTokensPerMsg: number,
  lines: Line[],
  maxTokens: number,
  rangeFor: (count: number) => LineRange,
  answer: (span: LineRange, tokensPerMsg: number) => A,
): { answer: WithSize<A>; isComplete: boolean } | undefined {
  const fits = (span: LineRange, tokensPerMsg: number) =>
    withSize(answer(span, tokensPerMsg)).estimated_tokens <= maxTokens
  const fullRange = { from: 0, to: lines.length }
  const maxTokensPerMsg = Math.max(Math.ceil(uncutLimit(lines)), minTokensPerMsg)
  // In tenths of a token: in a long conversation, a whole token for every line would be a large step.
  const tenths = largestPassing(10 * minTokensPerMsg, 10 * maxTokensPerMsg, (n) => fits(fullRange, n / 10))
  if (tenths !== undefined) return { answer: withSize(answer(fullRange, tenths / 10)), isComplete: true }
  const count = largestPassing(1, lines.length - 1, (n) => fits(rangeFor(n), minTokensPerMsg))
  return count === undefined
    ? undefined
    : { answer: withSize(answer(rangeFor(count), minTokensPerMsg)), isComplete: false }
}

/** The minimum number of tokens per message at which nothing is cut. */
function uncutLimit(lines: Line[]): number {
  return lines.reduce(
    (most, { pieces }) =>
      pieces.reduce((largest, piece) => Math.max(largest, tokensPerMsgFor(piece.kind, piece.text.length)), most),
    0,
  )
}
