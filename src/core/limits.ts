import { number } from "./record.ts"

// The limits of plans, in percent, as agents report them.

/** One limit of a plan: how much of it is used, and when it begins anew. */
export type PlanLimit = { minutes: number; used: number; resets_at: number }

/** The last report of an agent, and its earlier reports in the same windows. */
export type AgentLimits = { at: number; plan?: string; limits: PlanLimit[]; earlier: EarlierLimit[] }
type EarlierLimit = { at: number; minutes: number; used: number }

/** A limit, if both numbers are there. `resetsAt` is in seconds since 1970. */
export function planLimit(minutes: number, used: unknown, resetsAt: unknown): PlanLimit[] {
  const [percent, seconds] = [number(used), number(resetsAt)]
  if (percent === undefined || seconds === undefined || !(minutes > 0) || !(percent >= 0) || !(seconds > 0)) return []
  return [{ minutes, used: Math.min(percent, 1_000), resets_at: Math.round(seconds * 1_000) }]
}
