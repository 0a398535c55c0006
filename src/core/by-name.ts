// Names that others chose may be `constructor` or `__proto__`, which every plain object seems to have.

/** What a table of ours holds under such a name, if anything. */
export function byName<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

export type Counts = {
  add(name: string, count?: number): void
  /** In the order in which they first came. */
  all(): Record<string, number>
}

/** Counts by such names. */
export function createCounts(): Counts {
  const counts = new Map<string, number>()
  return {
    add: (name, count = 1) => void counts.set(name, (counts.get(name) ?? 0) + count),
    all: () => Object.fromEntries(counts),
  }
}
