import { basename, dirname, join } from "node:path"
import { crc32 } from "node:zlib"
import { readBytes } from "../../core/read-file.ts"
import { type RawRecord, string } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { entriesOf, fileAt, type Report } from "../kit/files.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { cutLongTexts } from "../kit/messages.ts"
import { serverStart, skillFile, type Wiring } from "../kit/wiring.ts"
import { cursorRoots } from "../registry.ts"
import { decodeFolder, discoverCli, readCli } from "./cli.ts"
import { discoverIde, readIde } from "./ide.ts"
import { parseIde } from "./ide-parse.ts"
import { parseTurns, stripTurn } from "./turns.ts"

/**
 * Cursor has three overlapping stores: the editor's databases (the most complete), the command line's, and plain
 * transcripts of both. A conversation has the same id in all of them; authority decides which one is shown.
 */
export const cursorConnector: Connector = {
  source: "cursor",
  version: 3,
  roots: cursorRoots,
  *discover(root, isUnchanged, scratch) {
    yield* discoverIde(root, isUnchanged, scratch)
    yield* discoverTranscripts(root)
    yield* discoverCli(root)
  },
  watched,
  read(unit, after, scratch) {
    if (unit.key.startsWith("ide:")) return readIde(unit, after, scratch)
    return unit.key.startsWith("cli:") ? readCli(unit, after, scratch) : readTranscript(unit, after)
  },
  parse: (records, unit) => (unit.key.startsWith("ide:") ? parseIde(records) : parseTurns(records, unit)),
  identify,
  tables: ["ItemTable", "cursorDiskKV"],
}

function watched(root: string): Watched[] {
  return [
    { folder: join(root, "globalStorage"), depth: 0, files: /^state\.vscdb(-wal)?$/ },
    { folder: join(root, "workspaceStorage"), depth: 1, files: /^[^/]+\/state\.vscdb(-wal)?$/ },
    { folder: join(root, "projects"), depth: Infinity, files: /^[^/]+\/agent-transcripts\// },
    { folder: join(root, "chats"), depth: 2, files: /\/store\.db(-wal)?$/ },
  ]
}

/** Transcript lines have no id and are compared by content. */
function identify(record: RawRecord): string | undefined {
  if (record.type === "dex-file") return "dex-file"
  if (record.type === "composer" || record.type === "bubble") return `${record.type}:${string(record.id)}`
  return string(record.key)
}

/** The largest plain-text transcript that is read, in bytes. */
const MAX_TEXT_BYTES = 64 << 20

/** Finds the transcripts that Cursor's agent writes to `projects/<name of the folder>/agent-transcripts`. */
function* discoverTranscripts(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  const units = new Map<string, Unit>()
  for (const project of entriesOf(join(root, "projects"), report)) {
    if (!project.isDirectory()) continue
    const folder = join(root, "projects", project.name, "agent-transcripts")
    for (const unit of transcriptsIn(folder, undefined, report)) {
      const other = units.get(unit.key)
      if (!other || isBetter(unit, other)) units.set(unit.key, unit)
    }
  }
  yield* units.values()
  yield* problems
}

/** Finds `<id>.jsonl`, `<id>.txt`, or a folder `<id>` with either in it; `subagents` contains those of the session above it. */
function* transcriptsIn(folder: string, session: string | undefined, report: Report): Generator<Unit> {
  for (const entry of entriesOf(folder, report)) {
    const path = join(folder, entry.name)
    const isSubagentFolder = basename(folder) === "subagents"
    if (entry.isDirectory() && !isSubagentFolder) {
      yield* transcriptsIn(path, entry.name === "subagents" ? session : (session ?? entry.name), report)
      continue
    }
    const name = /^(.+)\.(?:jsonl|txt)$/.exec(entry.name)?.[1]
    const file = name === undefined ? undefined : fileAt(path, report)
    if (!file) continue
    yield {
      key: isSubagentFolder && session !== undefined ? `transcript:${session}/${name}` : `transcript:${name}`,
      path,
      stamp: `${file.size}:${file.mtimeMs}`,
      bytes: file.size,
      modifiedAt: file.mtimeMs,
      bornAt: file.birthtimeMs || file.mtimeMs,
    }
  }
}

/** Prefers the newer format, then the newer file. Moving a project, or updating Cursor, leaves the old file behind. */
function isBetter(unit: Unit, other: Unit): boolean {
  const isLines = unit.path.endsWith(".jsonl")
  return isLines === other.path.endsWith(".jsonl") ? unit.modifiedAt > other.modifiedAt : isLines
}

function readTranscript(unit: Unit, after: Cursor | undefined): Reading {
  return unit.path.endsWith(".txt") ? readText(unit, after) : readLines(unit, after)
}

function readLines(unit: Unit, after: Cursor | undefined): Reading {
  const reading = readJsonl(unit.path, after, { strip: stripTurn })
  const isFromStart = !after || reading.mode === "replace"
  return isFromStart ? { ...reading, records: prepended(fileRecord(unit), reading.records) } : reading
}

function* prepended(first: RawRecord, rest: Iterable<RawRecord>): Generator<RawRecord> {
  yield first
  yield* rest
}

/** The facts from the file's location. Excludes the file's times, which can change although the lines do not. */
function fileRecord(unit: Unit): RawRecord {
  const folder = decodeFolder(projectName(unit.path))
  return { type: "dex-file", folder }
}

function projectName(path: string): string {
  let folder = dirname(path)
  while (basename(folder) !== "agent-transcripts" && dirname(folder) !== folder) folder = dirname(folder)
  return basename(dirname(folder))
}

/** Reads the oldest format, plain text, in which a line `user:` or `assistant:` begins a turn. */
function readText(unit: Unit, after: Cursor | undefined): Reading {
  const cursorBefore = after ?? { offset: 0, crc: 0 }
  if (unit.bytes > MAX_TEXT_BYTES) {
    const reason = `file of ${unit.bytes} bytes, over the limit of ${MAX_TEXT_BYTES}`
    return {
      mode: "append",
      records: [],
      end: () => ({ cursor: cursorBefore, skipped: [{ reason, where: "the file" }], pending: false }),
    }
  }
  const content = readBytes(unit.path, MAX_TEXT_BYTES)
  const cursor = { offset: content.length, crc: crc32(content) }
  const isUnchanged = after !== undefined && after.offset === cursor.offset && after.crc === cursor.crc
  const records = isUnchanged ? [] : [fileRecord(unit), ...turnsOf(content.toString("utf8"))]
  return {
    mode: isUnchanged ? "append" : "replace",
    records,
    end: () => ({ cursor, skipped: [], pending: false }),
  }
}

function turnsOf(text: string): RawRecord[] {
  const turns: RawRecord[] = []
  const pieces = text.split(/^(user|assistant):[ \t]*\r?$/m)
  for (let i = 1; i < pieces.length; i += 2) {
    const body = pieces[i + 1]!.trim()
    if (body !== "") turns.push(cutLongTexts({ type: "text-turn", role: pieces[i], text: body }))
  }
  return turns
}

export const cursorWiring: Wiring = {
  signs: ({ home }) => ({ paths: [join(home, ".cursor")], program: "cursor-agent" }),
  files: ({ home }, bin) => [
    {
      path: join(home, ".cursor", "mcp.json"),
      additions: [{ type: "property", path: ["mcpServers", "dex"], value: serverStart(bin) }],
    },
    { path: join(home, ".cursor", "skills", "dex", "SKILL.md"), additions: [skillFile({ subagent: false })] },
  ],
  note: () => "no sub-agent: untested with this program",
}
