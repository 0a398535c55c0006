import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { actionByName, resultOfCall, type ToolNames, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Machine, Parsed, Unit, UnitName, Unreadable } from "../../../src/agents/kit/connector.ts"
import {
  entriesOf,
  objectAt,
  type Report,
  readLines,
  subfolders,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import {
  cutLongTexts,
  digestOfDataUri,
  imagePart,
  parsedFrom,
  uniqueKeys,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import {
  type Addition,
  HOOK_TIMEOUT_S,
  type HookEvent,
  hookCommands,
  hookTimeout,
  NO_SUBAGENT,
  openSkill,
  serverStart,
  type WantedFile,
  type Wiring,
} from "../../../src/agents/kit/wiring.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Origin, Part, Title } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import { parseObject, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { addRequest, type Usage } from "../../../src/core/usage.ts"
import { kimiCodeRoots } from "./records.ts"

/**
 * Reads Kimi Code's sessions: a folder per session, with a log for each of its agents and a file about the session. Also those
 * of its predecessor Kimi CLI, with other records.
 */
export const kimiCodeConnector: Connector = {
  source: "kimi_code",
  version: 2,
  roots: kimiCodeRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 4, files: /\/(wire\.jsonl|context\.jsonl|state\.json|[^/]+\.jsonl)$/ }],
  read: readLines(stripLine),
  parse: parseKimiCode,
  // There is no `identify`: a line has no id, so records are compared by content.
}

const MAX_STATE_BYTES = 4 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  const folders = foldersByHash(join(dirname(root), "kimi.json"), report)
  for (const project of subfolders(root, report)) {
    if (CLI_PROJECT.test(project)) yield* cliSessions(join(root, project), folders.get(project), report)
    for (const session of subfolders(join(root, project), report)) {
      const folder = join(root, project, session)
      const state = objectAt(join(folder, "state.json"), MAX_STATE_BYTES, report)
      for (const agent of subfolders(join(folder, "agents"), report)) {
        const path = join(folder, "agents", agent, "wire.jsonl")
        const unit = unitAt(path, `${session}/${agent}`, report)
        if (unit) yield unitWithFacts(unit, state && factsOf(state, agent))
      }
    }
  }
}

/** Matches a folder of Kimi CLI: the hash of a working directory, after the name of its machine if that is another one. */
const CLI_PROJECT = /^(?:.*_)?[0-9a-f]{32}$/

/** Kimi CLI names its folders after a hash of the working directory, and lists the directories in a file. */
function foldersByHash(path: string, report: Report): Map<string, string> {
  const listed = records(objectAt(path, MAX_STATE_BYTES, report)?.work_dirs)
  return new Map(
    listed.flatMap((entry) => {
      const folder = string(entry.path)
      return folder === undefined ? [] : [[createHash("md5").update(folder).digest("hex"), folder]]
    }),
  )
}

/**
 * Finds Kimi CLI's sessions: a folder with the log of what happened, which older versions did not write, and the context for the
 * model. The first versions wrote the context only, without a folder.
 */
function* cliSessions(folder: string, cwd: string | undefined, report: Report): Generator<Unit> {
  for (const entry of entriesOf(folder, report)) {
    const session = entry.name.replace(/\.jsonl$/, "")
    if (entry.isDirectory()) {
      const path = join(folder, session)
      const state = objectAt(join(path, "state.json"), MAX_STATE_BYTES, report) ?? {}
      const title = string(state.custom_title) || undefined
      const facts = { type: "dex-session", title, cwd }
      const unit =
        unitAt(join(path, "wire.jsonl"), `cli/${session}`, report) ??
        unitAt(join(path, "context.jsonl"), `cli/${session}`, report)
      if (unit) yield unitWithFacts(unit, withoutUndefined(facts))
      for (const agent of subfolders(join(path, "subagents"), report)) {
        const own = unitAt(join(path, "subagents", agent, "wire.jsonl"), `cli/${session}/${agent}`, report)
        if (own) yield unitWithFacts(own, withoutUndefined({ type: "dex-session", cwd, parent: "main" }))
      }
    } else if (entry.name.endsWith(".jsonl") && !existsSync(join(folder, session))) {
      const unit = unitAt(join(folder, entry.name), `cli/${session}`, report)
      if (unit) yield unitWithFacts(unit, withoutUndefined({ type: "dex-session", cwd }))
    }
  }
}

