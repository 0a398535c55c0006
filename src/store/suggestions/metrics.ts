import { type ItemKind, KINDS } from "../../core/suggestion.ts"
import type { Db } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"

/** The numbers of items that were offered, and of those with each verdict. */
type Rates = { offered: number; used: number; dismissed: number }

export type Metrics = Rates & {
  suggestions: number
  /** The number of suggestions that were not shown, but only recorded as what would have been suggested. */
  would: number
  latency_ms: { median: number; p95: number }
  by_kind: (Rates & { kind: ItemKind })[]
  /** The rates for each tenth of relevance, lowest first, without empty tenths. */
  by_relevance: (Rates & { from: number })[]
}

/** Computes the metrics of the stored suggestions. Suggestions that were never shown count only in `would` and `latency_ms`. */
export function metricsOf(db: Db, from = 0): Metrics {
  const shownCount = valueQuery(db, "select count(*) from suggestion where would = 0 and at >= ?", "integer").get(from)!
  const notShownCount = valueQuery(db, "select count(*) from suggestion where would = 1 and at >= ?", "integer").get(
    from,
  )!
  const latencyAt = (share: number) =>
    valueQuery(db, "select latency_ms from suggestion where at >= ? order by latency_ms limit 1 offset ?", "real").get(
      from,
      Math.floor(Math.max(0, shownCount + notShownCount - 1) * share),
    ) ?? 0
  const by_kind = rowQuery(
    db,
    `select i.kind, count(*) as offered, sum(i.status = 'used') as used, sum(i.status = 'dismissed') as dismissed
         from item i join suggestion s on s.seq = i.suggestion where s.would = 0 and s.at >= ? group by i.kind`,
    {
      offered: "integer",
      used: "integer",
      dismissed: "integer",
      kind: KINDS,
    },
  )
    .all(from)
    .sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))
  const by_relevance = rowQuery(
    db,
    `select min(9, cast(i.relevance * 10 as integer)) / 10.0 as "from", count(*) as offered,
         sum(i.status = 'used') as used, sum(i.status = 'dismissed') as dismissed
       from item i join suggestion s on s.seq = i.suggestion where s.would = 0 and s.at >= ? group by 1 order by 1`,
    { offered: "integer", used: "integer", dismissed: "integer", from: "real" },
  ).all(from)
  const sum = (field: keyof Rates) => by_kind.reduce((total, row) => total + row[field], 0)
  return {
    suggestions: shownCount,
    would: notShownCount,
    offered: sum("offered"),
    used: sum("used"),
    dismissed: sum("dismissed"),
    latency_ms: { median: latencyAt(0.5), p95: latencyAt(0.95) },
    by_kind,
    by_relevance,
  }
}
