import { createHash } from "node:crypto"
import { type Dirent, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { withoutUndefined } from "../../core/defined.ts"
import { messageOf } from "../../core/error.ts"
import { isAbsent, isFolder } from "../../core/look-at.ts"
import { number, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import type { Connector, Cursor, IsUnchanged, Reading, Scratch, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { parseJsonColumns, readDatabaseUnit, taggedRows } from "../kit/database-units.ts"
import { entriesOf, fileAt, readJsonFile, textAt, unitOfFile } from "../kit/files.ts"
import { columnsOf, type ForeignDatabase, withForeignDatabase } from "../kit/foreign-sqlite.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { readZstdLines } from "../kit/zstd.ts"
import { codexRoots } from "../registry.ts"
import { HISTORY_PREFIX, parseRollout, rejoinRollout } from "./parse.ts"
import { stripHistoryRow, stripRecord } from "./strip.ts"

/**
 * Reads the threads of Codex CLI, its IDE extension and its app. Each thread is a rollout file; its name and parent are in a
 * database.
 */
export const codexConnector: Connector = {
  source: "codex",
  version: 7,
  roots: codexRoots,
  discover,
  watched,
  read,
  parse: parseRollout,
  rejoin: rejoinRollout,
  identify,
  tables: ["thread_turns", "thread_items", "thread_history_projection_state", "_sqlx_migrations"],
}

/** The facts that Codex stores outside the rollout. Stored as the first record of the unit. */
export type ThreadFacts = { type: "dex-thread"; name?: string; title?: string; parent?: string }

type CodexUnit = Unit & { thread?: ThreadFacts }

const ROLLOUT = /^(rollout-.+?)\.(jsonl|jsonl\.zst|json)$/
/**
 * The extensions that a thread's file may have, in order of preference. Codex unpacks a resumed thread next to its compressed
 * file.
 */
const EXTENSIONS = ["jsonl", "jsonl.zst", "json"]
const MAX_INDEX_BYTES = 64 << 20
/**
 * The assumed ratio of decompressed to compressed size. Real ratios are between ten and thirty, or higher if the text is
 * repetitive.
 */
const COMPRESSION_RATIO = 30
/** The number of folder levels below `sessions`: YYYY/MM/DD. */
const FOLDER_DEPTH = 3

function watched(root: string): Watched[] {
  return [
    { folder: join(root, "sessions"), depth: FOLDER_DEPTH },
    { folder: join(root, "archived_sessions"), depth: FOLDER_DEPTH },
    { folder: root, depth: 0, files: /^(session_index\.jsonl|(state|thread_history)_\d+\.sqlite(-wal)?)$/ },
  ]
}

function* discover(root: string, _isUnchanged: IsUnchanged, scratch?: Scratch): Iterable<Unit | Unreadable> {
  const threads = new Map<string, ThreadFacts>()
  const problems: Unreadable[] = []
  addIndex(threads, join(root, "session_index.jsonl"), problems)
  addState(threads, root, problems, scratch)

  const rollouts = new Map<string, Rollout>()
  for (const folder of ["sessions", "archived_sessions"]) {
    for (const file of rolloutsIn(join(root, folder), FOLDER_DEPTH, problems)) {
      const earlier = rollouts.get(file.unit.key)
      if (!earlier || isPreferred(file, earlier)) rollouts.set(file.unit.key, file)
    }
  }
  const withRollout = new Set([...rollouts.keys()].map(threadIdOf))
  const units = [...rollouts.values()].map(({ unit }) => unit)
  for (const unit of [...units, ...threadsWithoutRollout(root, withRollout, problems, scratch)]) {
    const thread = threads.get(threadIdOf(unit.key) ?? "")
    yield thread ? { ...unit, thread, stamp: `${unit.stamp}:${fingerprint(thread)}` } : unit
  }
  yield* problems
}

type Rollout = { extension: string; unit: CodexUnit }

function isPreferred(file: Rollout, other: Rollout): boolean {
  const [rank, otherRank] = [EXTENSIONS.indexOf(file.extension), EXTENSIONS.indexOf(other.extension)]
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
    yield {
      extension: name[2]!,
      unit: name[2] === "jsonl.zst" ? { ...unit, bytes: stat.size * COMPRESSION_RATIO } : unit,
    }
  }
}

function leadsToFolder(entry: Dirent, path: string): boolean {
  return entry.isSymbolicLink() ? isFolder(path) : entry.isDirectory()
}

/** Returns the thread's id in `rollout-<time>-<thread>` or, for a reverted thread, `rollout-<time>-<thread>_<rollout>`. */
function threadIdOf(stem: string): string | undefined {
  return /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_[0-9a-f-]+)?$/.exec(stem)?.[1]
}

/**
 * Adds the names in the index that older builds write. These builds append a line for every renaming, so the last line about a
 * thread counts.
 */
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
  const path = newestDatabase(root, "state", problems)
  if (path === undefined) return
  try {
    for (const [id, thread] of withForeignDatabase(path, readThreads, scratch)) {
      threads.set(id, { ...threads.get(id), ...withoutUndefined(thread) })
    }
  } catch (error) {
    problems.push({ unreadable: messageOf(error), path })
  }
}

