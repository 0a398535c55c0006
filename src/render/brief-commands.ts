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
/** Enough to tell what a command is. */
const LOOKED_AT = 2000

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
const LOOKS =
  /^(?:(?:ls|cat|head|tail|grep|rg|ag|find|fd|which|pwd|echo|printf|sed|awk|wc|test|\[|\[\[|cd|stat|file|tree|less|diff|jq|env|type|command|true|sleep|mkdir|rm|cp|mv|touch|chmod|sort|uniq|xxd|od|ps|kill|export|source)(?: .*)?|gh (?:api|pr (?:diff|view|list|checks|status)|issue (?:view|list)|run (?:view|list|watch))|git (?:log|show|diff|status|branch|blame|rev-parse|ls-files|remote|config|check-ignore|merge-base|ls-tree|for-each-ref|reflog))$/
const BEFORE = /^(?:sudo|time|timeout|npx|bunx|env|nohup|exec|-\w+|\d+[smh]?|\w+=\S*)$/

/** `cd api && npm run test -- -u 2>&1 | tail` is one thing, `npm run test`, in a pipe. */
function kindsOf(command: string): { kinds: string[]; piped: boolean } {
  const bare = command
    .slice(0, LOOKED_AT)
    .split(/<<-?\s*['"]?\w/, 1)[0]!
    .replaceAll(/'[^']*'|"(?:[^"\\]|\\.)*"/g, '""')
    .replaceAll("||", "&&")
  const segments = bare.split(/&&|;|\n/)
  const kinds = segments.map((segment) => kindOf(segment.split("|", 1)[0]!)).filter((kind) => kind !== "")
  const piped = segments.some((segment) => segment.includes("|")) && !/pipefail/.test(command)
  return { kinds: [...new Set(kinds)].filter((kind) => !LOOKS.test(kind)), piped }
}

function kindOf(segment: string): string {
  const words = segment.trim().split(/\s+/)
  const start = words.findIndex((word) => !BEFORE.test(word))
  if (start === -1) return ""
  const program = words[start]!.split("/").at(-1)!
  if (!/^[\w.[-]+$/.test(program)) return ""
  const [first, second] = words.slice(start + 1)
  if (first === undefined || !/^[a-z][\w:-]*$/.test(first)) return program
  const deeper = /^(?:run|exec|x|tool|pr|issue)$/.test(first) && second !== undefined && /^[\w:.-]+$/.test(second)
  return deeper ? `${program} ${first} ${second}` : `${program} ${first}`
}