function factsOf(state: RawRecord, agent: string): RawRecord {
  const agentState = record(record(state.agents)?.[agent])
  const [title, cwd, parent] = [
    string(state.title),
    string(state.cwd) ?? string(state.workDir),
    agentState?.parentAgentId,
  ]
  return {
    type: "dex-session",
    title: title || undefined,
    isCustomTitle: state.isCustomTitle === true ? true : undefined,
    cwd: cwd || undefined,
    parent: string(parent),
  }
}

/** Removes Kimi Code's own instructions and tool descriptions, image bytes, and the content of lines that repeat other lines. */
function stripLine(line: RawRecord): RawRecord {
  const { tools: _, systemPrompt: __, ...rest } = line
  if (line.role === "_system_prompt") return { role: line.role }
  if (line.type === "agent.message.appended") return { type: line.type, time: line.time }
  const event = record(rest.event)
  if (event) {
    const { display: ___, ...storedEvent } = event
    const result = record(storedEvent.result)
    const output = result && Array.isArray(result.output) ? { ...result, output: stripParts(result.output) } : result
    return cutLongTexts({ ...rest, event: { ...storedEvent, ...withoutUndefined({ result: output }) } })
  }
  const message = record(rest.message)
  if (Array.isArray(rest.content)) return cutLongTexts({ ...rest, content: stripParts(rest.content) })
  if (message?.payload !== undefined) return cutLongTexts({ ...rest, message: stripCliEvent(message) })
  if (!message || !Array.isArray(message.content)) return cutLongTexts(rest)
  return cutLongTexts({ ...rest, message: { ...message, content: stripParts(message.content) } })
}

/** Removes image bytes, and what was shown to the person, which repeats whole files. An event may contain a subagent's event. */
function stripCliEvent(message: RawRecord): RawRecord {
  const payload = record(message.payload) ?? {}
  const { display: _, output, ...result } = record(payload.return_value) ?? {}
  const event = record(payload.event)
  const stripped = {
    ...stripParts([payload])[0],
    ...withoutUndefined({
      user_input: Array.isArray(payload.user_input) ? stripParts(payload.user_input) : undefined,
      return_value: payload.return_value && { ...result, output: Array.isArray(output) ? stripParts(output) : output },
      event: event && stripCliEvent(event),
    }),
  }
  return { ...message, payload: stripped }
}

/** Replaces the bytes of images, which are in data URIs, with their digest. */
function stripParts(parts: unknown): RawRecord[] {
  return records(parts).map((part) => {
    const imageUrl = string(record(part.imageUrl)?.url) ?? string(record(part.image_url)?.url)
    const image = imageUrl === undefined ? undefined : digestOfDataUri(imageUrl)
    return image ? { type: part.type, image } : part
  })
}

/** Kimi Code ignores what hooks say at every other event. */
export const KIMI_CODE_HOOKS: readonly HookEvent[] = [{ event: "UserPromptSubmit" }]

export const kimiCodeWiring: Wiring = {
  signs: (machine) => ({ paths: [kimiCodeFolder(machine)], program: "kimi" }),
  files: (machine, bin) => [
    {
      path: join(kimiCodeFolder(machine), "mcp.json"),
      additions: [{ type: "property", path: ["mcpServers", "dex"], value: serverStart(bin) }],
    },
    ...withAdditions(
      join(kimiCodeFolder(machine), "config.toml"),
      hookCommands("kimi_code", KIMI_CODE_HOOKS, bin, "any shell").map(({ event, start }) => ({
        type: "list_table",
        path: ["hooks"],
        values: { event, command: start.command, timeout: hookTimeout(HOOK_TIMEOUT_S, bin, "any shell") },
      })),
    ),
    openSkill(machine),
  ],
  note: () => NO_SUBAGENT,
}

