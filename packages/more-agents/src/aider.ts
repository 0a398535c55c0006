import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { basename, dirname } from "node:path"
import type { Connector, Cursor, Parsed, Reading, Unit, Unreadable } from "../../../src/agents/kit/connector.ts"
import { readingOfRows } from "../../../src/agents/kit/database-units.ts"
import { editEffects, fileEffect, hunksOfReplacement, searchReplaceBlocks } from "../../../src/agents/kit/effects.ts"
import { fileAt, unitOfFile } from "../../../src/agents/kit/files.ts"
import { conversationFrom, cutLongTexts } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Conversation, Effect, Hunk, Message, Part } from "../../../src/core/conversation.ts"
import { readText } from "../../../src/core/read-file.ts"
import { type RawRecord, string } from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { aiderRoots } from "./records.ts"

/** Reads Aider, which appends every run to one Markdown file in the project. Each run is a conversation. */
export const aiderConnector: Connector = {
  source: "aider",
  version: 1,
  roots: aiderRoots,
  discover,
  // The file is in a home folder or a project, so its folder is watched only if the file exists.
  watched: (root) =>
    existsSync(root) ? [{ folder: dirname(root), depth: 0, files: fileNamePattern(basename(root)) }] : [],
  read,
  parse: parseAider,
  identify: (raw) => `${raw.type} ${raw.id}`,
  conversationOf: () => (raw) => String(raw.id),
}

const MAX_BYTES = 256 << 20

function* discover(root: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const stat = fileAt(root, (problem) => problems.push(problem))
  if (stat) yield unitOfFile(root, root, stat)
  yield* problems
}

function fileNamePattern(name: string): RegExp {
  return new RegExp(`^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`)
}

const HEADER = /^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$/

/**
 * Reads one record per run. Its id consists of the run's start time and a hash of the folder's name, so it stays the same if the
 * project is moved. The header has the local time, which is interpreted in this machine's time zone.
 */
function read(unit: Unit, after?: Cursor): Reading {
  const folderHash = createHash("sha256")
    .update(basename(dirname(unit.path)))
    .digest("hex")
    .slice(0, 8)
  const runs: { started_at: number; lines: string[] }[] = []
  for (const line of readText(unit.path, MAX_BYTES).split(/\r?\n/)) {
    const startTime = HEADER.exec(line)?.[1]
    if (startTime !== undefined) runs.push({ started_at: Date.parse(startTime.replace(" ", "T")), lines: [] })
    else runs.at(-1)?.lines.push(line)
  }
  const nameCounts = new Map<string, number>()
  const rows = runs.map(({ started_at, lines }): RawRecord => {
    const name = `${Number.isNaN(started_at) ? 0 : started_at}-${folderHash}`
    const count = (nameCounts.get(name) ?? 0) + 1
    nameCounts.set(name, count)
    return {
      type: "run",
      id: count === 1 ? name : `${name}-${count}`,
      started_at: !Number.isNaN(started_at) ? started_at : undefined,
      folder: dirname(unit.path),
      text: lines.join("\n"),
    }
  })
  return readingOfRows(rows, cutLongTexts, [], after)
}

/** A section of a run, written by the person, by Aider or by the model. */
type RunBlock = { by: "person" | "aider" | "model"; lines: string[] }

