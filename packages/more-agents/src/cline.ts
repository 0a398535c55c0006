import { basename, dirname, join } from "node:path"
import { type CallAction, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import {
  type Connector,
  type Cursor,
  type IsUnchanged,
  isUnreadable,
  type Machine,
  type Parsed,
  type Reading,
  type Unit,
  type UnitName,
  type Unreadable,
  type Watched,
} from "../../../src/agents/kit/connector.ts"
import { hunkOfNewFile, hunksOfReplacement, parsePatch, patchIn } from "../../../src/agents/kit/effects.ts"
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
} from "../../../src/agents/kit/files.ts"
import {
  type ConversationFields,
  cutLongTexts,
  digestOf,
  imagePart,
  parsedFrom,
  splitInjected,
  uniqueKeys,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import {
  type HookEvent,
  hookCommands,
  NO_SUBAGENT,
  openSkill,
  serverStart,
  type WantedFile,
  type Wiring,
} from "../../../src/agents/kit/wiring.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Hunk, Message, Origin, Part } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import {
  array,
  isRecord,
  number,
  parseArray,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { clineDataFolder, clineRoots } from "./records.ts"
import { rooCodeConnector } from "./roo-code/connector.ts"

/**
 * Reads Cline's sessions. Since version 3, each session has a folder, with one file of messages for the session and one for each
 * of its subagents. Earlier versions stored tasks instead.
 */
export const clineConnector: Connector = {
  source: "cline",
  version: 2,
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

const MAX_TASK_LIST_BYTES = 64 << 20

/**
 * Whether the unit is a task from before version 3. Only the key of a session contains a slash, between the names of its folder
 * and its file.
 */
export function isTaskUnit({ key }: UnitName): boolean {
  return !key.includes("/")
}

function watchedTasks(root: string): Watched[] {
  const taskList = { folder: join(dirname(root), "state"), depth: 0, files: /^taskHistory\.json$/ }
  return [...rooCodeConnector.watched!(root), taskList]
}

function* discoverTasks(root: string, isUnchanged: IsUnchanged): Iterable<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const taskListText = textAt(join(dirname(root), "state", "taskHistory.json"), MAX_TASK_LIST_BYTES, (problem) =>
    problems.push(problem),
  )
  const tasks = new Map(records(parseArray(taskListText ?? "[]")).map((task) => [task.id, task]))
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

export const CLINE_HOOKS: readonly HookEvent[] = [{ event: "PreToolUse" }, { event: "PostToolUse" }]

/** Cline runs one program for each event, which has the name of the event. */
export const clineWiring: Wiring = {
  signs: (machine) => ({ paths: [clineFolder(machine)], program: "cline" }),
  files: (machine, bin) => [
    {
      path: join(clineDataFolder(machine), "settings", "cline_mcp_settings.json"),
      additions: [{ type: "property", path: ["mcpServers", "dex"], value: serverStart(bin) }],
    },
    ...(bin.windows === undefined ? hookCommands("cline", CLINE_HOOKS, bin, "any shell") : []).map(
      ({ event, start }): WantedFile => ({
        path: join(clineFolder(machine), "hooks", event),
        additions: [{ type: "file", content: `#!/bin/sh\nexec ${start.command}\n`, executable: true }],
      }),
    ),
    openSkill(machine),
  ],
  note: (_, { windows }) => (windows === undefined ? NO_SUBAGENT : "no hooks: they have not been tested on Windows"),
}

function clineFolder({ home, env }: Machine): string {
  return env.CLINE_DIR || join(home, ".cline")
}

type Call = { tool: string; input: RawRecord }
type Session = { id: string; isSubagent: boolean; calls: Map<string, Call>; keyFor: (name: string) => string }

function parseCline(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const entries = [...raw]
  const file = entries.find(({ type }) => type === "file") ?? {}
  const session: Session = {
    id: string(file.sessionId) ?? unit.key.split("/").at(-1)!,
    isSubagent: file.agent === "subagent" || record(file.origin)?.mode === "subagent",
    calls: callsIn(entries),
    keyFor: uniqueKeys(),
  }
  const unknown = createCounts()
  const messages: Message[] = []
  for (const entry of entries) {
    if (entry.type === "message") messages.push(...messagesOf(entry, session, unknown))
    else if (entry.type !== "file" && entry.type !== "dex-session") unknown.add(string(entry.type) ?? "(no type)")
  }
  const facts = entries.findLast(({ type }) => type === "dex-session") ?? {}
  const { id, isSubagent } = session
  const origin = record(file.origin)
  const title = string(facts.title)
  const firstPrompt = messages.find(({ role }) => role === "user")?.parts[0]?.text ?? ""
  const isNamed = title !== undefined && !isSubagent && !firstPrompt.startsWith(title.slice(0, 40))
  const fields: ConversationFields = {
    id,
    kind: isSubagent ? "subagent" : "person",
    title: isNamed ? title : undefined,
    cwd: facts.cwd,
    git_branch: facts.branch,
    agent_version: origin?.version,
    parent: origin?.parentThreadId,
    times: isSubagent ? [] : [facts.started],
    messages,
  }
  return parsedFrom(fields, unknown)
}

function callsIn(entries: RawRecord[]): Map<string, Call> {
  const blocks = entries.flatMap(({ content }) => records(content)).filter(({ type }) => type === "tool_use")
  return new Map(
    blocks.flatMap(({ id, name, input }) =>
      string(id) ? [[string(id)!, { tool: string(name) ?? "unknown", input: record(input) ?? {} }] as const] : [],
    ),
  )
}

/** Parses a message. A user message can contain both tool results and typed text, which become two messages. */
function messagesOf(entry: RawRecord, session: Session, unknown: ReturnType<typeof createCounts>): Message[] {
  const blocks: RawRecord[] =
    typeof entry.content === "string" ? [{ type: "text", text: entry.content }] : records(entry.content)
  const at = time(entry.ts)
  const key = session.keyFor(string(entry.id) ?? `${session.id}:${at ?? ""}`)
  const timeField = { at }
  if (entry.role === "assistant") {
    const parts = blocks.flatMap((block) => answerParts(block, unknown))
    const [model, usage] = [string(record(entry.modelInfo)?.id), clineUsage(record(entry.metrics))]
    const modelAndUsage = { model, usage }
    return parts.length === 0 ? [] : [{ key, role: "assistant", ...timeField, parts, ...modelAndUsage }]
  }
  if (entry.role !== "user") {
    unknown.add(`message/${string(entry.role) ?? "(no role)"}`)
    return []
  }
  const results = blocks.filter(({ type }) => type === "tool_result").map((block) => resultOf(block, session))
  const effects = results.flatMap((result) => result.effects)
  const typedParts = blocks.filter(({ type }) => type !== "tool_result").flatMap((block) => promptParts(block, session))
  const messages: Message[] = []
  if (results.length > 0) {
    const parts = results.map(({ part }) => part)
    messages.push({ key, role: "tool", ...timeField, parts, effects: effects.length > 0 ? effects : undefined })
  }
  if (typedParts.length > 0)
    messages.push({ key: results.length > 0 ? `${key}:typed` : key, role: "user", ...timeField, parts: typedParts })
  return messages
}

function answerParts(block: RawRecord, unknown: ReturnType<typeof createCounts>): Part[] {
  switch (block.type) {
    case "text":
      return string(block.text) ? [{ type: "text", text: string(block.text)!, origin: "agent" }] : []
    case "thinking":
      return string(block.thinking) ? [{ type: "thinking", text: string(block.thinking)!, origin: "agent" }] : []
    case "redacted_thinking":
      return []
    case "tool_use":
      return [toolCallPart(string(block.name), block.input, string(block.id))]
    case "image":
      return [imagePart(block.image, "agent")]
    default:
      unknown.add(`block/${string(block.type) ?? "(no type)"}`)
      return []
  }
}

/**
 * Splits a prompt into typed and inserted text. If tags mark the typed text, Cline inserted all other text. A subagent's prompt
 * was written by its parent.
 */
function promptParts(block: RawRecord, { isSubagent }: Session): Part[] {
  if (block.type === "image") return [imagePart(block.image, isSubagent ? "agent" : "person")]
  const text = string(block.text)
  if (text === undefined) return []
  const promptOrigin: Origin = isSubagent ? "agent" : "person"
  const parts: Part[] = []
  const add = (piece: string, origin: Origin) => {
    if (piece.trim() !== "") parts.push({ type: "text", text: piece.trim(), origin })
  }
  let end = 0
  for (const match of text.matchAll(/<user_input(?: mode="\w{1,20}")?>([\s\S]*?)<\/user_input>/g)) {
    add(text.slice(end, match.index), "injected")
    add(match[1]!, promptOrigin)
    end = match.index + match[0].length
  }
  const rest = text.slice(end)
  // Text that hooks add stands alone or follows the prompt.
  if (end > 0) add(rest, "injected")
  else for (const run of splitInjected(rest, ["hook_context"])) add(run.text, run.injected ? "injected" : promptOrigin)
  return parts
}

function clineUsage(counts: RawRecord | undefined): Usage | undefined {
  return usageFrom({
    input: counts?.inputTokens,
    output: counts?.outputTokens,
    cache_read: counts?.cacheReadTokens,
    cache_write: counts?.cacheWriteTokens,
    cost: counts?.cost,
  })
}

/** Parses a tool result. A tool that does several things in one call returns a list of answers. */
function resultOf(block: RawRecord, { calls }: Session): { part: Part; effects: Effect[] } {
  const call_id = string(block.tool_use_id)
  const call = calls.get(call_id ?? "")
  const tool = string(block.name) ?? call?.tool
  const answers = answersOf(block.content)
  const actions = call ? actionsOf(call, answers.length) : []
  const results = answers.map((answer, index) =>
    resultOfCall({
      tool,
      call_id,
      output: answer.text,
      failed: block.is_error === true || answer.failed,
      exit_status: answer.exit_status,
      action: actions[index] ?? {},
      isRemote: isRemoteTool(tool),
    }),
  )
  const [firstResult] = results
  if (firstResult && results.length === 1) return firstResult
  const { part } = resultOfCall({
    tool,
    call_id,
    output: answers.map(({ text }) => text).join("\n"),
    failed: answers.some(({ failed }) => failed),
    action: {},
    isRemote: isRemoteTool(tool),
  })
  return { part, effects: results.flatMap(({ effects }) => effects) }
}

/** Returns true for a tool that is not one of Cline's own, because such a tool belongs to an MCP server. */
function isRemoteTool(tool: string | undefined): boolean {
  return tool !== undefined && !CLINE_TOOLS.has(tool) && !tool.startsWith("team_")
}

const CLINE_TOOLS = new Set([
  ...["apply_patch", "ask_question", "editor", "read_files", "run_commands", "search_codebase", "skills"],
  ...["spawn_agent", "submit_and_exit"],
])

type ToolAnswer = { text: string; failed: boolean; exit_status?: number }

function answersOf(content: unknown): ToolAnswer[] {
  const text = string(content)
  const parsed = text === undefined ? content : (parseObject(text) ?? parseArray(text))
  const items = Array.isArray(parsed) ? parsed : [parsed]
  if (items.some((one) => record(one)?.result !== undefined)) return items.map((one) => answerOf(record(one) ?? {}))
  const texts = array(content).flatMap((piece) => string(record(piece)?.text) ?? [])
  return [{ text: string(record(parsed)?.text) ?? text ?? texts.join("\n"), failed: false }]
}

function answerOf({ result, error, success }: RawRecord): ToolAnswer {
  const text = string(result) ?? string(error) ?? (result === undefined ? "" : JSON.stringify(result))
  const code = /^\[?Command exited with code (\d{1,5})/.exec(string(error) ?? text)?.[1]
  const isFailed = success === false
  return { text, failed: isFailed, exit_status: code === undefined ? undefined : Number(code) }
}

/** Derives the actions of a call, one for each of its answers. */
function actionsOf({ tool, input }: Call, answerCount: number): CallAction[] {
  switch (tool) {
    case "run_commands": {
      const commands = array(input.commands).flatMap(
        (command) => string(command) ?? string(record(command)?.command) ?? [],
      )
      return answerCount === commands.length
        ? commands.map((command) => ({ command }))
        : [{ command: commands.join(" && ") }]
    }
    case "read_files": {
      const paths = records(input.files).flatMap(({ path }) => string(path) ?? [])
      return answerCount === paths.length ? paths.map((path) => ({ reads: [path] })) : [{ reads: paths }]
    }
    case "editor":
      return [{ hunks: editorHunks(input) }]
    case "apply_patch": {
      const patch = patchIn(string(input.patch) ?? string(input.input) ?? "")
      return patch === undefined ? [] : [{ hunks: parsePatch(patch).hunks }]
    }
    default:
      return []
  }
}

/** Returns the hunks of a call that replaces text, inserts text before a line, or creates a file. */
function editorHunks({ path: pathField, old_text, new_text, insert_line }: RawRecord): Hunk[] {
  const path = string(pathField)
  if (path === undefined || typeof new_text !== "string") return []
  const line = number(insert_line)
  if (line !== undefined) return hunksOfReplacement(path, "", new_text).map((hunk) => ({ ...hunk, new_start: line }))
  return string(old_text) ? hunksOfReplacement(path, old_text, new_text) : [hunkOfNewFile(path, new_text)]
}
