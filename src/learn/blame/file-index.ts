import type { KnownEdit, Worker } from "./facts.ts"

/** What is asked of a file's edits, made once for each list of them. */
export type FileIndex = {
  /** Which edits wrote a line, by its key, oldest first. */
  added: Map<number, KnownEdit[]>
  removed: Map<number, KnownEdit[]>
  /** How many different lines each had written after each of its edits. */
  written: Map<Worker, { at: number; lines: number }[]>
}

const indexes = new WeakMap<readonly KnownEdit[], FileIndex>()

export function fileIndex(edits: readonly KnownEdit[]): FileIndex {
  const known = indexes.get(edits)
  if (known) return known
  const index: FileIndex = { added: new Map(), removed: new Map(), written: new Map() }
  const own = new Map<Worker, Set<number>>()
  for (const edit of edits) {
    put(index.added, edit.added, edit)
    put(index.removed, edit.removed, edit)
    const lines = own.get(edit.worker) ?? new Set()
    own.set(edit.worker, lines)
    for (const key of edit.added) lines.add(key)
    const steps = index.written.get(edit.worker) ?? []
    index.written.set(edit.worker, steps)
    steps.push({ at: edit.at, lines: lines.size })
  }
  indexes.set(edits, index)
  return index
}

function put(index: Map<number, KnownEdit[]>, keys: Uint32Array, edit: KnownEdit): void {
  for (const key of keys) {
    const holding = index.get(key)
    if (!holding) index.set(key, [edit])
    else if (holding.at(-1) !== edit) holding.push(edit)
  }
}

/** Those that were made by then. Edits are oldest first. */
export function madeBy(edits: KnownEdit[] | undefined, until: number): KnownEdit[] {
  if (!edits || edits.length === 0) return []
  return edits.at(-1)!.at <= until ? edits : edits.filter(({ at }) => at <= until)
}

/** Each conversation's last edit by then, and how many different lines it had written. */
export function writtenBy(index: FileIndex, until: number): Map<Worker, { at: number; lines: number }> {
  const found = new Map<Worker, { at: number; lines: number }>()
  for (const [worker, steps] of index.written) {
    const last = steps.findLast(({ at }) => at <= until)
    if (last) found.set(worker, last)
  }
  return found
}
