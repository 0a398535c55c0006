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
import { parseHistory, parseTranscript, promptOwner, stripPrompt } from "./parse.ts"
import { isWantedLine, parseLine, stripClaudeCodeRecord } from "./strip.ts"

export const claudeCodeConnector: Connector = {
  source: "claude_code",
  version: 5,
  roots: claudeCodeRoots,
  discover,
  watched,
  read,
  parse: (records, unit) => (isHistory(unit.key) ? parseHistory(records) : parseTranscript(records, unit)),
  conversationOf: (key) => (isHistory(key) ? promptOwner : undefined),
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
      // Does not use `join`, which takes as long for ten thousand transcripts as reading their sizes.
      const path = dir + sep + entry.name
      if (entry.isDirectory())
        yield* discoverSubagents(join(path, "subagents"), `${project.name}/${entry.name}`, report)
      else if (entry.name.endsWith(".jsonl")) yield* transcriptAt(path, `${project.name}/${entry.name}`, report)
    }
  }
}

/** Workflows nest their agents deeper; their `journal.jsonl` is not a transcript. */
function* discoverSubagents(dir: string, session: string, report: Report, below = "subagents"): Generator<Unit> {
  for (const entry of entriesOf(dir, report)) {
    const path = join(dir, entry.name)
    const key = `${session}/${below}/${entry.name}`
    if (entry.isDirectory()) yield* discoverSubagents(path, session, report, `${below}/${entry.name}`)
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
  const reading = readJsonl(unit.path, after, { strip: stripClaudeCodeRecord, wanted: isWantedLine, parse: parseLine })
  const isChild = isSubagentFile(unit.path)
  let linked = reading.mode === "append" && after?.linked === true
  const isFirst = after === undefined || reading.mode === "replace"
  const sidecarSkipped: Skipped[] = []

  function* withSidecars(): Generator<RawRecord> {
    // The facts are looked up at every read until the call is known. A read error is reported only once.
    const facts =
      isChild && !linked ? subagentRecord(unit.path, (one) => isFirst && sidecarSkipped.push(one)) : undefined
    linked ||= facts?.toolUseId !== undefined
    if (facts && (isFirst || linked)) yield facts
    for (const record of reading.records) {
      yield record
      yield* spilledOutputs(record, unit.path, (one) => sidecarSkipped.push(one))
    }
  }

  return {
    mode: reading.mode,
    records: withSidecars(),
    end: () => {
      const { cursor, skipped, pending } = reading.end()
      return { cursor: isChild ? { ...cursor, linked } : cursor, skipped: [...skipped, ...sidecarSkipped], pending }
    },
  }
}

// The most bytes of an output that is too large for the transcript and stored in a separate file. Such outputs are stored as
// records, so that parsing needs no files.

const MAX_BYTES = 1_000_000
const PREVIEW = "<persisted-output>"

/** Reads the outputs that a record refers to, only from the session's own folder. */
function spilledOutputs(raw: RawRecord, transcript: string, skip: (skipped: Skipped) => void): RawRecord[] {
  if (raw.type !== "user" && raw.type !== "progress") return []
  const carried = raw.type === "user" ? raw : record(record(raw.data)?.message)
  const blocks = array(record(carried?.message)?.content)
  const spilled: RawRecord[] = []
  for (const block of blocks) {
    if (!isRecord(block) || block.type !== "tool_result") continue
    const text = contentText(block.content)
    const saved = blocks.length === 1 ? string(record(carried?.toolUseResult)?.persistedOutputPath) : undefined
    const path = saved ?? (text.startsWith(PREVIEW) ? pathIn(text) : undefined)
    const id = string(block.tool_use_id)
    if (path === undefined || id === undefined) continue
    const output = readOutput(folderOf(transcript), path.split(/[\\/]/).at(-1)!, skip)
    if (output) spilled.push({ type: "dex-spilled", tool_use_id: id, ...output })
  }
  return spilled
}

function pathIn(preview: string): string | undefined {
  return /saved to:? ?([^\n]{1,4096})/.exec(preview.slice(0, 8192))?.[1]?.trim()
}

function folderOf(transcript: string): string {
  const below = isSubagentFile(transcript) ? transcript.lastIndexOf("subagents") : -1
  const session = below === -1 ? transcript.replace(/\.jsonl$/, "") : dirname(transcript.slice(0, below + 1))
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
      const buffer = Buffer.alloc(Math.min(stat.size, MAX_BYTES))
      const got = readSync(fd, buffer, 0, buffer.length, 0)
      if (buffer.subarray(0, got).includes(0)) return undefined // not text
      const content = buffer.toString("utf8", 0, got)
      const omitted = stat.size - got
      return { name, bytes: stat.size, content: omitted > 0 ? `${content}\n[dex: ${omitted} bytes not kept]` : content }
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (!isAbsent(error)) skip({ reason: `a saved output: ${messageOf(error)}`, where: join(folder, name) })
    return undefined // the preview remains
  }
}

