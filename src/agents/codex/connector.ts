import { createHash } from "node:crypto"
import type { Dirent } from "node:fs"
import { join } from "node:path"
import { withoutUndefined } from "../../core/defined.ts"
import { messageOf } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import type { Connector, Cursor, IsUnchanged, Reading, Scratch, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { entriesOf, fileAt, readJsonFile, textAt, unitOfFile } from "../kit/files.ts"
import { columnsOf, type ForeignDatabase, withForeignDatabase } from "../kit/foreign-sqlite.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { decompressZstd } from "../kit/zstd.ts"
import { codexRoots } from "../registry.ts"
import { parseRollout, rejoinRollout } from "./parse.ts"
import { stripRecord } from "./strip.ts"

/** Reads Codex CLI, its IDE extension and its app. Each thread is a rollout file; its name and parent are in a database. */
export const codexConnector: Connector = {
  source: "codex",
  version: 6,
  roots: codexRoots,
  discover,
  watched,
  read,
  parse: parseRollout,
  rejoin: rejoinRollout,
  identify,
}

/** The facts that Codex stores outside the rollout. Stored as the first record of the unit. */
export type ThreadFacts = { type: "dex-thread"; name?: string; title?: string; parent?: string }

type CodexUnit = Unit & { thread?: ThreadFacts }

const ROLLOUT = /^(rollout-.+?)\.(jsonl|jsonl\.zst|json)$/
/** The endings of a thread's file, in order of preference. A resumed thread is unpacked next to its old compressed file. */
const ENDINGS = ["jsonl", "jsonl.zst", "json"]
const MAX_INDEX_BYTES = 64 << 20
/** The estimated ratio of decompressed to compressed size. It is ten to thirty, or more if the text is repetitive. */
const COMPRESSION_RATIO = 30
/** The levels of folders below `sessions`: YYYY/MM/DD. */
const MAX_FOLDERS = 3

function watched(root: string): Watched[] {
  return [
    { folder: join(root, "sessions"), depth: MAX_FOLDERS },
    { folder: join(root, "archived_sessions"), depth: MAX_FOLDERS },
    { folder: root, depth: 0, files: /^(session_index\.jsonl|state_\d+\.sqlite(-wal)?)$/ },
  ]
}

function* discover(root: string, _isUnchanged: IsUnchanged, scratch?: Scratch): Iterable<Unit | Unreadable> {
  const threads = new Map<string, ThreadFacts>()
  const problems: Unreadable[] = []
  addIndex(threads, join(root, "session_index.jsonl"), problems)
  addState(threads, root, problems, scratch)

  const rollouts = new Map<string, { kind: string; unit: CodexUnit }>()
  for (const folder of ["sessions", "archived_sessions"]) {
    for (const file of rolloutsIn(join(root, folder), MAX_FOLDERS, problems)) {
      const earlier = rollouts.get(file.unit.key)
      if (!earlier || isBetter(file, earlier)) rollouts.set(file.unit.key, file)
    }
  }
  yield* problems
  for (const { unit } of rollouts.values()) {
    const thread = threads.get(threadIdOf(unit.key) ?? "")
    yield thread ? { ...unit, thread, stamp: `${unit.stamp}:${fingerprint(thread)}` } : unit
  }
}

type Rollout = { kind: string; unit: CodexUnit }

function isBetter(file: Rollout, other: Rollout): boolean {
  const [rank, otherRank] = [ENDINGS.indexOf(file.kind), ENDINGS.indexOf(other.kind)]
  return rank === otherRank ? file.unit.modifiedAt > other.unit.modifiedAt : rank < otherRank
}

function* rolloutsIn(folder: string, depth: number, problems: Unreadable[]): Iterable<Rollout> {
  for (const entry of entriesOf(folder, (problem) => problems.push(problem))) {
    const path = join(folder, entry.name)
    const name = ROLLOUT.exec(entry.name)
    if (!name) {
      if (depth > 0 && leadsToFolder(entry, path)) yield* rolloutsIn(path, depth - 1, problems)
      continue
    }
    const stat = fileAt(path, (problem) => problems.push(problem))
    if (!stat) continue
    const unit = unitOfFile(path, name[1]!, stat)
    yield { kind: name[2]!, unit: name[2] === "jsonl.zst" ? { ...unit, bytes: stat.size * COMPRESSION_RATIO } : unit }
  }
}

function leadsToFolder(entry: Dirent, path: string): boolean {
  return entry.isSymbolicLink() ? isFolder(path) : entry.isDirectory()
}

/** Parses `rollout-<time>-<thread>` or, for a reverted thread, `rollout-<time>-<thread>_<rollout>`. */
function threadIdOf(stem: string): string | undefined {
  return /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_[0-9a-f-]+)?$/.exec(stem)?.[1]
}

/** Adds the names in the older builds' index. They append a line at every renaming, so the last line about a thread counts. */
function addIndex(threads: Map<string, ThreadFacts>, path: string, problems: Unreadable[]): void {
  const text = textAt(path, MAX_INDEX_BYTES, (problem) => problems.push(problem))
  for (const line of text?.split("\n") ?? []) {
    const entry = parseObject(line)
    const id = string(entry?.id)
    const name = string(entry?.thread_name)
    if (id && name) threads.set(id, { type: "dex-thread", name })
  }
}

