const SETTLED_MS = 60_000

/**
 * True where nobody has written to a file for a minute, so that what it ends with is not in the middle of being written.
 * A file dated further ahead than that was written before the clock was set back: when, nobody knows, and waiting for its
 * date could take years.
 */
export function isSettled(modifiedAt: number, now: number): boolean {
  return Math.abs(now - modifiedAt) > SETTLED_MS
}
