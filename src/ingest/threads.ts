/** Starting threads costs as much as reading about this many bytes. */
export const THREADS_PAY_FROM_BYTES = 4 << 20

/**
 * A thread's heap. Left to itself, V8 lets garbage grow to hundreds of megabytes before it looks; it needs room for the
 * largest unit, which is in memory several times over while it is read, parsed and stored.
 */
export function heapLimits(largestUnitBytes: number): {
  maxYoungGenerationSizeMb: number
  maxOldGenerationSizeMb: number
} {
  return { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 56 + Math.ceil((largestUnitBytes * 12) / 1e6) }
}
