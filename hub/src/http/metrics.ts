import { Hono } from "hono"
import type { Metrics } from "../metrics.ts"
import type { Shards } from "../shards/pool.ts"
import type { Database } from "../store/connection.ts"

/** `/metrics`, served on a separate port that is not public. */
export function createMetricsApp({ db, shards, metrics }: { db: Database; shards: Shards; metrics: Metrics }) {
  return new Hono().get("/metrics", (c) => {
    const { waiting, drops, lags } = shards.state()
    const pools = Object.entries(db.pools()).flatMap(([pool, counts]) =>
      Object.entries(counts).map(([state, value]) => ({
        name: "hub_postgres_connections",
        labels: { pool, state },
        value,
      })),
    )
    const gauges = [
      { name: "hub_questions_waiting", value: waiting },
      { name: "hub_second_wall_drops_total", value: drops },
      ...lags.map(({ tenant, shard, lag }) => ({
        name: "hub_shard_lag_changes",
        labels: { tenant, shard },
        value: lag,
      })),
      ...pools,
    ]
    return c.text(metrics.text(gauges), 200, { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" })
  })
}
