import { formatRef, refFrom } from "../../core/ref.ts"
import type { LineEdit, LineWorker, RanCommit } from "../../store/knowledge/lines.ts"
import { evidenceDeadline, MAX_SILENCE_SECONDS, mayBeSameCommit } from "./evidence.ts"
import { baseNameOf, type LineQueries } from "./facts.ts"

// A laptop's request to a team's hub: who wrote these lines? The answer contains only the rows that matter for these commits. The code
// stays on the laptop; only commits, times and paths are sent.

export type LinesRequest = {
  /** The project's name on the hub. */
  project: string
  commits: { hash: string; at: number; subject: string }[]
  /** Files that the commits touched, each with the earliest relevant time. */
  paths: { path: string; until: number }[]
  /** Sessions that the repository itself names. */
  sessions: string[]
}

/** The hub's answer. Line keys and seconds are four-byte numbers in base64. */
export type SentLines = {
  workers: (Omit<LineWorker, "said" | "id" | "name"> & { id: string; native_id: string; said: string })[]
  files: { file: number; path: string }[]
  edits: (Omit<LineEdit, "added" | "removed"> & { added: string; removed: string })[]
  ran: RanCommit[]
  /** True if some edits were left out because there were too many. */
  is_cut: boolean
}

/** The maximum number of bytes of line keys, before base64. */
const MAX_BYTES = 8 << 20

/** Answers a `LinesRequest`. `lines` has only what may be shown. */
export function answerLinesRequest(lines: LineQueries, request: LinesRequest): SentLines {
  const { project, commits, sessions } = request
  const related = editsAbout(lines, request)
  const commitRuns = lines.ranCommits(project).filter((one) => commits.some((commit) => mayBeSameCommit(commit, one)))
  const conversationsWithRows = new Set([...related.edits, ...commitRuns].map(({ conversation }) => conversation))
  const rows = lines.lineWorkers(project)
  const deadlines = commits.map((commit) => Math.floor(evidenceDeadline(commit) / 1000))
  const isWanted = (row: LineWorker) =>
    conversationsWithRows.has(row.conversation) ||
    wasActiveBefore(row, deadlines) ||
    sessions.some((one) => isSession(row, one))
  // A subagent's work belongs to the conversation that started it, so they are sent together or not at all.
  const withRelatedWorkers = relatedWorkersIn(rows)
  const wantedRows = new Set(rows.filter(isWanted).flatMap(withRelatedWorkers))
  const { edits, isCut } = newestWithinLimit(related.edits)
  const files = new Set(edits.map(({ file }) => file))
  return {
    workers: [...wantedRows].map(({ said, id, name: _, ...row }) => ({
      ...row,
      id: formatRef(refFrom(row.source, id)),
      native_id: id,
      said: encodeKeys(said),
    })),
    files: related.files.filter(({ file }) => files.has(file)),
    edits: edits.map(({ added, removed, ...one }) => ({
      ...one,
      added: encodeKeys(added),
      removed: encodeKeys(removed),
    })),
    ran: commitRuns,
    is_cut: isCut,
  }
}

/** Returns the edits of each path. If a path had none up to its time, includes those of files with the same name elsewhere. */
function editsAbout(lines: LineQueries, { project, paths }: LinesRequest) {
  const files = lines.lineFiles(project)
  const byPath = Map.groupBy(files, ({ path }) => path)
  const byName = Map.groupBy(files, ({ path }) => baseNameOf(path))
  const filesByNumber = new Map<number, { file: number; path: string }>()
  const add = (rows: typeof files = []) => {
    for (const one of rows) filesByNumber.set(one.file, one)
  }
  for (const { path, until } of paths) {
    const filesOfPath = byPath.get(path) ?? []
    add(filesOfPath)
    const first = filesOfPath.length === 0 ? undefined : lines.editsOfFiles(filesOfPath.map(({ file }) => file))[0]
    if (!first || first.at > until) add(byName.get(baseNameOf(path)))
  }
  return { files: [...filesByNumber.values()], edits: lines.editsOfFiles([...filesByNumber.keys()]) }
}

