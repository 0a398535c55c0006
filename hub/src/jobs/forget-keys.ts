import { codeOf } from "../../../src/core/error.ts"
import { rewriteForgottenKeys } from "../store/forgotten-keys.ts"
import { runEvery } from "./every.ts"

const INTERVAL_MS = 60_000
/** How long to wait after a deletion, in milliseconds. By then, most readers of the deleted rows are done. */
const FIRST_DELAY_MS = 500
/**
 * How long after a deletion its keys are gone at the latest, in milliseconds. The person who deletes is told this time. It allows
 * for two runs, in case the table is in use during the first.
 */
const GONE_WITHIN_MS = 2 * INTERVAL_MS + FIRST_DELAY_MS

/** Removes the keys of deleted conversations from PostgreSQL's files, at most once a minute, and on one node at a time. */
export function createKeyRemover(address: string, log: (event: Record<string, unknown>) => void) {
  let timer: NodeJS.Timeout | undefined
  const work = async () => {
    const result = await rewriteForgottenKeys(address, { intervalMs: INTERVAL_MS - FIRST_DELAY_MS })
    if (result.state !== "nothing") log({ level: "info", event: "forget_keys", ...result })
  }
  const job = runEvery(INTERVAL_MS, work, (error) =>
    log({ level: "error", event: "forget_keys", code: codeOf(error) || undefined }),
  )
  return {
    onForgotten: (): Date => {
      clearTimeout(timer)
      timer = setTimeout(job.runSoon, FIRST_DELAY_MS)
      timer.unref()
      return new Date(Date.now() + GONE_WITHIN_MS)
    },
    stop: async () => {
      clearTimeout(timer)
      await job.stop()
    },
  }
}
