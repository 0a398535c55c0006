import { type Ref, refFrom } from "../../core/ref.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { LineEdit } from "../../store/knowledge/lines.ts"

/** A conversation and its subagents, as the author of lines. */
export type Worker = {
  ref: Ref
  title?: string
  started_at?: number
  /** Seconds since 1970, ascending: the last message of each minute that has one. */
  activeSeconds: Uint32Array
}

export type KnownEdit = {
  worker: Worker
  /** The message that made the edit; it may be a subagent's. */
  ref: Ref & { number: number }
  at: number
  added: Uint32Array
  removed: Uint32Array
}

export type CommitRun = { worker: Worker; ref: Ref & { number: number }; hash: string; subject: string; at: number }

/** Everything that is known about the authors of one project's lines. */
export type BlameFacts = {
  workers: Worker[]
  /**
   * Returns the edits of a file, oldest first, including those after `until`. If the path had no edit up to `until`, returns the
   * edits of every file with the same name, because the folder may have been renamed.
   */
  editsOf(path: string, until: number): KnownEdit[]
  commitRuns: CommitRun[]
}

/** The queries about lines that the knowledge answers. */
export type LineQueries = Pick<Knowledge["lines"], "lineWorkers" | "lineFiles" | "editsOfFiles" | "ranCommits">

export function blameFacts({ lines }: { lines: LineQueries }, project: string): BlameFacts {
  const rows = lines.lineWorkers(project)
  const byName = new Map(rows.map((row) => [`${row.source}\n${row.id}`, row]))
  const starterOf = (row: (typeof rows)[number], depth = 0): (typeof rows)[number] => {
    const starter = row.belongs_to === row.id ? undefined : byName.get(`${row.source}\n${row.belongs_to}`)
    return starter && depth < MAX_DEPTH ? starterOf(starter, depth + 1) : row
  }
  const workers = new Map<number, Worker>()
  for (const [starter, rowsOfStarter] of Map.groupBy(rows, (row) => starterOf(row))) {
    const { source, id, title, started_at } = starter
    const activeSeconds = rowsOfStarter.length === 1 ? starter.said : mergeSeconds(rowsOfStarter.map((row) => row.said))
    const worker = {
      ref: refFrom(source, id),
      title,
      started_at,
      activeSeconds,
    }
    for (const { conversation } of rowsOfStarter) workers.set(conversation, worker)
  }
  const refs = new Map(rows.map(({ conversation, source, id }) => [conversation, refFrom(source, id)]))
  const toKnownEdits = ({ conversation, number, at, added, removed }: LineEdit): KnownEdit[] => {
    const [worker, ref] = [workers.get(conversation), refs.get(conversation)]
    return worker && ref ? [{ worker, ref: { ...ref, number }, at, added, removed }] : []
  }
  return {
    workers: [...new Set(workers.values())],
    editsOf: editsFinder(lines.lineFiles(project), (files) => lines.editsOfFiles(files).flatMap(toKnownEdits)),
    commitRuns: lines.ranCommits(project).flatMap(({ conversation, number, hash, subject, at }) => {
      const [worker, ref] = [workers.get(conversation), refs.get(conversation)]
      return worker && ref ? [{ worker, ref: { ...ref, number }, hash, subject, at }] : []
    }),
  }
}

/** The deepest nesting of subagents that is followed. Deeper nesting has never been seen. */
const MAX_DEPTH = 5

function editsFinder(
  files: { file: number; path: string }[],
  read: (files: number[]) => KnownEdit[],
): BlameFacts["editsOf"] {
  const byPath = Map.groupBy(files, ({ path }) => path)
  const byName = Map.groupBy(files, ({ path }) => baseNameOf(path))
  const cache = new Map<string, KnownEdit[]>()
  const editsIn = (key: string, wanted: { file: number }[] = []) => {
    const edits = cache.get(key) ?? (wanted.length === 0 ? [] : read(wanted.map(({ file }) => file)))
    cache.set(key, edits)
    return edits
  }
  return (path, until) => {
    const editsOfPath = editsIn(path, byPath.get(path))
    if (editsOfPath.length > 0 && editsOfPath[0]!.at <= until) return editsOfPath
    const name = baseNameOf(path)
    return editsIn(`*/${name}`, byName.get(name))
  }
}

export function baseNameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1)
}

function mergeSeconds(all: Uint32Array[]): Uint32Array {
  return Uint32Array.from([...new Set(all.flatMap((one) => [...one]))]).sort()
}

/** An index of a file's edits, built once for each list of edits. */
export type FileIndex = {
  /** Maps a line's key to the edits that wrote the line, oldest first. */
  added: Map<number, KnownEdit[]>
  removed: Map<number, KnownEdit[]>
  /** Maps each conversation to the number of different lines that it had written after each of its edits. */
  written: Map<Worker, { at: number; lineCount: number }[]>
}

const indexes = new WeakMap<readonly KnownEdit[], FileIndex>()

export function fileIndex(edits: readonly KnownEdit[]): FileIndex {
  const existing = indexes.get(edits)
  if (existing) return existing
  const index: FileIndex = { added: new Map(), removed: new Map(), written: new Map() }
  const linesByWorker = new Map<Worker, Set<number>>()
  for (const edit of edits) {
    addEdit(index.added, edit.added, edit)
    addEdit(index.removed, edit.removed, edit)
    const lines = linesByWorker.get(edit.worker) ?? new Set()
    linesByWorker.set(edit.worker, lines)
    for (const key of edit.added) lines.add(key)
    const steps = index.written.get(edit.worker) ?? []
    index.written.set(edit.worker, steps)
    steps.push({ at: edit.at, lineCount: lines.size })
  }
  indexes.set(edits, index)
  return index
}

function addEdit(index: Map<number, KnownEdit[]>, keys: Uint32Array, edit: KnownEdit): void {
  for (const key of keys) {
    const existing = index.get(key)
    if (!existing) index.set(key, [edit])
    else if (existing.at(-1) !== edit) existing.push(edit)
  }
}

/** Returns the edits up to a time. Edits are oldest first. */
export function editsUntil(edits: KnownEdit[] | undefined, until: number): KnownEdit[] {
  if (!edits || edits.length === 0) return []
  return edits.at(-1)!.at <= until ? edits : edits.filter(({ at }) => at <= until)
}

/** Returns each conversation's last edit up to a time, and the number of different lines that it had written. */
export function lastEditsUntil(index: FileIndex, until: number): Map<Worker, { at: number; lineCount: number }> {
  const lastEdits = new Map<Worker, { at: number; lineCount: number }>()
  for (const [worker, steps] of index.written) {
    const last = steps.findLast(({ at }) => at <= until)
    if (last) lastEdits.set(worker, last)
  }
  return lastEdits
}
