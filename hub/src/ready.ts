import { codeOf } from "../../src/core/error.ts"
import type { Database } from "./store/connection.ts"
import { versionProblems } from "./store/health.ts"

/** May this hub be asked at the moment? Each says why not, and what to do. */
export type Readiness = {
  /** Looks now: for whoever decides where requests go. */
  look(): Promise<string | undefined>
  /** Only of the tables: with others than it knows, a hub would fail question by question. */
  tables(): Promise<string | undefined>
  /** From now on it should not be asked. */
  stopping(): void
}

/** Where the tables are not as they should be, they are looked at again after this long: somebody may have migrated. */
const AGAIN_MS = 1_000

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
    look: async () => (isStopping ? "This hub is stopping. Ask another one, or ask again in a minute." : look()),
    tables: async () => {
      if (wrong !== undefined && Date.now() - lookedAt > AGAIN_MS) await look()
      return wrong
    },
    stopping: () => {
      isStopping = true
    },
  }
}
