import { codeOf } from "../../src/core/error.ts"
import type { Database } from "./store/connection.ts"
import { versionProblems } from "./store/health.ts"

/** Checks whether this hub can answer. Each check returns undefined, or a sentence that says why it cannot and what to do. */
export type Readiness = {
  /** For load balancers. Queries PostgreSQL each time, and fails as soon as the hub is stopping. */
  check(): Promise<string | undefined>
  /** Checks PostgreSQL only. */
  checkDatabase(): Promise<string | undefined>
  /**
   * For each request. Returns the last known problem with the version of the tables, because with a wrong version, each request
   * would fail with a different error. Queries PostgreSQL only if there was such a problem.
   */
  checkTables(): Promise<string | undefined>
  markStopping(): void
}

/** How long to wait before checking a wrong version of the tables again, in milliseconds. An operator may have migrated them. */
const RECHECK_MS = 1_000

/** `isBuilt` is true once there is a search index for every tenant. */
export function watchReadiness(db: Database, isBuilt: () => boolean = () => true): Readiness {
  let isStopping = false
  let versionProblem: string | undefined
  let checkedAt = 0
  const checkDatabase = async () => {
    checkedAt = Date.now()
    try {
      versionProblem = (await versionProblems(db))[0]
      return versionProblem
    } catch (error) {
      return `PostgreSQL does not answer (${codeOf(error) || "no reason given"}).`
    }
  }
  return {
    check: async () => {
      if (isStopping) return "This hub is stopping. Use another one, or try again in a minute."
      const problem = await checkDatabase()
      return problem ?? (isBuilt() ? undefined : "This hub is building its search index. Use another one until it has.")
    },
    checkDatabase,
    checkTables: async () => {
      if (versionProblem !== undefined && Date.now() - checkedAt > RECHECK_MS) await checkDatabase()
      return versionProblem
    },
    markStopping: () => {
      isStopping = true
    },
  }
}
