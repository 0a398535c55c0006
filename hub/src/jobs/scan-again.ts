import { codeOf } from "../../../src/core/error.ts"
import { REDACTION_VERSION } from "../../../src/redact/version.ts"
import type { ChunkChecker } from "../push/checker.ts"
import { secretsIn } from "../push/incoming.ts"
import type { Database } from "../store/connection.ts"
import { scanAgain } from "../store/late-secrets.ts"
import { type Job, runEvery } from "./every.ts"

const EVERY_MS = 60_000

/** After an upgrade with newer redaction rules, scans stored conversations again, a few at a time. */
export function scanByNewerRules(
  db: Database,
  { rulesIn }: Pick<ChunkChecker, "rulesIn">,
  log: (event: Record<string, unknown>) => void,
): Job {
  let isStopped = false
  const work = async () => {
    while (!isStopped) {
      const result = await scanAgain(db, { version: REDACTION_VERSION, secretsIn, rulesIn })
      if (result.scanned === 0) return
      log({ level: "info", event: "scan_again", ...result })
    }
  }
  const job = runEvery(EVERY_MS, work, (error) =>
    log({ level: "error", event: "scan_again", code: codeOf(error) || undefined }),
  )
  return {
    runSoon: job.runSoon,
    stop: () => {
      isStopped = true
      return job.stop()
    },
  }
}