function kimiCodeFolder(machine: Machine): string {
  return dirname(kimiCodeRoots(machine)[0]!)
}

/** Without an addition, there is nothing to change. */
function withAdditions(path: string, additions: Addition[]): WantedFile[] {
  return additions.length === 0 ? [] : [{ path, additions }]
}

const TOOLS: ToolNames = {
  command: ["Bash", "Shell"],
  read: ["Read", "ReadFile"],
  write: ["Write", "WriteFile"],
  edit: ["Edit", "StrReplaceFile"],
}

/** Types of lines that contain only state or telemetry, or that repeat other lines. */
const IGNORED_TYPES = [
  "agent.message.appended",
  "agent.turn.ended",
  "agent.turn.started",
  "config.update",
  "dex-session",
  "file_history.checkpoint",
  "file_history.tracked",
  "full_compaction.begin",
  "full_compaction.complete",
  "llm.tools_snapshot",
  "metadata",
  "permission.record_approval_result",
  "permission.set_mode",
  "plan_mode.enter",
  "plan_mode.exit",
  "plugin.session_start",
  "profile.bind",
  "prompt.completed",
  "runtime.set_binding",
  "subagent.completed",
  "subagent.failed",
  "subagent.spawned",
  "subagent.started",
  "token_counting.measured",
  "token_counting.turn_recorded",
  "tools.set_active_tools",
  "turn.cancel",
  "turn.ended",
  "turn.prompt",
  "turn.steer",
]

type Call = { tool: string; args: RawRecord }
/** A request to the model and its answer. `isListed` is true once the answer has been added to the messages. */
type Step = { message: Message; isListed: boolean }
type Log = {
  messages: Message[]
  steps: Map<string, Step>
  calls: Map<string, Call>
  unknown: ReturnType<typeof createCounts>
  keyFor: (name: string) => string
  isSubagent: boolean
  model: string | undefined
  openStep: Step | undefined
  /**
   * The usage that the last step reported when it ended, unless that usage was counted before. Older versions report it again
   * after the step.
   */
  lastStepUsage: Usage | undefined
  /** The usage that was reported outside a step. It belongs to the next summary. */
  summaryUsage: Usage | undefined
}

