/** `cost_usd`: where the one who was asked says it; the sum of what was said. */
export type ModelUsage = { input: number; output: number; is_estimate: boolean; cost_usd?: number }

export function addModelUsage(total: ModelUsage, { input, output, is_estimate, cost_usd }: ModelUsage): void {
  total.input += input
  total.output += output
  total.is_estimate ||= is_estimate
  if (cost_usd !== undefined) total.cost_usd = (total.cost_usd ?? 0) + cost_usd
}

/** What was used since. */
export function usedSince<U extends ModelUsage & { requests: number }>(now: U, before: U): U {
  return {
    ...now,
    input: now.input - before.input,
    output: now.output - before.output,
    requests: now.requests - before.requests,
    cost_usd: now.cost_usd === undefined ? undefined : now.cost_usd - (before.cost_usd ?? 0),
  }
}
