import { codeOf } from "../../src/core/error.ts"
import type { Database } from "./store/connection.ts"
import { versionProblems } from "./store/health.ts"

/** Whether this hub can answer at the moment. Each result is undefined or a sentence that says why not and what to do. */
export type Readiness = {
  /** Checks now, for load balancers. */
  look(): Promise<string | undefined>
  /** Checks only the version of the tables, because with an unknown version requests would fail one by one. */
  tables(): Promise<string | undefined>
  stopping(): void
}

/** How long to wait before a wrong version of the tables is checked again, in milliseconds: somebody may have migrated. */
const RECHECK_MS = 1_000

export function watchReadiness(db: Database): Readiness {
  let isStopping = false
  let wrong: string | undefined
  let lookedAt = 0
  const look = async () => {
    lookedAt = Date.now()
    try {
      wrong = (await versionProblems(db))[0]
      return wrong
    } catch (error) {
      return `PostgreSQL does not answer (${codeOf(error) || "no reason given"}).`
    }
  }
  return {
    look: async () => (isStopping ? "This hub is stopping. Use another one, or try again in a minute." : look()),
    tables: async () => {
      if (wrong !== undefined && Date.now() - lookedAt > RECHECK_MS) await look()
      return wrong
    },
    stopping: () => {
      isStopping = true
    },
  }
}
