import { randomBytes } from "node:crypto"
import { onTestFinished } from "vitest"
import { type Cluster, openCluster } from "../../src/search/opensearch/client.ts"
import { createIndexer, type Indexer } from "../../src/search/opensearch/indexer.ts"
import type { Database } from "../../src/store/connection.ts"
import { opensearchAddress } from "./start-opensearch.ts"
import type { Team } from "./team.ts"

/** A real cluster, in which this test's indexes have names of their own. They are deleted after the test. */
export async function newCluster({ prefix = `t${randomBytes(6).toString("hex")}` } = {}): Promise<Cluster> {
  const settings = { addresses: [await opensearchAddress()], prefix, shards: 1 }
  onTestFinished(async () => {
    const cluster = openCluster(settings)
    const names = Object.keys(await cluster.ask<object>({ method: "GET", path: `/${prefix}-*` }))
    if (names.length > 0) await cluster.ask({ method: "DELETE", path: `/${names.join(",")}` })
    await cluster.close()
  })
  const opened = openCluster(settings)
  onTestFinished(() => opened.close())
  return opened
}

/** From now on, the cluster has the words of this tenant. */
export async function putInCluster(team: Pick<Team, "asOwner">, tenant: number): Promise<void> {
  await team.asOwner("insert into hub.word_index (tenant) values ($1)", [tenant])
}

export function newIndexer(db: Database, cluster: Cluster): Indexer {
  const indexer = createIndexer(db, cluster, (error) => {
    throw error // as an unhandled rejection, which fails the run
  })
  onTestFinished(() => indexer.close())
  return indexer
}

/** Follows until searches find everything. */
export async function followAll(indexer: Indexer): Promise<void> {
  while (!(await indexer.step()));
}
