/** A cache of the values that were used last, up to a total size. */
export type RecentCache<T> = { get(key: string): T | undefined; set(key: string, value: T): void }

/** `sizeOf` is called when a value is set. The least recently used value is removed first; the one just set always stays. */
export function createRecentCache<T>(most: number, sizeOf: (value: T) => number): RecentCache<T> {
  const kept = new Map<string, { value: T; size: number }>()
  let total = 0
  const remove = (key: string) => {
    total -= kept.get(key)?.size ?? 0
    kept.delete(key)
  }
  return {
    get: (key) => {
      const one = kept.get(key)
      if (!one) return undefined
      kept.delete(key)
      kept.set(key, one)
      return one.value
    },
    set: (key, value) => {
      const size = sizeOf(value)
      remove(key)
      kept.set(key, { value, size })
      total += size
      for (const oldest of kept.keys()) {
        if (total <= most || oldest === key) break
        remove(oldest)
      }
    },
  }
}