/** Adds the facts in the newest `state_<N>.sqlite`. The number rises with the schema, and the older files remain. */
function addState(threads: Map<string, ThreadFacts>, root: string, problems: Unreadable[], scratch?: Scratch): void {
  const numbers = entriesOf(root, (problem) => problems.push(problem)).flatMap(({ name }) => {
    const number = /^state_(\d{1,6})\.sqlite$/.exec(name)?.[1]
    return number === undefined ? [] : [Number(number)]
  })
  if (numbers.length === 0) return
  const path = join(root, `state_${Math.max(...numbers)}.sqlite`)
  try {
    for (const [id, thread] of withForeignDatabase(path, readThreads, scratch)) {
      threads.set(id, { ...threads.get(id), ...withoutUndefined(thread) })
    }
  } catch (error) {
    problems.push({ unreadable: messageOf(error), path })
  }
}

function readThreads(db: ForeignDatabase): Map<string, ThreadFacts> {
  const threads = new Map<string, ThreadFacts>()
  const existing = columnsOf(db, "threads")
  if (existing.has("id")) {
    const columns = ["id", "name", "title", "first_user_message", "preview"].filter((column) => existing.has(column))
    for (const row of db.all(`select ${columns.join(", ")} from threads`)) {
      const name = string(row.name)
      const title = string(row.title)
      const isPrompt = title === row.first_user_message || title === row.preview
      threads.set(String(row.id), {
        type: "dex-thread",
        name: name || undefined,
        title: title && !isPrompt ? title : undefined,
      })
    }
  }
  if (columnsOf(db, "thread_spawn_edges").size > 0) {
    for (const row of db.all("select parent_thread_id, child_thread_id from thread_spawn_edges")) {
      const child = String(row.child_thread_id)
      threads.set(child, { type: "dex-thread", ...threads.get(child), parent: String(row.parent_thread_id) })
    }
  }
  for (const [id, thread] of threads) if (!thread.name && !thread.title && !thread.parent) threads.delete(id)
  return threads
}

function read(unit: CodexUnit, after?: Cursor, scratch?: Scratch): Reading | Promise<Reading> {
  if (unit.path.endsWith(".zst")) return readCompressed(unit, after, scratch)
  if (unit.path.endsWith(".json")) return withThread(readJsonFile(unit.path, after, recordsOfFirstFormat), unit, after)
  return withThread(readJsonl(unit.path, after, { strip: stripRecord }), unit, after)
}

/** Reads a compressed rollout. The cursor counts decompressed bytes, so it also fits the file before its compression. */
async function readCompressed(unit: CodexUnit, after?: Cursor, scratch?: Scratch): Promise<Reading> {
  const { path, problem, remove } = await decompressZstd(unit.path, scratch)
  const damage = problem === undefined ? [] : [{ reason: problem, where: "the file" }]
  if (path === undefined) {
    remove()
    const cursor = after ?? { offset: 0, crc: 0 }
    return { mode: "append", records: [], end: () => ({ cursor, skipped: damage, pending: false }) }
  }
  // a compressed file is final, so its last line is complete, with or without a newline
  const reading = readJsonl(path, after, { strip: stripRecord, now: Number.MAX_SAFE_INTEGER })
  function* recordsThenRemove(): Generator<RawRecord> {
    try {
      yield* reading.records
    } finally {
      remove()
    }
  }
  const end = () => {
    remove()
    const result = reading.end()
    return { ...result, skipped: [...damage, ...result.skipped] }
  }
  return withThread({ mode: reading.mode, records: recordsThenRemove(), end }, unit, after)
}

/** Puts the facts about the thread before its records, unless the cursor shows that they were already read. */
function withThread(reading: Reading, { thread }: CodexUnit, after?: Cursor): Reading {
  const storedFingerprint = reading.mode === "append" ? string(after?.thread) : undefined
  const current = thread ? fingerprint(thread) : storedFingerprint
  function* records(): Generator<RawRecord> {
    if (thread && current !== storedFingerprint) yield thread
    yield* reading.records
  }
  return {
    mode: reading.mode,
    records: records(),
    end: () => {
      const result = reading.end()
      return current === undefined ? result : { ...result, cursor: { ...result.cursor, thread: current } }
    },
  }
}

/** Yields the records of the first releases' format, one JSON object: `{session, items}`. */
function* recordsOfFirstFormat(file: RawRecord): Generator<RawRecord> {
  for (const item of [record(file.session) ?? {}, ...records(file.items)]) {
    const stripped = stripRecord(item)
    if (stripped) yield stripped
  }
}

function fingerprint(thread: ThreadFacts): string {
  return createHash("sha256").update(JSON.stringify(thread)).digest("hex").slice(0, 16)
}

/**
 * Identifies a record without its ordinal: rewriting a file from the older history mode to the newer one adds ordinals, but the
 * records remain the same.
 */
function identify(raw: RawRecord): string {
  if (raw.type === "dex-thread") return raw.type
  return createHash("sha256")
    .update(JSON.stringify({ ...raw, ordinal: undefined }))
    .digest("hex")
}
