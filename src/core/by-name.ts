// Names that other people chose may be `constructor` or `__proto__`, which every plain object seems to have.

/** Looks up such a name in a table. */
export function byName<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

export type Counts = {
  add(name: string, count?: number): void
  /** In the order in which the names were first added. */
  all(): Record<string, number>
}

/** Counts by name, safe for such names. */
export function createCounts(): Counts {
  const counts = new Map<string, number>()
  return {
    add: (name, count = 1) => void counts.set(name, (counts.get(name) ?? 0) + count),
    all: () => Object.fromEntries(counts),
  }
}