/** Parses a log. The model's answers arrive in pieces. All pieces of a step form one message. */
function parseKimiCode(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const isCli = unit.key.startsWith("cli/")
  const lines = isCli ? modernLines(raw) : [...raw]
  const [folder = unit.key, agent = "main"] = unit.key.replace(/^cli\//, "").split("/")
  // The prefix is removed, so that people can abbreviate an id to its first characters. Kimi Code gives a session of Kimi CLI that
  // it takes over the prefix `ses_`: it is the same conversation.
  const sessionId = isCli ? `ses_${folder}` : folder.replace(/^session_(?=.)/, "")
  const uniqueKey = uniqueKeys()
  const log: Log = {
    messages: [],
    steps: new Map(),
    calls: new Map(),
    unknown: createCounts(),
    keyFor: (name) => uniqueKey(`${unit.key}:${name}`),
    isSubagent: agent !== "main",
    model: undefined,
    openStep: undefined,
    lastStepUsage: undefined,
    summaryUsage: undefined,
  }
  for (const line of lines) readLine(log, line)
  const facts = lines.findLast(({ type }) => type === "dex-session") ?? {}
  const parent = string(facts.parent) ?? "main"
  const fields = {
    id: log.isSubagent ? `${sessionId}-${agent}` : sessionId,
    title: log.isSubagent ? undefined : titleOf(facts, log.messages),
    cwds: [facts.cwd, ...lines.map((line) => record(line.environmentDisclosure)?.cwd)],
    parent: log.isSubagent ? (parent === "main" ? sessionId : `${sessionId}-${parent}`) : undefined,
    times: [lines.find(({ type }) => type === "metadata")?.created_at],
    messages: log.messages,
    authority: isCli ? 1 : 2,
  }
  return parsedFrom(fields, log.unknown)
}

function readLine(log: Log, line: RawRecord): void {
  switch (line.type) {
    case "context.append_message":
      addMessage(log, line)
      break
    case "context.append_loop_event":
      readEvent(log, record(line.event) ?? {}, time(line.time))
      break
    case "context.apply_compaction":
      addSummary(log, line)
      break
    case "llm.request":
      log.model = string(line.model) ?? log.model
      break
    case "usage.record":
      addUsage(log, kimiUsage(record(line.usage)))
      break
    default:
      if (!IGNORED_TYPES.includes(String(line.type))) log.unknown.add(string(line.type) ?? "(no type)")
  }
}

function readEvent(log: Log, event: RawRecord, at: number | undefined): void {
  const step = stepOf(log, string(event.stepUuid) ?? string(event.uuid) ?? "", at)
  switch (event.type) {
    case "step.begin":
      log.openStep = step
      break
    case "content.part":
      addParts(log, step, contentParts([record(event.part) ?? {}], "agent"))
      break
    case "tool.call": {
      const [tool, id] = [string(event.name), string(event.toolCallId)]
      if (id !== undefined) log.calls.set(id, { tool: tool ?? "unknown", args: record(event.args) ?? {} })
      addParts(log, step, [toolCallPart(tool, event.args, id)])
      break
    }
    case "tool.result":
      addResult(log, event, at)
      break
    case "step.end": {
      const usage = kimiUsage(record(event.usage))
      const isCounted = step.message.usage !== undefined
      if (usage && !isCounted) step.message.usage = usage
      log.openStep = undefined
      log.lastStepUsage = isCounted ? undefined : usage
      break
    }
    default:
      log.unknown.add(`context.append_loop_event/${string(event.type) ?? "(no type)"}`)
  }
}

function stepOf(log: Log, name: string, at: number | undefined): Step {
  const existing = log.steps.get(name)
  if (existing) return existing
  const message: Message = { key: log.keyFor(name), role: "assistant", at, parts: [] }
  const step = { message, isListed: false }
  if (name !== "") log.steps.set(name, step)
  return step
}

/** Adds parts to a step. A step becomes a message when its first parts are added. */
function addParts(log: Log, step: Step, parts: Part[]): void {
  if (parts.length === 0) return
  step.message.parts.push(...parts)
  if (log.model !== undefined) step.message.model = log.model
  if (!step.isListed) log.messages.push(step.message)
  step.isListed = true
}

function addUsage(log: Log, usage: Usage | undefined): void {
  if (!usage) return
  if (log.openStep) log.openStep.message.usage = addRequest(log.openStep.message.usage, usage)
  else if (log.lastStepUsage && isDeepStrictEqual(log.lastStepUsage, usage)) log.lastStepUsage = undefined
  else log.summaryUsage = addRequest(log.summaryUsage, usage)
}

function kimiUsage(counts: RawRecord | undefined): Usage | undefined {
  return usageFrom({
    input: counts?.inputOther,
    output: counts?.output,
    cache_read: counts?.inputCacheRead,
    cache_write: counts?.inputCacheCreation,
  })
}

function addMessage(log: Log, line: RawRecord): void {
  const message = record(line.message) ?? {}
  const [role, at, id] = [string(message.role), time(line.time), string(message.id)]
  if (role !== "user" && role !== "assistant" && role !== "system") {
    log.unknown.add(`context.append_message/${role ?? "(no role)"}`)
    return
  }
  const kind = record(message.origin)?.kind
  const parts = contentParts(records(message.content), originOf(log, role, kind))
  if (parts.length === 0) return
  const key = log.keyFor(id ?? `${at ?? ""}:${role}`)
  log.messages.push({ key, role, at, parts })
}

/** Returns who wrote a text. Kimi Code marks typed text. In a subagent's log, the parent agent wrote the prompts. */
function originOf({ isSubagent }: Log, role: string, kind: unknown): Origin {
  if (role === "assistant") return "agent"
  if (kind === "injection" || role === "system") return "injected"
  if (isSubagent) return "agent"
  return kind === undefined || kind === "user" ? "person" : "injected"
}

function contentParts(content: RawRecord[], origin: Origin): Part[] {
  return content.flatMap((part): Part[] => {
    if (part.image !== undefined) return [imagePart(part.image, origin)]
    const thought = string(part.think)
    if (thought !== undefined) return [{ type: "thinking", text: thought, origin: "agent" }]
    const text = string(part.text)
    return text === undefined ? [] : [{ type: "text", text, origin }]
  })
}

function addResult(log: Log, event: RawRecord, at: number | undefined): void {
  const call_id = string(event.toolCallId)
  const call = log.calls.get(call_id ?? "")
  const result = record(event.result) ?? {}
  const content = contentParts(records(result.output), "local_tool")
  const output = string(result.output) ?? content.map(({ text }) => text).join("\n")
  const exit_status = TOOLS.command!.includes(call?.tool ?? "")
    ? exitCodeIn(output, result.isError === true)
    : undefined
  const { part, effects } = resultOfCall({
    tool: call?.tool,
    call_id,
    output,
    failed: result.isError === true,
    exit_status,
    action: call ? actionByName(TOOLS, call.tool, withEdits(call.args)) : {},
  })
  log.messages.push({
    key: log.keyFor(`${string(event.parentUuid) ?? call_id ?? ""}:result`),
    role: "tool",
    at,
    parts: [part, ...content.filter(({ type }) => type === "image")],
    effects: effects.length > 0 ? effects : undefined,
  })
}

function exitCodeIn(output: string, failed: boolean): number | undefined {
  const code = /^Command failed with exit code: (\d{1,5})\.?\s*$/m.exec(output)?.[1]
  return code !== undefined ? Number(code) : failed ? undefined : 0
}

function addSummary(log: Log, line: RawRecord): void {
  const [text, at] = [string(line.summary), time(line.time)]
  if (text === undefined) return
  log.messages.push({
    key: log.keyFor(`${at ?? ""}:summary`),
    role: "system",
    at,
    parts: [{ type: "summary", text, origin: "agent" }],
    usage: log.summaryUsage,
    model: log.summaryUsage && log.model,
  })
  log.summaryUsage = undefined
}

/** Types of Kimi CLI's events without content, or whose content other records have. */
const CLI_IGNORED = [
  ...[
    "TurnEnd",
    "StepInterrupted",
    "StepRetry",
    "CompactionBegin",
    "CompactionEnd",
    "ApprovalRequest",
    "ApprovalResponse",
  ],
  ...["ApprovalRequestResolved", "QuestionRequest", "ToolCallRequest", "Notification", "PlanDisplay", "HookTriggered"],
  ...["HookResolved", "HookRequest", "MCPLoadingBegin", "MCPLoadingEnd", "BtwBegin", "BtwEnd", "SubagentEvent"],
]

/** Kimi CLI's records as those of Kimi Code that mean the same. Records of other types stay, and are counted. */
function modernLines(raw: Iterable<RawRecord>): RawRecord[] {
  const lines: RawRecord[] = []
  let step = 0
  let lastCall: RawRecord | undefined
  for (const line of raw) {
    const message = record(line.message)
    const at = line.timestamp
    const payload = record(message?.payload) ?? {}
    const add = (event: RawRecord) =>
      lines.push({ type: "context.append_loop_event", time: at, event: { stepUuid: `step ${step}`, ...event } })
    const prompt = (content: unknown) => {
      step++
      const parts = partsIn(content)
      const kind = string(parts[0]?.text)?.startsWith("<system>") ? "injection" : "user"
      const written = { role: "user", content: parts, origin: { kind } }
      lines.push({ type: "context.append_message", time: at, message: written })
    }
    const call = (fields: RawRecord) => {
      const { name, arguments: input } = record(fields.function) ?? {}
      lastCall = { type: "tool.call", name, toolCallId: fields.id, args: input }
      add(lastCall)
      lastCall = record(lines.at(-1)!.event)
    }
    const type = string(message?.type) ?? string(line.role) ?? ""
    if (type === "TurnBegin" || type === "SteerInput") prompt(payload.user_input)
    else if (type === "user") prompt(line.content)
    else if (type === "StepBegin") step++
    else if (type === "ContentPart") add({ type: "content.part", part: payload })
    else if (type === "ToolCall") call(payload)
    else if (type === "ToolCallPart" && lastCall)
      lastCall.args = `${string(lastCall.args) ?? ""}${string(payload.arguments_part) ?? ""}`
    else if (type === "ToolResult") {
      const { output, message: note, is_error } = record(payload.return_value) ?? {}
      const result = { output: withNote(partsIn(output), note, is_error === true), isError: is_error === true }
      add({ type: "tool.result", toolCallId: payload.tool_call_id, result })
    } else if (type === "StatusUpdate") {
      const usage = record(payload.token_usage)
      if (usage) add({ type: "step.end", usage: modernUsage(usage) })
    } else if (type === "assistant") {
      step++
      for (const part of partsIn(line.content)) add({ type: "content.part", part })
      for (const fields of records(line.tool_calls)) call(fields)
    } else if (type === "tool") {
      const [first, ...output] = partsIn(line.content)
      const note = /^<system>(ERROR: )?([\s\S]*)<\/system>$/.exec(string(first?.text) ?? "")
      const isError = note?.[1] !== undefined
      const shown = note ? withNote(output, note[2], isError) : [first ?? {}, ...output]
      add({ type: "tool.result", toolCallId: line.tool_call_id, result: { output: shown, isError } })
    } else if (!CLI_IGNORED.includes(type) && !["_system_prompt", "_checkpoint", "_usage"].includes(type))
      lines.push(message || line.role !== undefined ? { type: type || "(no type)" } : line)
  }
  for (const line of lines) {
    const event = record(line.event)
    if (event?.type === "tool.call") event.args = parseObject(string(event.args) ?? "") ?? {}
  }
  return lines
}

function partsIn(content: unknown): RawRecord[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : records(content)
}

/** A tool's note about its own failure is recorded beside its output. */
function withNote(output: RawRecord[], note: unknown, failed: boolean): RawRecord[] {
  return failed && string(note) ? [...output, { type: "text", text: note }] : output
}

function modernUsage({ input_other, output, input_cache_read, input_cache_creation }: RawRecord): RawRecord {
  return { inputOther: input_other, output, inputCacheRead: input_cache_read, inputCacheCreation: input_cache_creation }
}

/** Kimi CLI's `StrReplaceFile` has one edit or several, as objects. */
function withEdits({ edit, ...args }: RawRecord): RawRecord {
  if (edit === undefined) return args
  const edits = (Array.isArray(edit) ? records(edit) : [record(edit) ?? {}]).map((one) => ({
    old_string: one.old,
    new_string: one.new,
  }))
  return { ...args, edits }
}

/** Returns the session's title. A session that nobody named has its first prompt as its name, which is not a title. */
function titleOf({ title, isCustomTitle }: RawRecord, messages: Message[]): Title | undefined {
  const text = string(title)
  if (text === undefined) return undefined
  if (isCustomTitle === true) return { text, from: "person" }
  const firstPrompt = messages.find(({ role }) => role === "user")?.parts[0]?.text ?? ""
  return firstPrompt.startsWith(text.slice(0, 40)) ? undefined : { text, from: "agent" }
}
