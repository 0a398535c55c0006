import { type ItemKind, KINDS } from "../../core/suggestion.ts"
import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"

type Rates = { items: number; used: number; dismissed: number }

export type Metrics = {
  suggestions: number
  /** The number of suggestions that were not shown, only recorded as what would have been suggested. */
  would: number
  items: number
  used: number
  dismissed: number
  latency_ms: { median: number; p95: number }
  by_kind: (Rates & { kind: ItemKind })[]
  /** Rates in tenths of relevance, lowest first, without empty ones. */
  by_relevance: (Rates & { from: number })[]
}

/** Computes the metrics of the stored suggestions. Suggestions that were never shown count only in `would`. */
export function metricsOf(db: Db, from = 0): Metrics {
  const shown = valueQuery(db, "select count(*) from suggestion where would = 0 and at >= ?", "integer").get(from)!
  const would = valueQuery(db, "select count(*) from suggestion where would = 1 and at >= ?", "integer").get(from)!
  const latencyAt = (share: number) =>
    valueQuery(db, "select latency_ms from suggestion where at >= ? order by latency_ms limit 1 offset ?", "real").get(
      from,
      Math.floor(Math.max(0, shown + would - 1) * share),
    ) ?? 0
  const by_kind = rowQuery(
    db,
    `select i.kind, count(*) as items, sum(i.status = 'used') as used, sum(i.status = 'dismissed') as dismissed
         from item i join suggestion s on s.seq = i.suggestion where s.would = 0 and s.at >= ? group by i.kind`,
    {
      items: "integer",
      used: "integer",
      dismissed: "integer",
      kind: KINDS,
    },
  )
    .all(from)
    .sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))
  const by_relevance = rowQuery(
    db,
    `select min(9, cast(i.relevance * 10 as integer)) / 10.0 as "from", count(*) as items,
         sum(i.status = 'used') as used, sum(i.status = 'dismissed') as dismissed
       from item i join suggestion s on s.seq = i.suggestion where s.would = 0 and s.at >= ? group by 1 order by 1`,
    { items: "integer", used: "integer", dismissed: "integer", from: "real" },
  ).all(from)
  const sum = (field: keyof Rates) => by_kind.reduce((total, row) => total + row[field], 0)
  return {
    suggestions: shown,
    would,
    items: sum("items"),
    used: sum("used"),
    dismissed: sum("dismissed"),
    latency_ms: { median: latencyAt(0.5), p95: latencyAt(0.95) },
    by_kind,
    by_relevance,
  }
}
