/** `busy`: somebody else is at it, try again soon. `tookMs`: done, and how long without what only a first look needs. */
export type LookOutcome = "done" | { tookMs: number } | "busy" | "failed"

export type Pace = {
  /** Something changed there: it is looked at soon, and however often this is called, once. */
  touch(key: string): void
  /** Nothing begins any more; comes back when what was under way is done. */
  stop(): Promise<void>
}

/** A program writes a message in several pieces; waiting this long reads them together. Counted from the first. */
const GATHER_MS = 100
/** What changes all the time is read this often at most, */
const EVERY_MS = 1_000
/** and less often where reading takes long: at most one part in five of the time. */
const SHARE = 5
const SELDOMEST_MS = 60_000
const FIRST_RETRY_MS = 5_000
const LAST_RETRY_MS = 300_000

type Line = { wantedAt?: number; notBefore: number; failures: number }

/** Says when each thing is looked at: soon after it changed, never all the time, one at a time, more seldom when it fails. */
export function createPace(
  look: (key: string) => Promise<LookOutcome>,
  now: () => number = () => performance.now(),
): Pace {
  const lines = new Map<string, Line>()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let stopped = false

  const dueAt = (line: Line) => Math.max(line.wantedAt! + GATHER_MS, line.notBefore)
  const plan = () => {
    clearTimeout(timer)
    if (stopped || running) return
    const next = [...lines]
      .filter(([, line]) => line.wantedAt !== undefined)
      .sort(([, a], [, b]) => dueAt(a) - dueAt(b))[0]
    if (next) timer = setTimeout(() => begin(...next), Math.max(0, dueAt(next[1]) - now()))
  }
  const begin = (key: string, line: Line) => {
    line.wantedAt = undefined
    const started = now()
    running = look(key)
      .catch((): LookOutcome => "failed")
      .then((outcome) => {
        running = undefined
        settle(line, outcome, started)
        plan()
      })
  }
  const settle = (line: Line, outcome: LookOutcome, started: number) => {
    line.failures = outcome === "failed" ? line.failures + 1 : 0
    if (outcome === "done" || typeof outcome === "object") {
      const took = typeof outcome === "object" ? outcome.tookMs : now() - started
      line.notBefore = started + Math.min(SELDOMEST_MS, Math.max(EVERY_MS, took * SHARE))
      return
    }
    line.wantedAt ??= now()
    const wait = outcome === "busy" ? EVERY_MS : Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (line.failures - 1))
    line.notBefore = now() + wait
  }
  return {
    touch: (key) => {
      const line = lines.get(key) ?? { notBefore: Number.NEGATIVE_INFINITY, failures: 0 }
      lines.set(key, line)
      if (line.wantedAt !== undefined) return
      line.wantedAt = now()
      plan()
    },
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}
