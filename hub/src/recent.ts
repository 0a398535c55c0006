/** A cache of the most recently used values, up to a total size. */
export type RecentCache<T> = { get(key: string): T | undefined; set(key: string, value: T): void }

/** `sizeOf` is called when a value is set. The least recently used value is removed first; the one just set always stays. */
export function createRecentCache<T>(maxSize: number, sizeOf: (value: T) => number): RecentCache<T> {
  const entries = new Map<string, { value: T; size: number }>()
  let total = 0
  const remove = (key: string) => {
    total -= entries.get(key)?.size ?? 0
    entries.delete(key)
  }
  return {
    get: (key) => {
      const entry = entries.get(key)
      if (!entry) return undefined
      entries.delete(key)
      entries.set(key, entry)
      return entry.value
    },
    set: (key, value) => {
      const size = sizeOf(value)
      remove(key)
      entries.set(key, { value, size })
      total += size
      for (const oldest of entries.keys()) {
        if (total <= maxSize || oldest === key) break
        remove(oldest)
      }
    },
  }
}
