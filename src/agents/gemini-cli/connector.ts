import { createHash } from "node:crypto"
import type { Dirent } from "node:fs"
import { join } from "node:path"
import { isFolder } from "../../core/look-at.ts"
import { isModelRunFolder } from "../../core/model-run.ts"
import { isRecord, parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import type { Connector, Cursor, Reading, Unit, Unreadable, Watched } from "../kit/connector.ts"
import { entriesOf, fileAt, type Report, readJsonFile, textAt, unitOfFile } from "../kit/files.ts"
import { readJsonl } from "../kit/jsonl.ts"
import { cutLongTexts, digestOf } from "../kit/messages.ts"
import { geminiCliRoots } from "../registry.ts"
import { parseGemini } from "./parse.ts"

/**
 * Reads Gemini CLI's sessions, one file each, in a folder per project. The file is a log of patches, or before 0.40 a JSON
 * object.
 */
export const geminiCliConnector: Connector = {
  source: "gemini_cli",
  version: 3,
  roots: geminiCliRoots,
  discover,
  watched,
  read,
  parse: parseGemini,
  identify,
}

type GeminiUnit = Unit & { project?: string }

const MAX_PROJECTS_BYTES = 16 << 20
const MAX_ROOT_BYTES = 64 << 10
const SESSION_FILE = /^session-.+\.jsonl?$/
const UNREADABLE_FILE = /^session-.+\.unreadable-/

function watched(root: string): Watched[] {
  return [
    { folder: join(root, "tmp"), depth: 3, files: /^[^/]+\/(chats\/|\.project_root$)/ },
    { folder: root, depth: 0, files: /^projects\.json$/ },
  ]
}

function* discover(root: string): Iterable<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report: Report = (problem) => problems.push(problem)
  const projects = projectsOf(root, report)
  const tmp = join(root, "tmp")
  for (const folder of entriesOf(tmp, report)) {
    const chats = join(tmp, folder.name, "chats")
    const project = projectRoot(join(tmp, folder.name, ".project_root"), report) ?? projects.get(folder.name)
    // Skip the sessions in which dex used Gemini CLI as a model.
    if (project !== undefined && isModelRunFolder(project)) continue
    for (const entry of entriesOf(chats, report)) {
      const path = join(chats, entry.name)
      const key = `${folder.name}/chats/${entry.name}`
      if (UNREADABLE_FILE.test(entry.name))
        report({ unreadable: "set aside by Gemini CLI, which could not read it", path })
      else if (SESSION_FILE.test(entry.name)) yield* unitOf(path, key, project, report)
      else if (leadsToFolder(entry, path)) {
        for (const nested of entriesOf(path, report)) {
          if (!nested.name.endsWith(".jsonl")) continue
          yield* unitOf(join(path, nested.name), `${key}/${nested.name}`, project, report)
        }
      }
    }
  }
  yield* problems
}

function* unitOf(path: string, key: string, project: string | undefined, report: Report): Iterable<GeminiUnit> {
  const stat = fileAt(path, report)
  if (!stat) return
  const unit = unitOfFile(path, key, stat)
  yield project === undefined ? unit : { ...unit, stamp: `${unit.stamp}:${fingerprint(project)}`, project }
}

function leadsToFolder(entry: Dirent, path: string): boolean {
  return entry.isSymbolicLink() ? isFolder(path) : entry.isDirectory()
}

/**
 * Maps the name of a project's folder below tmp to the project's root. In older versions, the name is the hash of the root; in
 * newer versions, it is a short name.
 */
function projectsOf(root: string, report: Report): Map<string, string> {
  const text = textAt(join(root, "projects.json"), MAX_PROJECTS_BYTES, report)
  const slugs = record(parseObject(text ?? "")?.projects) ?? {}
  return new Map(
    Object.entries(slugs).flatMap(([path, slug]): [string, string][] => [
      [createHash("sha256").update(path).digest("hex"), path],
      ...(typeof slug === "string" ? ([[slug, path]] as [string, string][]) : []),
    ]),
  )
}

function projectRoot(path: string, report: Report): string | undefined {
  return string(textAt(path, MAX_ROOT_BYTES, report)?.trim())
}

function read(unit: GeminiUnit, after?: Cursor): Reading {
  const reading = unit.path.endsWith(".json")
    ? readJsonFile(unit.path, after, recordsOfFile)
    : readJsonl(unit.path, after, { strip: stripRecord })
  return withProject(reading, unit.project, after)
}

/** Adds the session's id to each message, because messages that a rewritten file no longer has are parsed without its header. */
function* recordsOfFile(file: RawRecord): Generator<RawRecord> {
  const { messages, ...header } = file
  yield stripRecord(header)
  for (const message of records(messages)) yield stripRecord({ ...message, dex_session: file.sessionId })
}

/** Puts the project's root before the records, unless the cursor shows that it was already read. */
function withProject(reading: Reading, project: string | undefined, after?: Cursor): Reading {
  const storedFingerprint = reading.mode === "append" ? string(after?.project) : undefined
  const currentFingerprint = project === undefined ? storedFingerprint : fingerprint(project)
  function* allRecords(): Generator<RawRecord> {
    if (currentFingerprint !== storedFingerprint) yield { type: "dex-project", root: project }
    yield* reading.records
  }
  return {
    mode: reading.mode,
    records: allRecords(),
    end: () => {
      const result = reading.end()
      return currentFingerprint === undefined
        ? result
        : { ...result, cursor: { ...result.cursor, project: currentFingerprint } }
    },
  }
}

function fingerprint(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16)
}

function identify(raw: RawRecord): string | undefined {
  if (raw.type === "dex-project") return raw.type
  return string(raw.id) && `${raw.type} ${raw.id}`
}

function stripRecord(raw: RawRecord): RawRecord {
  const patch = record(raw.$set)
  if (!patch) return cutLongTexts(stripMessage(raw))
  const messages = Array.isArray(patch.messages) ? patch.messages : undefined
  const stripped = messages?.map((message) => (isRecord(message) ? stripMessage(message) : message))
  return cutLongTexts({ ...raw, $set: messages ? { ...patch, messages: stripped } : patch })
}

/** Removes image bytes, signatures, and the copies of files that accompany a diff. */
function stripMessage(message: RawRecord): RawRecord {
  const copy: RawRecord = { ...message }
  for (const field of ["content", "displayContent"]) if (field in copy) copy[field] = stripParts(copy[field])
  if (Array.isArray(copy.toolCalls)) copy.toolCalls = copy.toolCalls.map(stripCall)
  return copy
}

function stripCall(call: unknown): unknown {
  if (!isRecord(call)) return call
  const copy: RawRecord = { ...call }
  delete copy.description // every call repeats the description of its tool
  if ("result" in copy) copy.result = stripParts(copy.result)
  const display = record(copy.resultDisplay)
  if (display) {
    const { originalContent: _old, newContent: _new, ...rest } = display
    copy.resultDisplay = rest
  }
  return copy
}

function stripParts(parts: unknown): unknown {
  if (Array.isArray(parts)) return parts.map(stripParts)
  if (!isRecord(parts)) return parts
  const { thoughtSignature: _signature, ...part } = parts
  const data = record(part.inlineData)
  if (typeof data?.data === "string") {
    part.inlineData = digestOf(Buffer.from(data.data, "base64"), string(data.mimeType))
  }
  const response = record(part.functionResponse)
  if (Array.isArray(response?.parts)) part.functionResponse = { ...response, parts: response.parts.map(stripParts) }
  return part
}
