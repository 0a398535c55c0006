import { onTestFinished } from "vitest"
import { tempDir } from "../../../test/support/temp.ts"
import type { WordEngine } from "../../src/search/engine.ts"
import { createFollower } from "../../src/search/follow.ts"
import { openFts5 } from "../../src/search/fts5.ts"
import { openWords } from "../../src/search/opensearch/team-words.ts"
import type { Database } from "../../src/store/connection.ts"
import { followAll, newCluster, newIndexer, putInCluster } from "./opensearch.ts"
import type { Team } from "./team.ts"

type OpenedEngine = { engine: WordEngine; follow(): Promise<void> }

/** `tenants` are those whose words the engine gets. OpenSearch is tested by `npm run test:cluster`. */
export const ENGINES: Record<string, (team: Team, tenants: number[]) => Promise<OpenedEngine>> = {
  FTS5: async ({ db }) => openedFts5(db),
  "FTS5, for members who may read much": async ({ db }) => openedFts5(db, 0),
  ...(process.env.DEX_TEST_CLUSTER && { OpenSearch: openedCluster }),
}

function openedFts5(db: Database, listAtMost?: number): OpenedEngine {
  const data = tempDir()
  const follower = createFollower(db, data)
  const engine = openFts5(data, listAtMost)
  onTestFinished(() => {
    follower.close()
    engine.close()
  })
  return {
    engine,
    follow: async () => {
      while (!(await follower.step()));
    },
  }
}

async function openedCluster(team: Team, tenants: number[]): Promise<OpenedEngine> {
  const cluster = await newCluster()
  for (const tenant of tenants) await putInCluster(team, tenant)
  const indexer = newIndexer(team.db, cluster)
  const engine = openWords(team.db, cluster, openFts5(tempDir()))
  onTestFinished(() => engine.close())
  return { engine, follow: () => followAll(indexer) }
}
