import { isDeepStrictEqual } from "node:util"
import { actionByName, resultOfCall, type ToolNames, toolCallPart } from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { imagePart, parsedFrom, uniqueKeys, usageFrom } from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Message, Origin, Part, Title } from "../../../../src/core/conversation.ts"
import { type RawRecord, record, records, string, time } from "../../../../src/core/record.ts"
import { addRequest, type Usage } from "../../../../src/core/usage.ts"

const TOOLS: ToolNames = { command: ["Bash"], read: ["Read"], write: ["Write"], edit: ["Edit"] }

/** Types of lines that contain only states or measurements, or that repeat others. */
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
/** A request to the model and its answer. `isListed` is true once the answer is one of the messages. */
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
   * The usage that the last step reported at its end, unless it had been counted already. Older versions report it again after
   * the step.
   */
  lastStepUsage: Usage | undefined
  /** The usage that was reported outside a step. It belongs to the next summary. */
  summaryUsage: Usage | undefined
}

/** Parses a log. The model's answers arrive in pieces. All pieces of a step form one message. */
export function parseKimiCode(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const lines = [...raw]
  const [folder = unit.key, agent = "main"] = unit.key.split("/")
  // The prefix is removed, so that an id can be abbreviated to its first characters.
  const session = folder.replace(/^session_(?=.)/, "")
  const unique = uniqueKeys()
  const log: Log = {
    messages: [],
    steps: new Map(),
    calls: new Map(),
    unknown: createCounts(),
    keyFor: (name) => unique(`${unit.key}:${name}`),
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
    id: log.isSubagent ? `${session}-${agent}` : session,
    title: log.isSubagent ? undefined : titleOf(facts, log.messages),
    cwds: [facts.cwd, ...lines.map((line) => record(line.environmentDisclosure)?.cwd)],
    parent: log.isSubagent ? (parent === "main" ? session : `${session}-${parent}`) : undefined,
    times: [lines.find(({ type }) => type === "metadata")?.created_at],
    messages: log.messages,
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

/** Adds parts to a step. A step without content is not a message. */
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

/** Returns who wrote a text. Typed text is marked. In a subagent's log, the prompts are written by its parent. */
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
  const exit_status = call?.tool === "Bash" ? exitCodeIn(output, result.isError === true) : undefined
  const { part, effects } = resultOfCall({
    tool: call?.tool,
    call_id,
    output,
    failed: result.isError === true,
    exit_status,
    action: call ? actionByName(TOOLS, call.tool, call.args) : {},
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

/** Returns the session's title. A session that nobody named has its first prompt as its name, which is not a title. */
function titleOf({ title, isCustomTitle }: RawRecord, messages: Message[]): Title | undefined {
  const text = string(title)
  if (text === undefined) return undefined
  if (isCustomTitle === true) return { text, from: "person" }
  const firstPrompt = messages.find(({ role }) => role === "user")?.parts[0]?.text ?? ""
  return firstPrompt.startsWith(text.slice(0, 40)) ? undefined : { text, from: "agent" }
}
