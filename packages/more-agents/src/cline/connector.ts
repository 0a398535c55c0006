import { basename, dirname, join } from "node:path"
import {
  type Connector,
  type Cursor,
  type IsUnchanged,
  isUnreadable,
  type Parsed,
  type Reading,
  type Unit,
  type UnitName,
  type Unreadable,
  type Watched,
} from "../../../../src/agents/kit/connector.ts"
import {
  entriesOf,
  fileAt,
  prependFacts,
  type Report,
  readJsonFile,
  textAt,
  type UnitWithFacts,
  unitOfFile,
  unitWithFacts,
  withProblems,
} from "../../../../src/agents/kit/files.ts"
import { cutLongTexts, digestOf } from "../../../../src/agents/kit/messages.ts"
import { withoutUndefined } from "../../../../src/core/defined.ts"
import {
  isRecord,
  parseArray,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
} from "../../../../src/core/record.ts"
import { clineRoots } from "../records.ts"
import { rooCodeConnector } from "../roo-code/connector.ts"
import { parseCline } from "./parse.ts"

/**
 * Reads Cline. Since version 3, it has a folder per session, with one file of messages for the session and one for each
 * subagent. Earlier versions have tasks.
 */
export const clineConnector: Connector = {
  source: "cline",
  version: 1,
  roots: clineRoots,
  discover: (root, isUnchanged) =>
    isTasksRoot(root) ? discoverTasks(root, isUnchanged) : withProblems((report) => discoverSessions(root, report)),
  watched: (root) => (isTasksRoot(root) ? watchedTasks(root) : watchedSessions(root)),
  read: (unit: UnitWithFacts, after) =>
    isTaskUnit(unit) ? readTask(unit, after) : prependFacts(readJsonFile(unit.path, after, recordsIn), unit, after),
  parse: (raw, unit) => (isTaskUnit(unit) ? parseTask(raw, unit) : parseCline(raw, unit)),
  identify: (entry) => {
    if (entry.file !== undefined) return identifyTaskRecord(entry)
    return entry.type === "message" ? string(entry.id) : string(entry.type)
  },
}

function isTasksRoot(root: string): boolean {
  return basename(root) === "tasks"
}

const MESSAGES_SUFFIX = ".messages.json"
const MAX_MANIFEST_BYTES = 16 << 20

function watchedSessions(root: string): Watched[] {
  return [{ folder: root, depth: 1, files: /^[^/]+\/[^/]+\.json$/ }]
}

function* discoverSessions(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const folder of entriesOf(root, report)) {
    if (!folder.isDirectory()) continue
    const manifest = parseObject(
      textAt(join(root, folder.name, `${folder.name}.json`), MAX_MANIFEST_BYTES, report) ?? "",
    )
    for (const { name } of entriesOf(join(root, folder.name), report)) {
      if (!name.endsWith(MESSAGES_SUFFIX)) continue
      const path = join(root, folder.name, name)
      const stat = fileAt(path, report)
      const unit = stat && unitOfFile(path, `${folder.name}/${name.slice(0, -MESSAGES_SUFFIX.length)}`, stat)
      if (unit) yield unitWithFacts(unit, manifest && factsOf(manifest))
    }
  }
}

function factsOf(manifest: RawRecord): RawRecord {
  const metadata = record(manifest.metadata)
  const facts = {
    cwd: string(manifest.cwd),
    title: string(metadata?.title),
    branch: string(record(metadata?.git)?.branch),
    started: string(manifest.started_at),
  }
  return {
    type: "dex-session",
    ...Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)),
  }
}

/** Yields the file's own fields, followed by its messages. Cline's own instructions are omitted. */
function* recordsIn(content: RawRecord): Iterable<RawRecord> {
  const { messages, system_prompt: _, ...file } = content
  yield cutLongTexts({ type: "file", ...file })
  for (const message of records(messages)) yield cutLongTexts({ type: "message", ...stripMessage(message) })
}

function stripMessage(message: RawRecord): RawRecord {
  return Array.isArray(message.content) ? { ...message, content: message.content.map(stripBlock) } : message
}

/** Removes signatures and image bytes. */
function stripBlock(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { signature: _, ...block } = value
  const source = record(block.source)
  const bytes = string(source?.data) ?? (block.type === "image" ? string(block.data) : undefined)
  if (block.type === "image" && bytes !== undefined) {
    const mime = string(source?.media_type) ?? string(block.mediaType)
    return { type: "image", image: digestOf(Buffer.from(bytes, "base64"), mime) }
  }
  return Array.isArray(block.content) ? { ...block, content: block.content.map(stripBlock) } : block
}

// Before version 3, Cline's tasks had the format that its fork Roo Code still uses. Roo Code stores the facts about a task in
// the task's folder; Cline stores them in one list of all tasks.

const MAX_LIST_BYTES = 64 << 20

/** True for a task. Only the key of a session contains a slash: it consists of the names of its folder and its file. */
export function isTaskUnit({ key }: UnitName): boolean {
  return !key.includes("/")
}

function watchedTasks(root: string): Watched[] {
  const list = { folder: join(dirname(root), "state"), depth: 0, files: /^taskHistory\.json$/ }
  return [...rooCodeConnector.watched!(root), list]
}

function* discoverTasks(root: string, isUnchanged: IsUnchanged): Iterable<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const list = textAt(join(dirname(root), "state", "taskHistory.json"), MAX_LIST_BYTES, (one) => problems.push(one))
  const tasks = new Map(records(parseArray(list ?? "[]")).map((task) => [task.id, task]))
  for (const unit of rooCodeConnector.discover(root, isUnchanged)) {
    const task = isUnreadable(unit) ? undefined : tasks.get(unit.key)
    yield task && !isUnreadable(unit) ? unitWithFacts(unit, recordOfTask(task)) : unit
  }
  yield* problems
}

function recordOfTask(task: RawRecord): RawRecord {
  const workspace = string(task.cwdOnTaskInitialization)
  return { file: "history", ...task, ...withoutUndefined({ workspace }) }
}

async function readTask(unit: UnitWithFacts, after?: Cursor): Promise<Reading> {
  return prependFacts(await rooCodeConnector.read(unit, after), unit, after)
}

function parseTask(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  return rooCodeConnector.parse(raw, unit)
}

function identifyTaskRecord(entry: RawRecord): string | undefined {
  return entry.file === "history" ? "history" : rooCodeConnector.identify?.(entry)
}