function newestDatabase(root: string, name: "state" | "thread_history", problems: Unreadable[]): string | undefined {
  const versions = entriesOf(root, (problem) => problems.push(problem)).flatMap((entry) => {
    const [, found, version] = /^(.+)_(\d{1,6})\.sqlite$/.exec(entry.name) ?? []
    return found === name ? [Number(version)] : []
  })
  return versions.length === 0 ? undefined : join(root, `${name}_${Math.max(...versions)}.sqlite`)
}

// Codex also keeps what it shows of its threads in a database, made from the rollouts. It is read only for threads that have no
// rollout, and counts less than a rollout that dex has read before.

/** Yields the threads of the database that have no rollout. Usually there are none, so the sizes of all others are not read. */
function threadsWithoutRollout(
  root: string,
  withRollout: ReadonlySet<string | undefined>,
  problems: Unreadable[],
  scratch?: Scratch,
): CodexUnit[] {
  const path = newestDatabase(root, "thread_history", problems)
  if (path === undefined) return []
  try {
    const { mtimeMs } = statSync(path)
    const stats = withForeignDatabase(
      path,
      (db) => {
        if (!columnsOf(db, "thread_items").has("item_json")) return []
        const ids = db.all("select distinct thread_id as id from thread_items").map(({ id }) => String(id))
        return ids.filter((id) => !withRollout.has(id)).flatMap((id) => db.all(ITEM_STATS, id))
      },
      scratch,
    )
    return stats.map(({ id, count, last, born, modified, bytes }) => ({
      key: `${HISTORY_PREFIX}${id}`,
      path,
      stamp: [count, last, modified, bytes].join(":"),
      bytes: number(bytes) ?? 0,
      modifiedAt: number(modified) ?? mtimeMs,
      bornAt: number(born) ?? mtimeMs,
    }))
  } catch (error) {
    if (!isAbsent(error)) problems.push({ unreadable: messageOf(error), path })
    return []
  }
}

const ITEM_STATS = `select thread_id as id, count(*) as count, max(rollout_ordinal) as last, min(created_at_ms) as born,
  max(created_at_ms) as modified, sum(octet_length(item_json)) as bytes from thread_items where thread_id = ?`

/** Reads the items of a thread, after a header with what the other database says about it. */
function readHistory(unit: CodexUnit, after?: Cursor, scratch?: Scratch): Reading {
  const id = unit.key.slice(HISTORY_PREFIX.length)
  const state = newestDatabase(dirname(unit.path), "state", [])
  const columns = ["cwd", "cli_version", "source", "thread_source", "model", "git_sha", "git_branch", "git_origin_url"]
  const about = (db: ForeignDatabase) => taggedRows(db, "threads", columns, "where id = ?", id)
  const [thread] = state === undefined ? [] : withForeignDatabase(state, about, scratch)
  const header = { type: "dex-history", ...thread, id }
  const itemColumns = ["turn_id", "item_id", "rollout_ordinal", "created_at_ms", "item_json"]
  return readDatabaseUnit(
    unit,
    (db, skip) => [
      ...(unit.thread ? [unit.thread] : []),
      header,
      ...parseJsonColumns(
        taggedRows(db, "thread_items", itemColumns, "where thread_id = ? order by rollout_ordinal", id),
        ["item_json"],
        skip,
      ),
    ],
    stripHistoryRow,
    after,
    scratch,
  )
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
  if (unit.key.startsWith(HISTORY_PREFIX)) return readHistory(unit, after, scratch)
  if (unit.path.endsWith(".zst"))
    return readZstdLines(unit.path, stripRecord, after, scratch).then((reading) => withThread(reading, unit, after))
  if (unit.path.endsWith(".json")) return withThread(readJsonFile(unit.path, after, recordsOfFirstFormat), unit, after)
  return withThread(readJsonl(unit.path, after, { strip: stripRecord }), unit, after)
}

/** Puts the facts about the thread before its records, unless the cursor shows that they were already read. */
function withThread(reading: Reading, { thread }: CodexUnit, after?: Cursor): Reading {
  const storedFingerprint = reading.mode === "append" ? string(after?.thread) : undefined
  const currentFingerprint = thread ? fingerprint(thread) : storedFingerprint
  function* records(): Generator<RawRecord> {
    if (thread && currentFingerprint !== storedFingerprint) yield thread
    yield* reading.records
  }
  return {
    mode: reading.mode,
    records: records(),
    end: () => {
      const result = reading.end()
      return currentFingerprint === undefined
        ? result
        : { ...result, cursor: { ...result.cursor, thread: currentFingerprint } }
    },
  }
}

/** Yields the records of a file from the first releases, which is one JSON object: `{session, items}`. */
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
