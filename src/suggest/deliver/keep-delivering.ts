import { messageOf } from "../../core/error.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import type { Suggestions } from "../../store/suggestions/suggestions.ts"
import type { DeliverParts } from "./deliver.ts"

const LOOK_EVERY_MS = 1_000

/**
 * Delivers for as long as a process runs. Of several processes one does; when it ends, however, another takes over. A
 * problem is said and tried again. There are no suggestions while none was ever kept. Returns how to stop: what is on its
 * way is ended, and once nothing more is read or written it comes back.
 */
export function keepDelivering(
  parts: Omit<DeliverParts, "suggestions"> & { suggestions(): Suggestions | undefined },
  lockFile: string,
  log: (line: string) => void,
): () => Promise<void> {
  const stop = new AbortController()
  let lock: { release(): void } | undefined
  let said = ""
  const look = async () => {
    try {
      const suggestions = parts.suggestions()
      const at = suggestions?.nextDue()
      if (suggestions && at !== undefined && at <= parts.now()) {
        lock ??= tryLock(lockFile)
        // Only now: Node's HTTP takes 40 ms to load, and most processes never send anything.
        if (lock) await (await import("./deliver.ts")).deliverDue({ ...parts, suggestions }, stop.signal)
      }
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== said) log(`Webhooks are not delivered now: ${problem}`)
      said = problem
    }
    if (!stop.signal.aborted) timer = setTimeout(begin, LOOK_EVERY_MS)
  }
  let looking = Promise.resolve()
  const begin = () => {
    looking = look()
  }
  let timer = setTimeout(begin, 0)
  return async () => {
    stop.abort()
    clearTimeout(timer)
    await looking
    lock?.release()
  }
}
