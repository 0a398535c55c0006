import { codeOf } from "../../../src/core/error.ts"
import { removeAbandoned, removeUnnamedChunks } from "../store/abandoned.ts"
import { deleteTenantPart } from "../store/administration.ts"
import type { Database } from "../store/connection.ts"
import { feeds } from "../store/feeds.ts"
import { forgetExpired } from "../store/retention.ts"
import { type Job, runEvery } from "./every.ts"

const INTERVAL_MS = 60 * 60_000

/**
 * Deletes, once an hour, conversations that their projects no longer keep, the remains of pushes that never finished, and tenants
 * whose time has come. Several hubs may do so at once: each row is deleted by one of them.
 */
export function expireHourly(
  db: Database,
  log: (event: Record<string, unknown>) => void,
  onForgotten?: () => unknown,
): Job {
  let isStopped = false
  const work = async () => {
    let forgotten = 0
    for (const { tenant } of await feeds(db)) {
      if (isStopped) return
      const counts = {
        expired: await forgetExpired(db, tenant),
        abandoned: await removeAbandoned(db, tenant),
        chunks: await removeUnnamedChunks(db, tenant),
      }
      forgotten += counts.expired + counts.abandoned
      if (Object.values(counts).some((n) => n > 0)) log({ level: "info", event: "expire", tenant, ...counts })
    }
    let parts = 0
    while (!isStopped && (await deleteTenantPart(db))) parts++
    if (parts > 0) log({ level: "info", event: "tenant_deleted", parts })
    if (forgotten + parts > 0) onForgotten?.()
  }
  const job = runEvery(INTERVAL_MS, work, (error) =>
    log({ level: "error", event: "expire", code: codeOf(error) || undefined }),
  )
  return {
    runSoon: job.runSoon,
    stop: () => {
      isStopped = true
      return job.stop()
    },
  }
}
