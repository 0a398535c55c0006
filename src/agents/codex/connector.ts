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

/** Codex CLI, its IDE extension and its app: one rollout file per thread; names and lineage are in a database. */
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
const PREFERENCE = ["jsonl", "jsonl.zst", "json"]
const MAX_INDEX_BYTES = 64 << 20
/** The factor by which a compressed rollout grows when it is read: ten to thirty, or more if the text is repetitive. */
const PACKED = 30
/** the levels of sessions/YYYY/MM/DD */
const MAX_FOLDERS = 3

function watched(root: string): Watched[] {
  return [
    { folder: join(root, "sessions"), depth: MAX_FOLDERS },
    { folder: join(root, "archived_sessions"), depth: MAX_FOLDERS },
    { folder: root, depth: 0, files: /^(session_index\.jsonl|state_\d+\.sqlite(-wal)?)$/ },
  ]
}

function* discover(root: string, _seen: IsUnchanged, scratch?: Scratch): Iterable<Unit | Unreadable> {
  const threads = new Map<string, ThreadFacts>()
  const problems: Unreadable[] = []
  addIndex(threads, join(root, "session_index.jsonl"), problems)
  addState(threads, root, problems, scratch)

  const found = new Map<string, { kind: string; unit: CodexUnit }>()
  for (const folder of ["sessions", "archived_sessions"]) {
    for (const file of rolloutsIn(join(root, folder), MAX_FOLDERS, problems)) {
      const known = found.get(file.unit.key)
      if (!known || isBetter(file, known)) found.set(file.unit.key, file)
    }
  }
  yield* problems
  for (const { unit } of found.values()) {
    const thread = threads.get(threadOf(unit.key) ?? "")
    yield thread ? { ...unit, thread, stamp: `${unit.stamp}:${fingerprint(thread)}` } : unit
  }
}

type Rollout = { kind: string; unit: CodexUnit }

function isBetter(file: Rollout, than: Rollout): boolean {
  const [mine, theirs] = [PREFERENCE.indexOf(file.kind), PREFERENCE.indexOf(than.kind)]
  return mine === theirs ? file.unit.modifiedAt > than.unit.modifiedAt : mine < theirs
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
    yield { kind: name[2]!, unit: name[2] === "jsonl.zst" ? { ...unit, bytes: stat.size * PACKED } : unit }
  }
}

function leadsToFolder(entry: Dirent, path: string): boolean {
  return entry.isSymbolicLink() ? isFolder(path) : entry.isDirectory()
}

/** Parses `rollout-<time>-<thread>` or, for a reverted thread, `rollout-<time>-<thread>_<rollout>`. */
function threadOf(stem: string): string | undefined {
  return /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_[0-9a-f-]+)?$/.exec(stem)?.[1]
}

/** Older builds append a line at every renaming, so the last line about a thread wins. */
function addIndex(threads: Map<string, ThreadFacts>, path: string, problems: Unreadable[]): void {
  const text = textAt(path, MAX_INDEX_BYTES, (problem) => problems.push(problem))
  for (const line of text?.split("\n") ?? []) {
    const entry = parseObject(line)
    const id = string(entry?.id)
    const name = string(entry?.thread_name)
    if (id && name) threads.set(id, { type: "dex-thread", name })
  }
}

/** Reads `state_<N>.sqlite`: the number rises with the schema, and the older files remain. */
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
  const has = columnsOf(db, "threads")
  if (has.has("id")) {
    const columns = ["id", "name", "title", "first_user_message", "preview"].filter((column) => has.has(column))
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

/** The cursor counts decompressed bytes, so reading continues where it stopped in the uncompressed file. */
async function readCompressed(unit: CodexUnit, after?: Cursor, scratch?: Scratch): Promise<Reading> {
  const { path, problem, remove } = await decompressZstd(unit.path, scratch)
  const damage = problem === undefined ? [] : [{ reason: problem, where: "the file" }]
  if (path === undefined) {
    remove()
    const cursor = after ?? { offset: 0, crc: 0 }
    return { mode: "append", records: [], end: () => ({ cursor, skipped: damage, pending: false }) }
  }
  // a compressed file is final, so its last line is complete, with or without a newline
  const inner = readJsonl(path, after, { strip: stripRecord, now: Number.MAX_SAFE_INTEGER })
  function* untilRemoved(): Generator<RawRecord> {
    try {
      yield* inner.records
    } finally {
      remove()
    }
  }
  const end = () => {
    remove()
    const ended = inner.end()
    return { ...ended, skipped: [...damage, ...ended.skipped] }
  }
  return withThread({ mode: inner.mode, records: untilRemoved(), end }, unit, after)
}

/** Puts the facts about the thread before its records, unless the cursor shows that they were already read. */
function withThread(reading: Reading, { thread }: CodexUnit, after?: Cursor): Reading {
  const known = reading.mode === "append" ? string(after?.thread) : undefined
  const now = thread ? fingerprint(thread) : known
  function* records(): Generator<RawRecord> {
    if (thread && now !== known) yield thread
    yield* reading.records
  }
  return {
    mode: reading.mode,
    records: records(),
    end: () => {
      const ended = reading.end()
      return now === undefined ? ended : { ...ended, cursor: { ...ended.cursor, thread: now } }
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
