import { messageOf } from "../../core/error.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import type { Suggestions } from "../../store/suggestions/suggestions.ts"
import type { DeliveryParts } from "./deliver.ts"

const CHECK_INTERVAL_MS = 1_000

/**
 * Delivers for as long as the process runs. One of several processes delivers; when it ends for any reason, another takes over.
 * Problems are logged, and delivery is retried. `suggestions` returns undefined until one was stored. Returns a function that
 * cancels what is being sent and resolves when nothing more is read or written.
 */
export function keepDelivering(
  parts: Omit<DeliveryParts, "suggestions"> & { suggestions(): Suggestions | undefined },
  lockFile: string,
  log: (line: string) => void,
): () => Promise<void> {
  const stop = new AbortController()
  let lock: { release(): void } | undefined
  let lastProblem = ""
  const deliverIfDue = async () => {
    try {
      const suggestions = parts.suggestions()
      const at = suggestions?.nextDue()
      if (suggestions && at !== undefined && at <= parts.now()) {
        lock ??= tryLock(lockFile)
        // Loaded late, because Node's HTTP takes 40 ms to load, and most processes never send anything.
        if (lock) await (await import("./deliver.ts")).deliverDue({ ...parts, suggestions }, stop.signal)
      }
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== lastProblem) log(`Webhooks cannot be delivered at the moment: ${problem}`)
      lastProblem = problem
    }
    if (!stop.signal.aborted) timer = setTimeout(startCheck, CHECK_INTERVAL_MS)
  }
  let delivering = Promise.resolve()
  const startCheck = () => {
    delivering = deliverIfDue()
  }
  let timer = setTimeout(startCheck, 0)
  return async () => {
    stop.abort()
    clearTimeout(timer)
    await delivering
    lock?.release()
  }
}
