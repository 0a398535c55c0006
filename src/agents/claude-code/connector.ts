import { closeSync, lstatSync, readSync } from "node:fs"
import { basename, dirname, join, sep } from "node:path"
import { messageOf } from "../../core/error.ts"
import { isAbsent } from "../../core/look-at.ts"
import { openFile, readBytes, readStart } from "../../core/read-file.ts"
import { array, isRecord, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Skipped, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { entriesOf, fileAt, type Report, unitOfFile } from "../kit/files.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { COWORK_FOLDER, claudeCodeRoots } from "../registry.ts"
import { contentText } from "./content.ts"
import { parseHistory, parseTranscript, promptConversationId, stripPrompt } from "./parse.ts"
import { isWantedLine, parseLine, stripClaudeCodeRecord } from "./strip.ts"

export const claudeCodeConnector: Connector = {
  source: "claude_code",
  version: 6,
  roots: claudeCodeRoots,
  discover,
  watched,
  read,
  parse: (records, unit) => (isHistory(unit.key) ? parseHistory(records) : parseTranscript(records, unit)),
  conversationOf: (key) => (isHistory(key) ? promptConversationId : undefined),
  // There is no `identify`: either of two records with the same uuid may be the damaged one, so records are compared by content.
}

const COWORK_DEPTH = 5

function* discover(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => problems.push(problem)
  if (basename(root) === COWORK_FOLDER) yield* discoverCowork(root, COWORK_DEPTH, report)
  else {
    yield* discoverProjects(join(root, "projects"), report)
    const log = unitAt(join(root, "history.jsonl"), `${basename(root)}/history.jsonl`, report)
    if (log) yield log
  }
  yield* problems
}

function watched(root: string): Watched[] {
  if (basename(root) === COWORK_FOLDER) return [{ folder: root, depth: Infinity, files: /(^|\/)\.claude\/projects\// }]
  return [
    { folder: join(root, "projects"), depth: Infinity, files: /\.jsonl$/ },
    { folder: root, depth: 0, files: /^history\.jsonl$/ },
  ]
}

function* discoverCowork(dir: string, levels: number, report: Report): Generator<Unit> {
  for (const entry of entriesOf(dir, report)) {
    if (!entry.isDirectory()) continue
    const path = join(dir, entry.name)
    if (entry.name === ".claude") yield* discoverProjects(join(path, "projects"), report)
    else if (levels > 1) yield* discoverCowork(path, levels - 1, report)
  }
}

function* discoverProjects(projects: string, report: Report): Generator<Unit> {
  for (const project of entriesOf(projects, report)) {
    if (!project.isDirectory()) continue
    const dir = join(projects, project.name)
    for (const entry of entriesOf(dir, report)) {
      // `join` is avoided because, for ten thousand transcripts, it takes as long as reading their sizes.
      const path = dir + sep + entry.name
      if (entry.isDirectory())
        yield* discoverSubagents(join(path, "subagents"), `${project.name}/${entry.name}`, report)
      else if (entry.name.endsWith(".jsonl")) yield* transcriptAt(path, `${project.name}/${entry.name}`, report)
    }
  }
}

/**
 * Finds the transcripts of subagents. Workflows store theirs in deeper folders, next to a `journal.jsonl`, which is not a
 * transcript.
 */
function* discoverSubagents(dir: string, session: string, report: Report, folder = "subagents"): Generator<Unit> {
  for (const entry of entriesOf(dir, report)) {
    const path = join(dir, entry.name)
    const key = `${session}/${folder}/${entry.name}`
    if (entry.isDirectory()) yield* discoverSubagents(path, session, report, `${folder}/${entry.name}`)
    else if (isSubagentFile(path) && path.endsWith(".jsonl")) yield* transcriptAt(path, key, report)
  }
}

function* transcriptAt(path: string, key: string, report: Report): Generator<Unit> {
  const unit = unitAt(path, key, report)
  if (unit) yield unit
}

function unitAt(path: string, key: string, report: Report): Unit | undefined {
  const file = fileAt(path, report)
  return file && unitOfFile(path, key, file)
}

function isHistory(key: string): boolean {
  return key.endsWith("/history.jsonl")
}

function read(unit: Unit, after?: Cursor): Reading {
  if (isHistory(unit.key)) return readJsonl(unit.path, after, { strip: stripPrompt })
  const reading = readJsonl(unit.path, after, {
    strip: stripClaudeCodeRecord,
    isWanted: isWantedLine,
    parse: parseLine,
  })
  const isSubagent = isSubagentFile(unit.path)
  let linked = reading.mode === "append" && after?.linked === true
  const isFirst = after === undefined || reading.mode === "replace"
  const sidecarSkipped: Skipped[] = []

  function* allRecords(): Generator<RawRecord> {
    // Every read looks up the facts until the call that started the subagent is known, but only the first reports an error.
    const facts =
      isSubagent && !linked
        ? subagentRecord(unit.path, (problem) => isFirst && sidecarSkipped.push(problem))
        : undefined
    linked ||= facts?.toolUseId !== undefined
    if (facts && (isFirst || linked)) yield facts
    for (const record of reading.records) {
      yield record
      yield* spilledOutputs(record, unit.path, (problem) => sidecarSkipped.push(problem))
    }
  }

  return {
    mode: reading.mode,
    records: allRecords(),
    end: () => {
      const { cursor, skipped, pending } = reading.end()
      return { cursor: isSubagent ? { ...cursor, linked } : cursor, skipped: [...skipped, ...sidecarSkipped], pending }
    },
  }
}

/**
 * Claude Code stores an output that is too large for the transcript in a separate file. dex reads at most this many bytes of it
 * and stores them as a record, so that parsing needs no files.
 */
const MAX_OUTPUT_BYTES = 1_000_000
const PREVIEW_TAG = "<persisted-output>"

/** Reads the saved outputs to which a record refers. Looks for them only in the session's own folder. */
function spilledOutputs(raw: RawRecord, transcript: string, skip: (skipped: Skipped) => void): RawRecord[] {
  if (raw.type !== "user" && raw.type !== "progress") return []
  const userRecord = raw.type === "user" ? raw : record(record(raw.data)?.message)
  const blocks = array(record(userRecord?.message)?.content)
  const spilled: RawRecord[] = []
  for (const block of blocks) {
    if (!isRecord(block) || block.type !== "tool_result") continue
    const text = contentText(block.content)
    const savedPath = blocks.length === 1 ? string(record(userRecord?.toolUseResult)?.persistedOutputPath) : undefined
    const path = savedPath ?? (text.startsWith(PREVIEW_TAG) ? pathIn(text) : undefined)
    const id = string(block.tool_use_id)
    if (path === undefined || id === undefined) continue
    const output = readOutput(outputFolder(transcript), path.split(/[\\/]/).at(-1)!, skip)
    if (output) spilled.push({ type: "dex-spilled", tool_use_id: id, ...output })
  }
  return spilled
}

function pathIn(preview: string): string | undefined {
  return /saved to:? ?([^\n]{1,4096})/.exec(preview.slice(0, 8192))?.[1]?.trim()
}

function outputFolder(transcript: string): string {
  const subagentsAt = isSubagentFile(transcript) ? transcript.lastIndexOf("subagents") : -1
  const session =
    subagentsAt === -1 ? transcript.replace(/\.jsonl$/, "") : dirname(transcript.slice(0, subagentsAt + 1))
  return join(session, "tool-results")
}

/** Reads an output. The path in a record is untrusted: only its last segment is used, and links are not followed. */
function readOutput(
  folder: string,
  name: string,
  skip: (skipped: Skipped) => void,
): { name: string; bytes: number; content: string } | undefined {
  if (name === "" || name === "." || name === "..") return undefined
  try {
    if (!lstatSync(folder).isDirectory()) return undefined
    const { fd, stat } = openFile(join(folder, name), { follow: false })
    try {
      const buffer = Buffer.alloc(Math.min(stat.size, MAX_OUTPUT_BYTES))
      const bytesRead = readSync(fd, buffer, 0, buffer.length, 0)
      if (buffer.subarray(0, bytesRead).includes(0)) return undefined // a binary file
      const content = buffer.toString("utf8", 0, bytesRead)
      const omitted = stat.size - bytesRead
      return { name, bytes: stat.size, content: omitted > 0 ? `${content}\n[dex: ${omitted} bytes not kept]` : content }
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (!isAbsent(error)) skip({ reason: `a saved output: ${messageOf(error)}`, where: join(folder, name) })
    return undefined // the message then shows the preview instead of the output
  }
}

const MAX_META_BYTES = 64 << 10
const MAX_PARENT_BYTES = 256 << 20
const MAX_START_BYTES = 64 << 10

function isSubagentFile(path: string): boolean {
  return basename(path).startsWith("agent-")
}

/**
 * Returns the facts about a subagent that are outside its transcript, as a record: its `.meta.json`, and the parent's call that
 * started it, which older builds record only in the parent's transcript. Returns undefined if neither exists.
 */
function subagentRecord(path: string, skip: (skipped: Skipped) => void): RawRecord | undefined {
  const metaPath = path.replace(/\.jsonl$/, ".meta.json")
  const meta = contentOf(metaPath, MAX_META_BYTES, (why) => skip({ reason: `a .meta.json: ${why}`, where: metaPath }))
  const fields = meta && parseObject(meta.toString("utf8"))
  const toolUseId = string(fields?.toolUseId) ?? callIdInParent(path)
  if (!fields && toolUseId === undefined) return undefined
  const { agentType, description, spawnDepth } = fields ?? {}
  return { type: "dex-subagent", agentType, description, spawnDepth, toolUseId }
}

function callIdInParent(path: string): string | undefined {
  const parent = parentOf(path)
  const content = parent === undefined ? undefined : contentOf(parent, MAX_PARENT_BYTES)
  if (!content) return undefined
  const id = basename(path).replace(/^agent-|\.jsonl$/g, "")
  const needle = `"agentId":${JSON.stringify(id)}`
  for (let position = content.indexOf(needle); position !== -1; position = content.indexOf(needle, position)) {
    const lineStart = content.lastIndexOf(10, position) + 1
    const newline = content.indexOf(10, position)
    const lineEnd = newline === -1 ? content.length : newline
    const call = callIdIn(parseObject(content.toString("utf8", lineStart, lineEnd)), id)
    if (call !== undefined) return call
    position = lineEnd
  }
  return undefined
}

function callIdIn(raw: RawRecord | undefined, id: string): string | undefined {
  if (record(raw?.data)?.agentId === id) return string(raw?.parentToolUseID)
  if (record(raw?.toolUseResult)?.agentId !== id) return undefined
  return records(record(raw?.message)?.content)
    .map((block) => string(block.tool_use_id))
    .find((call) => call !== undefined)
}

/**
 * Finds the parent's transcript, which is next to the session's folder. Older subagent files are next to the parent's transcript,
 * and name its session in their records.
 */
function parentOf(path: string): string | undefined {
  const segments = path.split(/[\\/]/)
  const subagentsAt = segments.lastIndexOf("subagents")
  if (subagentsAt > 0) return `${path.slice(0, segments.slice(0, subagentsAt).join("/").length)}.jsonl`
  const beginning = startOf(path)
  const sessionIds = [...beginning.matchAll(/"sessionId": ?"([\w-]{1,100})"/g)].map((match) => match[1]!)
  const parent = sessionIds.find((id) => !id.startsWith("agent-"))
  return parent && join(dirname(path), `${parent}.jsonl`)
}

function startOf(path: string): string {
  try {
    return readStart(path, MAX_START_BYTES).toString("latin1")
  } catch {
    return "" // the error is reported when the transcript itself is read
  }
}

/** Reads a file. Returns undefined if it is missing or unreadable, and calls `skip` for an unreadable one. */
function contentOf(path: string, maxBytes: number, skip = (_why: string) => {}): Buffer | undefined {
  try {
    return readBytes(path, maxBytes)
  } catch (error) {
    if (!isAbsent(error)) skip(messageOf(error))
    return undefined
  }
}
