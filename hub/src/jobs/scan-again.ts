import { codeOf } from "../../../src/core/error.ts"
import { REDACTION_VERSION } from "../../../src/redact/version.ts"
import type { ChunkChecker } from "../push/checker.ts"
import { secretRulesIn } from "../push/incoming.ts"
import type { Database } from "../store/connection.ts"
import { scanAgain } from "../store/late-secrets.ts"
import { type Job, runEvery } from "./every.ts"

const INTERVAL_MS = 60_000

/** After an upgrade with newer redaction rules, scans stored conversations again, a few at a time. */
export function scanByNewerRules(
  db: Database,
  { secretRulesInChunk }: Pick<ChunkChecker, "secretRulesInChunk">,
  log: (event: Record<string, unknown>) => void,
): Job {
  const scan = { version: REDACTION_VERSION, secretRulesIn, secretRulesInChunk }
  // Scanned again only after a restart, because each attempt may take minutes.
  const failedBefore: number[] = []
  let isStopped = false
  const work = async () => {
    while (!isStopped) {
      const { failed, ...counts } = await scanAgain(db, scan, { except: failedBefore })
      for (const { conversation, error } of failed) {
        failedBefore.push(conversation)
        log({ level: "error", event: "scan_again", conversation, code: codeOf(error) || undefined })
      }
      if (counts.scanned > 0) log({ level: "info", event: "scan_again", ...counts })
      else if (failed.length === 0) return
    }
  }
  const job = runEvery(INTERVAL_MS, work, (error) =>
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
