/** The values are the hub's own, such as route patterns, numbers and rule names. Metrics must not reveal data from clients. */
type Labels = Record<string, string | number>
export type Gauge = { name: string; labels?: Labels; value: number }
export type Metrics = {
  count(name: string, labels?: Labels, amount?: number): void
  recordDuration(name: string, ms: number, labels?: Labels): void
  /** All counters and durations in Prometheus format, together with the values in `current`. */
  text(current: Gauge[]): string
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