const MAX_META_BYTES = 64 << 10
const MAX_PARENT_BYTES = 256 << 20
const MAX_HEAD = 64 << 10

function isSubagentFile(path: string): boolean {
  return basename(path).startsWith("agent-")
}

/**
 * Returns the facts about a subagent from outside its transcript, as a record: its `.meta.json`, and the parent's call that
 * started it, which older builds record only in the parent's transcript. Undefined if there is neither.
 */
function subagentRecord(path: string, skip: (skipped: Skipped) => void): RawRecord | undefined {
  const metaPath = path.replace(/\.jsonl$/, ".meta.json")
  const meta = contentOf(metaPath, MAX_META_BYTES, (why) => skip({ reason: `a .meta.json: ${why}`, where: metaPath }))
  const fields = meta && parseObject(meta.toString("utf8"))
  const toolUseId = string(fields?.toolUseId) ?? callInParent(path)
  if (!fields && toolUseId === undefined) return undefined
  const { agentType, description, spawnDepth } = fields ?? {}
  return { type: "dex-subagent", agentType, description, spawnDepth, toolUseId }
}

function callInParent(path: string): string | undefined {
  const parent = parentOf(path)
  const content = parent === undefined ? undefined : contentOf(parent, MAX_PARENT_BYTES)
  if (!content) return undefined
  const id = basename(path).replace(/^agent-|\.jsonl$/g, "")
  const needle = `"agentId":${JSON.stringify(id)}`
  for (let at = content.indexOf(needle); at !== -1; at = content.indexOf(needle, at)) {
    const from = content.lastIndexOf(10, at) + 1
    const end = content.indexOf(10, at)
    const to = end === -1 ? content.length : end
    const call = callIn(parseObject(content.toString("utf8", from, to)), id)
    if (call !== undefined) return call
    at = to
  }
  return undefined
}

function callIn(raw: RawRecord | undefined, id: string): string | undefined {
  if (record(raw?.data)?.agentId === id) return string(raw?.parentToolUseID)
  if (record(raw?.toolUseResult)?.agentId !== id) return undefined
  return records(record(raw?.message)?.content)
    .map((block) => string(block.tool_use_id))
    .find((call) => call !== undefined)
}

/** Finds the session's transcript: next to its folder or, for the older sibling files, named in their records. */
function parentOf(path: string): string | undefined {
  const steps = path.split(/[\\/]/)
  const below = steps.lastIndexOf("subagents")
  if (below > 0) return `${path.slice(0, steps.slice(0, below).join("/").length)}.jsonl`
  const head = startOf(path)
  const session = [...head.matchAll(/"sessionId": ?"([\w-]{1,100})"/g)].map((match) => match[1]!)
  const parent = session.find((id) => !id.startsWith("agent-"))
  return parent && join(dirname(path), `${parent}.jsonl`)
}

function startOf(path: string): string {
  try {
    return readStart(path, MAX_HEAD).toString("latin1")
  } catch {
    return "" // reading the transcript itself reports the error
  }
}

/** Returns undefined if the file is missing or unreadable. */
function contentOf(path: string, maxBytes: number, skip = (_why: string) => {}): Buffer | undefined {
  try {
    return readBytes(path, maxBytes)
  } catch (error) {
    if (!isAbsent(error)) skip(messageOf(error))
    return undefined
  }
}