const PROMPT = /^####(?: |$)/
const REPORT = /^>(?: |$)/
/** Matches lines that only Aider writes. An answer's code block that is still open ends before such a line. */
const CERTAIN_REPORT = /^> (?:Tokens: |Applied edit to |Commit [0-9a-f]{7,40} |Aider v|Main model: |Model: )/
const FENCE = /^\s*(?:`{3,}|~{3,})/

/**
 * Splits a run into blocks by the beginnings of its lines. A heading in an answer can begin like a prompt, but Aider ends a
 * prompt with two spaces. So if any prompt in a run ends with two spaces, only such prompts count. Lines inside a code
 * block of an answer belong to the answer, unless they are certainly a prompt or a report.
 */
export function splitRun(text: string): RunBlock[] {
  const lines = text.split("\n")
  const hasMarkedPrompts = lines.some((line) => PROMPT.test(line) && line.endsWith("  "))
  const blocks: RunBlock[] = []
  let inCode = false
  for (const [index, line] of lines.entries()) {
    const isPrompt = PROMPT.test(line) && (hasMarkedPrompts ? promptIsMarked(lines, index) : !inCode)
    const isReport = REPORT.test(line) && (!inCode || CERTAIN_REPORT.test(line))
    if (isPrompt || isReport) inCode = false
    else if (FENCE.test(line)) inCode = !inCode
    const by = isPrompt ? "person" : isReport ? "aider" : "model"
    const last = blocks.at(-1)
    if (last?.by === by) last.lines.push(line)
    else if (by !== "model" || line.trim() !== "") blocks.push({ by, lines: [line] })
  }
  return blocks.map(({ by, lines: blockLines }) => ({
    by,
    lines: by === "model" ? blockLines : blockLines.map(withoutMark),
  }))
}

/** Whether the prompt that begins at this line ends with two spaces, which only its last line has. */
function promptIsMarked(lines: readonly string[], firstLine: number): boolean {
  let last = firstLine
  while (PROMPT.test(lines[last + 1] ?? "") && !lines[last]!.endsWith("  ")) last++
  return lines[last]!.endsWith("  ")
}

function withoutMark(line: string): string {
  return line.replace(/^(?:####|>) ?/, "").trimEnd()
}

function parseAider(rows: Iterable<RawRecord>): Parsed {
  const unknown = createCounts()
  const conversations: Conversation[] = []
  for (const row of rows) {
    const [id, text] = [string(row.id), string(row.text)]
    if (row.type !== "run") unknown.add(String(row.type))
    else if (id !== undefined && text !== undefined) {
      const { messages, version } = messagesOf(text, id, string(row.folder))
      if (messages.length > 0)
        conversations.push(
          conversationFrom({ id, cwd: row.folder, agent_version: version, times: [row.started_at], messages }),
        )
    }
  }
  return { conversations, unknown: unknown.all() }
}

function messagesOf(text: string, id: string, folder: string | undefined): { messages: Message[]; version?: string } {
  const messages: Message[] = []
  let answer: Message | undefined
  let model: string | undefined
  let version: string | undefined
  for (const [index, { by, lines }] of splitRun(text).entries()) {
    const content = lines.join("\n").trim()
    const key = `${id}:${index}`
    if (by === "person") {
      answer = undefined
      if (content !== "")
        messages.push({ key, role: "user", parts: [{ type: "text", text: content, origin: "person" }] })
    } else if (by === "model") {
      answer = {
        key,
        role: "assistant",
        model,
        parts: [{ type: "text", text: content, origin: "agent" }],
      }
      messages.push(answer)
    } else {
      model = /^(?:Main model|Model): (\S{1,100})/m.exec(content)?.[1] ?? model
      version = /^Aider v(\S{1,40})/m.exec(content)?.[1] ?? version
      const usage = aiderUsage(content)
      if (answer && usage) answer.usage = usage
      messages.push(reportOf(content, key, answer, folder))
    }
  }
  return {
    messages: messages.filter(({ parts }) => parts.every((part) => part.text !== "")),
    version,
  }
}

/** Builds the message for Aider's report on the preceding answer, with the edits and commits that the report names. */
function reportOf(text: string, key: string, answer: Message | undefined, folder: string | undefined): Message {
  const resolvePath = (path: string) =>
    folder === undefined || /^([/\\]|[a-z]:)/i.test(path) ? path : `${folder}/${path}`
  const appliedPaths = new Set(
    Array.from(text.matchAll(/^(?:Applied edit to|Creating empty file) (.{1,4000})$/gm), ([, path]) => path!.trim()),
  )
  const hunks = hunksIn(answer?.parts[0]?.text ?? "", appliedPaths).map((hunk) => ({
    ...hunk,
    path: resolvePath(hunk.path),
  }))
  const pathsWithHunks = new Set(hunks.map(({ path }) => path))
  const effects: Effect[] = [
    ...editEffects(hunks),
    ...[...appliedPaths]
      .map(resolvePath)
      .filter((path) => !pathsWithHunks.has(path))
      .map((path) => fileEffect(path, "edited")),
    ...Array.from(
      text.matchAll(/^Commit ([0-9a-f]{7,40}) (.{1,500})$/gm),
      ([, hash, subject]): Effect => ({
        type: "commit",
        hash: hash!,
        subject: subject!.trim(),
      }),
    ),
  ]
  const part: Part = {
    type: "tool_result",
    text,
    origin: "local_tool",
    tool: "aider",
    is_error: false,
    hunks: hunks.length > 0 ? hunks : undefined,
  }
  return { key, role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined }
}

/** Returns the hunks of an answer's blocks, if Aider applied them. */
function hunksIn(answer: string, appliedPaths: Set<string>): Hunk[] {
  const lines = answer.split("\n")
  let path: string | undefined
  return searchReplaceBlocks(lines).flatMap(({ search, replace, firstLine }) => {
    path = nameAbove(lines, firstLine) ?? path
    return path === undefined || !appliedPaths.has(path)
      ? []
      : hunksOfReplacement(path, search.join("\n"), replace.join("\n"))
  })
}

/**
 * Finds the file name of a block, which is above the block or above its fence. A block without a name belongs to the same file
 * as the previous one.
 */
function nameAbove(lines: readonly string[], block: number): string | undefined {
  const nameLine = /^\s*(?:`{3,}|~{3,})/.test(lines[block - 1] ?? "") ? block - 2 : block - 1
  const name = (lines[nameLine] ?? "").trim().replace(/^[`*#\s]+|[`*:\s]+$/g, "")
  return name === "" || /^>{5,9} REPLACE$/.test(name) ? undefined : name
}

/** Parses counts that Aider rounded: `12k sent, 1.1k cache write, 3k cache hit, 245 received`. */
function aiderUsage(text: string): Usage | undefined {
  const line = /^Tokens: (.{1,300})$/m.exec(text)?.[1]
  if (line === undefined) return undefined
  const countOf = (name: string) => {
    const [, digits, unit] = new RegExp(`([\\d.,]{1,20})([kM]?) ${name}`).exec(line) ?? []
    const amount = Number((digits ?? "0").replaceAll(",", "")) * (unit === "k" ? 1e3 : unit === "M" ? 1e6 : 1)
    return Number.isFinite(amount) ? Math.round(amount) : 0
  }
  const [sent, output, cache_write, cache_read] = [
    countOf("sent"),
    countOf("received"),
    countOf("cache write"),
    countOf("cache hit"),
  ]
  if (sent + output === 0) return undefined
  const cost = Number(/Cost: \$([\d.]{1,20}) message/.exec(line)?.[1])
  const input = Math.max(0, sent - cache_read - cache_write)
  return { input, output, cache_read, cache_write, cost: cost > 0 ? cost : undefined }
}
