import { messageOf } from "../core/error.ts"
import { tryLock } from "../store/lock.ts"
import { type DeliverParts, deliverDue } from "./deliver.ts"

const LOOK_EVERY_MS = 1_000

/**
 * Delivers for as long as a process runs. Of several processes one does; when it ends, however, another takes over. A
 * problem is said and tried again. Returns how to stop; what is on its way is not waited for.
 */
export function keepDelivering(parts: DeliverParts, lockFile: string, log: (line: string) => void): () => void {
  const stop = new AbortController()
  let lock: { release(): void } | undefined
  let said = ""
  const look = async () => {
    try {
      const at = parts.suggestions.nextDue()
      if (at !== undefined && at <= parts.now()) {
        lock ??= tryLock(lockFile)
        if (lock) await deliverDue(parts, stop.signal)
      }
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== said) log(`Webhooks are not delivered now: ${problem}`)
      said = problem
    }
    if (!stop.signal.aborted) timer = setTimeout(look, LOOK_EVERY_MS)
  }
  let timer = setTimeout(look, 0)
  return () => {
    stop.abort()
    clearTimeout(timer)
    lock?.release()
  }
}
