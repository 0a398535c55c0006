import { dirname, join } from "node:path"

// Where version 0.1.0 has what it derived from the history, beside ours.

export function olderIndex(path: string): string {
  return join(dirname(path), "index.db")
}

export function olderKnowledge(path: string): string {
  return join(dirname(path), "knowledge.db")
}
