import { codeOf } from "../../../src/core/error.ts"
import { rewriteForgottenKeys } from "../store/forgotten-keys.ts"
import { runEvery } from "./every.ts"

const EVERY_MS = 60_000
/** Whoever was reading what was deleted has ended by then, most times. */
const SOON_MS = 500
/** What is said to whoever deletes: two turns, should the first find somebody reading. */
const GONE_WITHIN_MS = 2 * EVERY_MS + SOON_MS

/** Sees to it that the key of what is deleted leaves PostgreSQL's files. Once a minute at the most, by one node. */
export function forgetKeysSoon(address: string, log: (event: Record<string, unknown>) => void) {
  let timer: NodeJS.Timeout | undefined
  const work = async () => {
    const done = await rewriteForgottenKeys(address, { apartMs: EVERY_MS - SOON_MS })
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
