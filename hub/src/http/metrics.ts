import { Hono } from "hono"
import type { Metrics } from "../metrics.ts"
import type { Search } from "../search/pool.ts"
import type { Database } from "../store/connection.ts"

/** `/metrics`, served on a separate port that is not public. */
export function createMetricsApp({ db, search, metrics }: { db: Database; search: Search; metrics: Metrics }) {
  return new Hono().get("/metrics", (c) => {
    const { waiting, drops, lags, isAvailable = true, unavailable = 0 } = search.state()
    const pools = Object.entries(db.pools()).flatMap(([pool, counts]) =>
      Object.entries(counts ?? {}).map(([state, value]) => ({
        name: "hub_postgres_connections",
        labels: { pool, state },
        value,
      })),
    )
    const gauges = [
      { name: "hub_questions_waiting", value: waiting },
      { name: "hub_second_wall_drops_total", value: drops.unexpected },
      { name: "hub_late_drops_total", value: drops.expected },
      { name: "hub_search_available", value: isAvailable ? 1 : 0 },
      { name: "hub_search_unavailable_total", value: unavailable },
      ...lags.map(({ tenant, lag }) => ({ name: "hub_index_lag_changes", labels: { tenant }, value: lag })),
      ...pools,
    ]
    return c.text(metrics.text(gauges), 200, { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" })
  })
}
