import { basename, dirname, join } from "node:path"
import { messageOf } from "../../core/error.ts"
import type { RawRecord } from "../../core/record.ts"
import { parseObject, record, records, string } from "../../core/record.ts"
import { isAbsent, lookAt } from "../../files/look-at.ts"
import { readText } from "../../files/read-file.ts"
import type { Skipped, Unit, Unreadable } from "../kit/connector.ts"
import { entriesOf, fileAt } from "../kit/folder.ts"

/** One message or one part of it. */
const MAX_BYTES = 64 << 20

// OpenCode's JSON trees: storage/ (0.6 to 1.1), and project/<name>/storage/ before it.

/** Every session of both eras, once: 0.6 copied the older tree and left it. */
export function* sessionsOfTrees(root: string, report: (problem: Unreadable) => void): Generator<Unit> {
  const known = new Set<string>()
  for (const tree of treesOf(root, report)) {
    for (const unit of sessionsOfTree(tree, report)) {
      if (known.has(unit.key)) continue
      known.add(unit.key)
      yield unit
    }
  }
}

/** The files of a session in the shape of the rows that they became. */
export function rowsOfTree(unit: Unit, skipped: Skipped[]): RawRecord[] {
  const folder = dirname(unit.path)
  const isOldest = basename(folder) === "info"
  const session = readObject(unit.path, skipped)
  if (!session) return []
  const named = string(session.id)
  const id = named && isPlainName(named) ? named : basename(unit.path, ".json")
  const storage = isOldest ? dirname(folder) : dirname(dirname(folder))
  const report = ({ unreadable, path }: Unreadable) => void skipped.push({ reason: unreadable, where: path })
  const rows: RawRecord[] = [sessionRow(id, session)]
  if (!isOldest && /^\w+$/.test(basename(folder))) {
    const project = readObject(join(storage, "project", `${basename(folder)}.json`), skipped)
    if (project) rows.push({ table: "project", id: project.id, worktree: project.worktree, vcs: project.vcs })
  }
  for (const entry of entriesOf(join(storage, "message", id), report)) {
    if (!isJson(entry.name)) continue
    const data = readObject(join(storage, "message", id, entry.name), skipped)
    if (!data) continue
    const messageId = string(data.id) ?? basename(entry.name, ".json")
    const time = record(data.time) ?? record(record(data.metadata)?.time)
    const { parts: inline, ...rest } = withoutIds(data)
    rows.push({ table: "message", id: messageId, session_id: id, time_created: time?.created, data: rest })
    // before 0.3 the parts were inside the message
    records(inline).forEach((part, index) => {
      rows.push({
        table: "part",
        id: `${messageId}:${String(index).padStart(4, "0")}`,
        message_id: messageId,
        data: part,
      })
    })
    if (!isPlainName(messageId)) continue
    const parts = isOldest ? join(storage, "part", id, messageId) : join(storage, "part", messageId)
    for (const part of entriesOf(parts, report)) {
      if (!isJson(part.name)) continue
      const partData = readObject(join(parts, part.name), skipped)
      if (!partData) continue
      const partId = string(partData.id) ?? basename(part.name, ".json")
      rows.push({ table: "part", id: partId, message_id: messageId, data: withoutIds(partData) })
    }
  }
  return rows
}

/** Where the parts of a JSON era lie. */
type Tree = { sessions: string[]; messages: string; parts: (session: string, message: string) => string }

function* treesOf(root: string, report: (problem: Unreadable) => void): Generator<Tree> {
  const storage = join(root, "storage")
  const projects = entriesOf(join(storage, "session"), report).filter((entry) => entry.isDirectory())
  yield {
    sessions: projects.map((entry) => join(storage, "session", entry.name)),
    messages: join(storage, "message"),
    parts: (_, message) => join(storage, "part", message),
  }
  for (const project of entriesOf(join(root, "project"), report)) {
    if (!project.isDirectory()) continue
    const session = join(root, "project", project.name, "storage", "session")
    yield {
      sessions: [join(session, "info")],
      messages: join(session, "message"),
      parts: (id, message) => join(session, "part", id, message),
    }
  }
}

/** The newest messages are those that change: their parts are rewritten in place, which no folder's time shows. */
const LIVE_MESSAGES = 2
const BYTES_PER_MESSAGE = 4_000

function* sessionsOfTree(tree: Tree, report: (problem: Unreadable) => void): Generator<Unit> {
  for (const folder of tree.sessions) {
    for (const entry of entriesOf(folder, report)) {
      if (!entry.name.endsWith(".json")) continue
      const path = join(folder, entry.name)
      const file = fileAt(path, report)
      if (!file) continue
      const id = basename(entry.name, ".json")
      const messages = entriesOf(join(tree.messages, id), report).filter((message) => isJson(message.name))
      const live = messages.slice(-LIVE_MESSAGES).flatMap((message) => {
        const parts = tree.parts(id, basename(message.name, ".json"))
        const files = entriesOf(parts, report).map((part) => join(parts, part.name))
        return [join(tree.messages, id, message.name), ...files]
      })
      const stats = live.map((live) => lookAt(live)).filter((stat) => stat !== undefined && stat !== "unknown")
      const newest = Math.max(file.mtimeMs, ...stats.map((stat) => stat.mtimeMs))
      const size = stats.reduce((sum, stat) => sum + stat.size, file.size)
      yield {
        key: `json:${id}`,
        path,
        stamp: `${size}:${newest}:${messages.length}:${stats.length}`,
        bytes: size + messages.length * BYTES_PER_MESSAGE,
        modifiedAt: newest,
        bornAt: file.birthtimeMs || file.mtimeMs,
      }
    }
  }
}

function sessionRow(id: string, session: RawRecord): RawRecord {
  const time = record(session.time)
  return {
    table: "session",
    id,
    project_id: session.projectID,
    parent_id: session.parentID,
    directory: session.directory,
    title: session.title,
    version: session.version,
    revert: session.revert,
    time_created: time?.created,
    time_updated: time?.updated,
  }
}

function withoutIds({ id: _, sessionID: __, messageID: ___, ...rest }: RawRecord): RawRecord {
  return rest
}

function readObject(path: string, skipped: Skipped[]): RawRecord | undefined {
  let text: string
  try {
    text = readText(path, MAX_BYTES, { follow: false })
  } catch (error) {
    if (!isAbsent(error)) skipped.push({ reason: messageOf(error), where: path })
    return undefined
  }
  const value = parseObject(text)
  if (!value) skipped.push({ reason: "damaged JSON", where: path })
  return value
}

/** A name from inside a file is used in a path only when it cannot lead out of the folder. */
function isPlainName(name: string): boolean {
  return /^[\w-]+$/.test(name)
}

function isJson(name: string): boolean {
  return name.endsWith(".json") && !name.startsWith(".")
}
