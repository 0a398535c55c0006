import { codeOf } from "../../src/core/error.ts"
import type { Database } from "./store/connection.ts"
import { versionProblems } from "./store/health.ts"

/** Whether this hub can answer at the moment. Each result is undefined or a sentence that says why not and what to do. */
export type Readiness = {
  /** Checks everything now, for load balancers. */
  check(): Promise<string | undefined>
  /** Checks only the version of the tables. With a wrong version, each request would fail with a different error. */
  checkTables(): Promise<string | undefined>
  markStopping(): void
}

/** How long to wait before a wrong version of the tables is checked again, in milliseconds. An operator may have updated them. */
const RECHECK_MS = 1_000

export function watchReadiness(db: Database): Readiness {
  let isStopping = false
  let versionProblem: string | undefined
  let checkedAt = 0
  const check = async () => {
    checkedAt = Date.now()
    try {
      versionProblem = (await versionProblems(db))[0]
      return versionProblem
    } catch (error) {
      return `PostgreSQL does not answer (${codeOf(error) || "no reason given"}).`
    }
  }
  return {
    check: async () => (isStopping ? "This hub is stopping. Use another one, or try again in a minute." : check()),
    checkTables: async () => {
      if (versionProblem !== undefined && Date.now() - checkedAt > RECHECK_MS) await check()
      return versionProblem
    },
    markStopping: () => {
      isStopping = true
    },
  }
}
