import type { Worker } from "./facts.ts"

// When something was said in a conversation, in seconds since 1970.

const ENDED_BEFORE_SECONDS = 10 * 60

/** Of those in which something was said not longer ago than `most`: how long before this second. */
export function saidWithin(workers: Worker[], second: number, most: number): Map<Worker, number> {
  const found = new Map<Worker, number>()
  for (const worker of workers) {
    if ((worker.said.at(-1) ?? 0) < second - most) continue
    const since = secondsSince(worker, second)
    if (since !== undefined && since <= most) found.set(worker, since)
  }
  return found
}

/** How long before this second something was said last. */
export function secondsSince({ said }: Worker, second: number): number | undefined {
  let [low, high] = [0, said.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (said[middle]! <= second) low = middle + 1
    else high = middle
  }
  return low === 0 ? undefined : second - said[low - 1]!
}

/** It had begun, and was over by a few minutes at most. */
export function wentOn({ said }: Worker, second: number): boolean {
  return said.length > 0 && said[0]! <= second && second <= said.at(-1)! + ENDED_BEFORE_SECONDS
}
