import { kindsOf } from "../core/command.ts"
import type { BriefMessage } from "./brief-calls.ts"

/** A command whose outcome the next one should know. */
export type CommandRun = {
  number: number
  command: string
  /** `unknown`: it ended well as a pipe, which tells nothing of its first program. */
  outcome: "succeeded" | "failed" | "unknown"
  exit_status?: number
  error?: string
  /** When, after a failure, the same kinds of thing were done and did not fail. */
  later?: { number: number; outcome: "succeeded" | "unknown" }
}

/**
 * The last run of each kind of command that checks something or failed, and the failure that came last, newest first.
 * Commands that only look are left out: their failures mean nothing to the work.
 */
export function commandRuns(messages: BriefMessage[]): CommandRun[] {
  const runs = messages.flatMap(runsOf).slice(-MOST_RUNS)
  const lastOfKey = new Map(runs.map((run, i) => [run.key, i]))
  const lastFailure = runs.findLastIndex(({ outcome }) => outcome === "failed")
  const covered = new Set<string>()
  const told: CommandRun[] = []
  for (const [i, run] of [...runs.entries()].reverse()) {
    const { key, kinds, checks, ...plain } = run
    const isLast = lastOfKey.get(key) === i && !kinds.every((kind) => covered.has(kind))
    if (run.outcome === "failed" && (isLast || i === lastFailure)) told.push({ ...plain, ...laterThan(runs, i) })
    else if (isLast && checks) told.push(plain)
    for (const kind of kinds) covered.add(kind)
  }
  return told
}

/** What was run before these says nothing of the state. */
const MOST_RUNS = 1000

type Run = CommandRun & { kinds: string[]; key: string; checks: boolean }

function runsOf({ number, effects }: BriefMessage): Run[] {
  return (effects ?? []).flatMap((effect) => {
    if (effect.type !== "command" || effect.failed === undefined) return []
    const { kinds, piped } = kindsOf(effect.command)
    if (kinds.length === 0) return []
    return [
      {
        number,
        command: effect.command,
        outcome: effect.failed ? "failed" : piped ? "unknown" : "succeeded",
        ...(effect.exit_status !== undefined && { exit_status: effect.exit_status }),
        ...(effect.failed && effect.error && !/^Exit code \d+$/.test(effect.error) && { error: effect.error }),
        kinds,
        key: kinds.join(" && "),
        checks: kinds.some((kind) => CHECKS.test(kind)),
      } satisfies Run,
    ]
  })
}

/** In one run or in several: `a && b` failed, and later `a` and `b` each ended well. */
function laterThan(runs: Run[], at: number): Pick<CommandRun, "later"> {
  const after = runs.slice(at + 1).filter(({ outcome }) => outcome !== "failed")
  const each = runs[at]!.kinds.map((kind) => {
    const alike = after.filter(({ kinds }) => kinds.includes(kind))
    return alike.find(({ outcome }) => outcome === "succeeded") ?? alike[0]
  })
  if (each.includes(undefined)) return {}
  const last = each.reduce((so, run) => (after.indexOf(run!) > after.indexOf(so!) ? run : so))!
  const outcome = each.every((run) => run!.outcome === "succeeded") ? "succeeded" : "unknown"
  return { later: { number: last.number, outcome } }
}

const CHECKS =
  /\b(?:tests?|lint|build|check|fmt|format|vet|tsc|typecheck|ci|compile|verify|vitest|jest|pytest|clippy)\b/i
