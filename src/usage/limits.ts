import { localMinute } from "../core/dates.ts"
import type { AgentLimits, PlanLimit } from "../core/limits.ts"

const MINUTE_MS = 60_000
/** Earlier reports that are stored for each window. */
const MAX_EARLIER = 60

/** Adds a report to the earlier ones. An earlier report of a window that has ended since is dropped. */
export function withReport(before: AgentLimits | undefined, report: AgentLimits): AgentLimits {
  if (!before) return report
  const known = [...before.earlier, ...before.limits.map(({ minutes, used }) => ({ at: before.at, minutes, used }))]
  const earlier = report.limits.flatMap(({ minutes, used, resets_at }) =>
    known
      .filter((one) => one.minutes === minutes && one.at >= resets_at - minutes * MINUTE_MS && one.used <= used)
      .filter((one, i, all) => one.used !== all[i - 1]?.used)
      .slice(-MAX_EARLIER),
  )
  return { ...report, earlier }
}

export type Forecast =
  /** The percentage at the reset, if it goes on as so far. */
  | { type: "lasts"; from: number; to: number }
  /** The times between which the limit is reached, before the reset. */
  | { type: "runs_out"; from: number; to: number | undefined }

/**
 * Two paces give the range: that of the whole window so far, and that of its last fifth. Undefined until a twentieth of the
 * window is over, because a pace says nothing before.
 */
export function forecast(limit: PlanLimit, { at, earlier }: AgentLimits): Forecast | undefined {
  const { minutes, used, resets_at } = limit
  const length = minutes * MINUTE_MS
  const start = resets_at - length
  const elapsed = at - start
  if (elapsed < length / 20 || at >= resets_at || used >= 100) return undefined
  const recent = earlier.findLast((one) => one.minutes === minutes && one.at <= at - length / 5)
  const paces = [used / elapsed, ...(recent ? [(used - recent.used) / (at - recent.at)] : [])]
  const [slow, fast] = [Math.min(...paces), Math.max(...paces)]
  const atReset = (pace: number) => used + pace * (resets_at - at)
  const isFullAt = (pace: number) => at + (100 - used) / pace
  if (atReset(fast) < 100) return { type: "lasts", from: atReset(slow), to: atReset(fast) }
  return { type: "runs_out", from: isFullAt(fast), to: atReset(slow) < 100 ? undefined : isFullAt(slow) }
}

/** The name of a window: `5 h`, `7 days`. */
export function windowName(minutes: number): string {
  return minutes % 1_440 === 0 ? `${minutes / 1_440} days` : minutes % 60 === 0 ? `${minutes / 60} h` : `${minutes} min`
}

/** The limits that are still running, as a part of a status line: `5 h 42 % until 15:00 · 7 days 86 %`. */
export function limitsLine({ limits }: AgentLimits, now: number): string[] {
  return limits
    .filter(({ resets_at }) => resets_at > now)
    .map(({ minutes, used, resets_at }) => {
      const end = minutes < 1_440 ? ` until ${localMinute(resets_at).slice(11)}` : ""
      return `${windowName(minutes)} ${Math.round(used)} %${end}`
    })
}
