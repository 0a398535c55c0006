import { basename, dirname, join } from "node:path"
import { crc32 } from "node:zlib"
import { readBytes } from "../../core/read-file.ts"
import { type RawRecord, string } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { entriesOf, fileAt, type Report } from "../kit/files.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { cutLongTexts } from "../kit/messages.ts"
import {
  HOOK_TIMEOUT_S,
  type HookEvent,
  hookCommands,
  hookTimeout,
  NO_SUBAGENT,
  openSkill,
  serverStart,
  type Wiring,
} from "../kit/wiring.ts"
import { cursorRoots } from "../registry.ts"
import { decodeFolder, discoverCli, readCli } from "./cli.ts"
import { discoverIde, readIde } from "./ide.ts"
import { parseIde } from "./ide-parse.ts"
import { parseTurns, stripTurn } from "./turns.ts"

/**
 * Reads Cursor's three overlapping stores: the editor's databases, which are the most complete, the command line's databases, and
 * plain transcripts of both. A conversation has the same id in all of them; `authority` decides which copy is shown.
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

/** The size of the largest plain-text transcript that dex reads, in bytes. */
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
      if (!other || isPreferred(unit, other)) units.set(unit.key, unit)
    }
  }
  yield* units.values()
  yield* problems
}

/** Finds `<id>.jsonl` and `<id>.txt`, also inside a folder `<id>`, whose folder `subagents` has the session's subagents. */
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
function isPreferred(unit: Unit, other: Unit): boolean {
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

/** Returns the project folder, which the file's location shows. Excludes the file's times, which can change when no line does. */
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

/** The hooks whose output Cursor's documents say is added for the model. They were not tried with the program. */
export const CURSOR_HOOKS: readonly HookEvent[] = [
  { event: "sessionStart" },
  { event: "postToolUse", tools: "Read|Shell" },
]

export const cursorWiring: Wiring = {
  signs: ({ home }) => ({ paths: [join(home, ".cursor")], program: "cursor-agent" }),
  formerFiles: ({ home }) => [join(home, ".cursor", "skills", "dex", "SKILL.md")],
  files: (machine, bin) => [
    {
      path: join(machine.home, ".cursor", "mcp.json"),
      additions: [{ type: "property", path: ["mcpServers", "dex"], value: serverStart(bin) }],
    },
    ...(bin.hook === undefined
      ? []
      : [
          {
            path: join(machine.home, ".cursor", "hooks.json"),
            additions: [
              { type: "property" as const, path: ["version"], value: 1 },
              ...hookCommands("cursor", CURSOR_HOOKS, bin, "any shell").map(({ event, tools, start }) => ({
                type: "item" as const,
                path: ["hooks", event],
                value: {
                  command: start.command,
                  matcher: tools,
                  timeout: hookTimeout(HOOK_TIMEOUT_S, bin, "any shell"),
                },
              })),
            ],
          },
        ]),
    openSkill(machine),
  ],
  note: () => `the hooks follow Cursor's documents and were not tried; ${NO_SUBAGENT}`,
}
