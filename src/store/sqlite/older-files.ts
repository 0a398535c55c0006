import { dirname, join } from "node:path"

// Where older versions have what they derived from the history, beside ours.

/** The index that this version would have in an older format. Format 2 is version 0.1.0's. */
export function olderIndex(path: string, format: number): string {
  return join(dirname(path), format === 2 ? "index.db" : `index-${format}.db`)
}

export function olderKnowledge(path: string): string {
  return join(dirname(path), "knowledge.db")
}