/** Whether the conversation had a message shortly before one of these times. */
function wasActiveBefore({ said: active }: LineWorker, seconds: readonly number[]): boolean {
  const [first, last] = [active[0], active.at(-1)]
  if (first === undefined || last === undefined) return false
  return seconds.some((second) => first <= second && second - MAX_SILENCE_SECONDS <= last)
}

/** Whether the session is this conversation's. The tool Entire writes a date before the id. */
function isSession({ id }: LineWorker, session: string): boolean {
  return session === id || session.endsWith(`-${id}`)
}

function relatedWorkersIn(rows: LineWorker[]): (row: LineWorker) => LineWorker[] {
  const workerKey = ({ source }: LineWorker, id: string) => `${source}\n${id}`
  const byName = new Map(rows.map((row) => [workerKey(row, row.id), row]))
  const startedBy = Map.groupBy(rows, (row) => workerKey(row, row.belongs_to))
  return (row) => {
    const relatedWorkers = new Set([row])
    for (const one of relatedWorkers) {
      const starter = byName.get(workerKey(one, one.belongs_to))
      for (const related of [...(starter ? [starter] : []), ...(startedBy.get(workerKey(one, one.id)) ?? [])])
        relatedWorkers.add(related)
    }
    return [...relatedWorkers]
  }
}

/** Keeps only the newest edits if there are too many. */
function newestWithinLimit(edits: LineEdit[]): { edits: LineEdit[]; isCut: boolean } {
  let bytes = 0
  const from = edits.findLastIndex(({ added, removed }) => {
    bytes += added.byteLength + removed.byteLength
    return bytes > MAX_BYTES
  })
  return { edits: edits.slice(from + 1), isCut: from >= 0 }
}

export function encodeKeys(keys: Uint32Array): string {
  return Buffer.from(keys.buffer, keys.byteOffset, keys.byteLength).toString("base64")
}

export function decodeKeys(text: string): Uint32Array {
  const bytes = Buffer.from(text, "base64")
  return new Uint32Array(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + (bytes.byteLength & ~3)) as ArrayBuffer,
  )
}

/**
 * Combines this machine's lines with a team's. A conversation of this machine takes precedence over its copy on the hub. The
 * hub's numbers are made negative to keep them distinct.
 */
export function mergeLines(local: LineQueries, project: string, team: SentLines): LineQueries {
  const localWorkers = new Set(local.lineWorkers(project).map(({ source, id }) => `${source}\n${id}`))
  const workers = team.workers.filter(({ source, native_id }) => {
    const ref = refFrom(source, native_id)
    return !localWorkers.has(`${ref.source}\n${ref.id}`)
  })
  const addedConversations = new Set(workers.map(({ conversation }) => conversation))
  const edits = team.edits
    .filter(({ conversation }) => addedConversations.has(conversation))
    .map(({ conversation, file, added, removed, ...one }) => ({
      ...one,
      conversation: -conversation,
      file: -file,
      added: decodeKeys(added),
      removed: decodeKeys(removed),
    }))
  const teamWorkers = workers.map(({ conversation, native_id, said, ...one }) => ({
    ...one,
    conversation: -conversation,
    name: one.id,
    id: native_id,
    said: decodeKeys(said),
  }))
  return {
    lineWorkers: () => [...local.lineWorkers(project), ...teamWorkers],
    lineFiles: () => [...local.lineFiles(project), ...team.files.map(({ file, path }) => ({ file: -file, path }))],
    editsOfFiles: (files) => {
      const wantedFiles = new Set(files)
      const localEdits = local.editsOfFiles(files.filter((file) => file > 0))
      return [...localEdits, ...edits.filter(({ file }) => wantedFiles.has(file))].sort((a, b) => a.at - b.at)
    },
    ranCommits: () => [
      ...local.ranCommits(project),
      ...team.ran
        .filter(({ conversation }) => addedConversations.has(conversation))
        .map((one) => ({ ...one, conversation: -one.conversation })),
    ],
  }
}
