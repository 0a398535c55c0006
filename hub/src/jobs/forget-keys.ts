import { codeOf } from "../../../src/core/error.ts"
import { rewriteForgottenKeys } from "../store/forgotten-keys.ts"
import { runEvery } from "./every.ts"

const EVERY_MS = 60_000
/** By then, most readers of the deleted rows are done. */
const SOON_MS = 500
/** Promised to the person who deletes: two rounds, in case the first finds the table in use. */
const GONE_WITHIN_MS = 2 * EVERY_MS + SOON_MS

/** Removes the keys of deleted conversations from PostgreSQL's files: at most once a minute, on one node. */
export function forgetKeysSoon(address: string, log: (event: Record<string, unknown>) => void) {
  let timer: NodeJS.Timeout | undefined
  const work = async () => {
    const done = await rewriteForgottenKeys(address, { intervalMs: EVERY_MS - SOON_MS })
    if (done.state !== "nothing") log({ level: "info", event: "forget_keys", ...done })
  }
  const job = runEvery(EVERY_MS, work, (error) =>
    log({ level: "error", event: "forget_keys", code: codeOf(error) || undefined }),
  )
  return {
    forgot: (): Date => {
      clearTimeout(timer)
      timer = setTimeout(job.soon, SOON_MS)
      timer.unref()
      return new Date(Date.now() + GONE_WITHIN_MS)
    },
    stop: async () => {
      clearTimeout(timer)
      await job.stop()
    },
  }
}
