import { type CallAction, resultOfCall, toolCallPart } from "../../../../src/agents/kit/calls.ts"
import type { Parsed, UnitName } from "../../../../src/agents/kit/connector.ts"
import { hunkOfNewFile, hunksOfReplacement, parsePatch, patchIn } from "../../../../src/agents/kit/effects.ts"
import {
  type ConversationFields,
  imagePart,
  parsedFrom,
  uniqueKeys,
  usageFrom,
} from "../../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../../src/core/by-name.ts"
import type { Effect, Hunk, Message, Origin, Part } from "../../../../src/core/conversation.ts"
import {
  array,
  number,
  parseArray,
  parseObject,
  type RawRecord,
  record,
  records,
  string,
  time,
} from "../../../../src/core/record.ts"
import type { Usage } from "../../../../src/core/usage.ts"

type Call = { tool: string; input: RawRecord }
type Session = { id: string; isSubagent: boolean; calls: Map<string, Call>; keyFor: (name: string) => string }

export function parseCline(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
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

/** Splits a prompt. If it has tags around the typed text, Cline added the rest. A subagent's prompt was written by its parent. */
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
  add(text.slice(end), end === 0 ? promptOrigin : "injected")
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

/** Parses a result. A tool that does several things in one call returns a list of answers. */
function resultOf(block: RawRecord, { calls }: Session): { part: Part; effects: Effect[] } {
  const call_id = string(block.tool_use_id)
  const call = calls.get(call_id ?? "")
  const tool = string(block.name) ?? call?.tool
  const answers = answersOf(block.content)
  const actions = call ? actionsOf(call, answers.length) : []
  const results = answers.map((answer, place) =>
    resultOfCall({
      tool,
      call_id,
      output: answer.text,
      failed: block.is_error === true || answer.failed,
      exit_status: answer.exit_status,
      action: actions[place] ?? {},
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

/** True for a tool of an MCP server, which is any tool that is not Cline's own. */
function isRemoteTool(tool: string | undefined): boolean {
  return tool !== undefined && !OWN_TOOLS.has(tool) && !tool.startsWith("team_")
}

const OWN_TOOLS = new Set([
  ...["apply_patch", "ask_question", "editor", "read_files", "run_commands", "search_codebase", "skills"],
  ...["spawn_agent", "submit_and_exit"],
])

type ToolAnswer = { text: string; failed: boolean; exit_status?: number }

function answersOf(content: unknown): ToolAnswer[] {
  const text = string(content)
  const parsed = text === undefined ? content : (parseObject(text) ?? parseArray(text))
  const list = Array.isArray(parsed) ? parsed : [parsed]
  if (list.some((one) => record(one)?.result !== undefined)) return list.map((one) => answerOf(record(one) ?? {}))
  const texts = array(content).flatMap((piece) => string(record(piece)?.text) ?? [])
  return [{ text: string(record(parsed)?.text) ?? text ?? texts.join("\n"), failed: false }]
}

function answerOf({ result, error, success }: RawRecord): ToolAnswer {
  const text = string(result) ?? string(error) ?? (result === undefined ? "" : JSON.stringify(result))
  const code = /^\[?Command exited with code (\d{1,5})/.exec(string(error) ?? text)?.[1]
  const isFailed = success === false
  return { text, failed: isFailed, exit_status: code === undefined ? undefined : Number(code) }
}

/** Returns the action that each answer of a call reports. */
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

/** Returns the hunks of an edit, which replaces a text, inserts a text before a line, or creates a file. */
function editorHunks({ path: pathField, old_text, new_text, insert_line }: RawRecord): Hunk[] {
  const path = string(pathField)
  if (path === undefined || typeof new_text !== "string") return []
  const line = number(insert_line)
  if (line !== undefined) return hunksOfReplacement(path, "", new_text).map((hunk) => ({ ...hunk, new_start: line }))
  return string(old_text) ? hunksOfReplacement(path, old_text, new_text) : [hunkOfNewFile(path, new_text)]
}
