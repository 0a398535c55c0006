import { fileURLToPath } from "node:url"
import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message, Part } from "../../core/conversation.ts"
import { number, type RawRecord, record, records, string, time } from "../../core/record.ts"
import type { Usage } from "../../core/usage.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { deedByName } from "../kit/deed-by-name.ts"
import { finishedCall, toolCallPart } from "../kit/finished-call.ts"
import { imagePart } from "../kit/kept-text.ts"
import { uniqueKeys } from "../kit/message-keys.ts"
import { spanOf } from "../kit/times.ts"

const TOOLS = {
  command: ["Bash", "shell_command"],
  read: ["Read"],
  write: ["create_file"],
  edit: ["edit_file"],
  patch: ["apply_patch"],
}

type Call = { tool: string | undefined; args: RawRecord }

export function parseAmp(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  let thread: RawRecord = {}
  const entries: RawRecord[] = []
  for (const entry of raw) {
    if (entry.type === "dex-thread") thread = entry
    else entries.push(entry)
  }
  const id = string(thread.id) ?? unit.key
  const calls = callsIn(entries)
  const unknown = createCounts()
  const keyOf = uniqueKeys()
  const messages = entries.flatMap((entry, place) =>
    messagesOf(entry, calls, `${id}:${number(entry.messageId) ?? place}`, (type) => unknown.add(type)),
  )
  const named = messages.map((message) => ({ ...message, key: keyOf(message.key) }))
  return {
    conversations: named.length === 0 ? [] : [conversationOf(id, thread, named)],
    unknown: unknown.all(),
  }
}

function callsIn(entries: RawRecord[]): Map<string, Call> {
  const uses = entries.flatMap(({ content }) => records(content)).filter(({ type }) => type === "tool_use")
  return new Map(
    uses.map(({ id, name, input }) => [string(id) ?? "", { tool: string(name), args: record(input) ?? {} }]),
  )
}

/** What tools gave stands in a turn of the person. */
function messagesOf(
  entry: RawRecord,
  calls: Map<string, Call>,
  key: string,
  unknown: (type: string) => void,
): Message[] {
  const usage = record(entry.usage)
  const at = time(record(entry.meta)?.sentAt) ?? time(usage?.timestamp)
  const dated = at === undefined ? {} : { at }
  const blocks = typeof entry.content === "string" ? [{ type: "text", text: entry.content }] : records(entry.content)
  if (entry.role !== "user" && entry.role !== "assistant") {
    unknown(string(entry.role) ?? string(entry.type) ?? "(no role)")
    return []
  }
  const { role } = entry as { role: "user" | "assistant" } // looked at above
  const results = blocks.filter(({ type }) => type === "tool_result").map((block) => resultOf(block, calls))
  const parts = blocks.flatMap((block) => partOf(block, role, unknown))
  const [model, counted] = [string(usage?.model), ampUsage(usage)]
  return [
    ...results.map((message) => ({ ...message, ...dated, key: `${key}:result` })),
    ...(parts.length === 0 ? [] : [{ key, role, ...dated, parts, model, usage: counted }]),
  ]
}

function partOf(block: RawRecord, role: "user" | "assistant", unknown: (type: string) => void): Part[] {
  const origin = role === "user" ? "person" : "agent"
  switch (block.type) {
    case "text":
      return string(block.text) ? [{ type: "text", text: string(block.text)!, origin }] : []
    case "thinking":
      return string(block.thinking) ? [{ type: "thinking", text: string(block.thinking)!, origin: "agent" }] : []
    case "tool_use":
      return [toolCallPart(string(block.name), block.input, string(block.id))]
    case "image":
      return [imagePart(block.image, origin)]
    case "tool_result":
    case "redacted_thinking":
      return []
    default:
      unknown(`content/${string(block.type) ?? "(no type)"}`)
      return []
  }
}

function resultOf(block: RawRecord, calls: Map<string, Call>): Omit<Message, "key"> {
  const call_id = string(block.toolUseID) ?? string(block.tool_use_id)
  const call = calls.get(call_id ?? "")
  const run = record(block.run) ?? {}
  const result = record(run.result)
  const exit = number(result?.exitCode)
  const problem = string(record(run.error)?.message) ?? string(run.error)
  const { part, effects } = finishedCall({
    tool: call?.tool,
    call_id,
    output: problem ?? resultText(run.result),
    failed: problem !== undefined || (run.status !== undefined && run.status !== "done"),
    exit_status: exit,
    deed: call ? deedByName(TOOLS, call.tool, call.args) : {},
  })
  return { role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined }
}

/** A command has its output, a file its content, an edit its diff. */
function resultText(result: unknown): string {
  const told = record(result)
  if (!told) return string(result) ?? (result === undefined || result === null ? "" : JSON.stringify(result))
  return [told.output, told.content, told.diff].map(string).find((text) => text !== undefined) ?? JSON.stringify(told)
}

/** Of OpenAI's models what Amp calls written to the cache was only not read from it. */
function ampUsage(usage: RawRecord | undefined): Usage | undefined {
  const of = (field: string) => number(usage?.[field]) ?? 0
  const [input, output, written, cache_read] = [
    ...[of("inputTokens"), of("outputTokens"), of("cacheCreationInputTokens"), of("cacheReadInputTokens")],
  ] as [number, number, number, number]
  if (input + output + written + cache_read === 0) return undefined
  const folds = string(usage?.model)?.startsWith("gpt-") === true
  return { input: folds ? input + written : input, output, cache_read, cache_write: folds ? 0 : written }
}

function conversationOf(id: string, thread: RawRecord, messages: Message[]): Conversation {
  const trees = records(thread.trees)
  const repository = record(trees[0]?.repository)
  const [title, remote, commit] = [string(thread.title), string(repository?.url), string(repository?.sha)]
  const branch = string(repository?.ref)?.replace(/^refs\/heads\//, "")
  const version = string(record(thread.platform)?.clientVersion)
  return {
    id,
    kind: "person",
    title: title === undefined ? undefined : { text: title, from: "agent" },
    cwds: trees.flatMap(({ uri }) => folderOf(string(uri)) ?? []),
    git_branch: branch,
    git_remote: remote,
    git_commit: commit,
    agent_version: version,
    ...spanOf([time(thread.created), time(thread.ended), ...messages.map(({ at }) => at)]),
    messages,
    authority: 1,
  }
}

function folderOf(uri: string | undefined): string | undefined {
  try {
    return uri?.startsWith("file:") ? fileURLToPath(uri) : undefined
  } catch {
    return undefined // an address of another system's file, or none
  }
}
