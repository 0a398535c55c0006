/** The values are the hub's own, such as route patterns, numbers and rule names. Metrics must not reveal data from clients. */
type Labels = Record<string, string | number>
export type Gauge = { name: string; labels?: Labels; value: number }
export type Metrics = {
  count(name: string, labels?: Labels, amount?: number): void
  recordDuration(name: string, ms: number, labels?: Labels): void
  /** All counters and durations in Prometheus format, together with the values in `current`. */
  text(current: Gauge[]): string
}

/** The help text of each metric. `docs/hub-operations.md` says what to do about it. */
export const METRIC_HELP: Readonly<Record<string, string>> = {
  hub_requests_total: "Requests, by route and status.",
  hub_request_seconds: "How long requests took, by route.",
  hub_search_seconds: "How long searches and reads took.",
  hub_pushes_total: "Conversations that were accepted. One that is sent twice counts twice.",
  hub_pushed_messages_total: "Messages of the conversations that were accepted.",
  hub_refused_total: "Conversations that were refused because of a secret, by the rule that found it.",
  hub_questions_waiting: "Searches that wait for a thread of the index. Beyond 64, searches are refused.",
  hub_second_wall_drops_total: "Hits that only row-level security stopped. It must be 0.",
  hub_late_drops_total: "Hits that were dropped because something changed while the index was behind.",
  hub_search_available: "1 if the words can be searched, 0 while OpenSearch cannot be reached.",
  hub_search_unavailable_total: "Searches that were refused because OpenSearch did not answer.",
  hub_index_lag_changes: "Changes that the index of a tenant has not followed yet.",
  hub_postgres_connections: "Connections to PostgreSQL, by role and state.",
}

const BOUNDS_SECONDS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10]

export function createMetrics(): Metrics {
  const values = new Map<string, Map<string, number>>()
  const kinds = new Map<string, "counter" | "histogram" | "gauge">()
  const add = (family: Map<string, number>, series: string, amount: number) =>
    family.set(series, (family.get(series) ?? 0) + amount)
  const familyOf = (name: string, kind: "counter" | "histogram") => {
    kinds.set(name, kind)
    const family = values.get(name) ?? new Map<string, number>()
    values.set(name, family)
    return family
  }
  return {
    count: (name, labels = {}, amount = 1) => add(familyOf(name, "counter"), seriesOf(name, labels), amount),
    recordDuration: (name, ms, labels = {}) => {
      const family = familyOf(name, "histogram")
      for (const le of BOUNDS_SECONDS)
        add(family, seriesOf(`${name}_bucket`, { ...labels, le }), ms <= le * 1000 ? 1 : 0)
      add(family, seriesOf(`${name}_bucket`, { ...labels, le: "+Inf" }), 1)
      add(family, seriesOf(`${name}_sum`, labels), ms / 1000)
      add(family, seriesOf(`${name}_count`, labels), 1)
    },
    text: (current) => {
      const families = new Map([...values].map(([name, family]) => [name, [...family]]))
      for (const { name, labels = {}, value } of current) {
        if (!name.endsWith("_total")) kinds.set(name, "gauge")
        families.set(name, [...(families.get(name) ?? []), [seriesOf(name, labels), value]])
      }
      const lines = [...families].flatMap(([name, family]) => [
        `# HELP ${name} ${METRIC_HELP[name]}`,
        `# TYPE ${name} ${kinds.get(name) ?? "counter"}`,
        ...family.map(([series, value]) => `${series} ${value}`),
      ])
      return `${lines.join("\n")}\n`
    },
  }
}

function seriesOf(name: string, labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${String(value).replace(/["\\\n]/g, "_")}"`)
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`
}
