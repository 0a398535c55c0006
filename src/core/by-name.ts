// Looks up and counts names that come from outside dex. A plain object would seem to have entries for `constructor` and
// `__proto__`.

/** Returns the table's own entry, never an inherited one such as `constructor`. */
export function byName<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

export type Counts = {
  add(name: string, count?: number): void
  /** Returns all counts, in the order in which their names were first added. */
  all(): Record<string, number>
}

/** Creates a counter that treats `constructor` and `__proto__` like any other name. */
export function createCounts(): Counts {
  const counts = new Map<string, number>()
  return {
    add: (name, count = 1) => void counts.set(name, (counts.get(name) ?? 0) + count),
    all: () => Object.fromEntries(counts),
  }
}
