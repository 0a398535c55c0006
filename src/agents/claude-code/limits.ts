import { type AgentLimits, planLimit } from "../../core/limits.ts"
import { record } from "../../core/record.ts"

const WINDOWS = { five_hour: 300, seven_day: 10_080 }

/** The limits in the input of a status line of Claude Code (from 2.1.80). Undefined if it has none, as without a subscription. */
export function limitsInStatusLine(input: unknown, now: number): AgentLimits | undefined {
  const reported = record(record(input)?.rate_limits)
  const limits = Object.entries(WINDOWS).flatMap(([name, minutes]) => {
    const window = record(reported?.[name])
    return window ? planLimit(minutes, window.used_percentage, window.resets_at) : []
  })
  return limits.length === 0 ? undefined : { at: now, limits, earlier: [] }
}
