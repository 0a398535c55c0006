import { fileURLToPath } from "node:url"
import { actionByName, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, UnitName, Watched } from "../../../src/agents/kit/connector.ts"
import { readJsonFile, unitsBelow, withProblems } from "../../../src/agents/kit/files.ts"
import { cutLongTexts, digestOf, imagePart, parsedFrom, uniqueKeys } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Part } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import { number, type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { ampRoots } from "./records.ts"

/** Reads Amp's local threads: one file each, rewritten at every change. Newer versions store threads on Amp's server. */
export const ampConnector: Connector = {
  source: "amp",
  version: 1,
  roots: ampRoots,
  discover: (root) =>
    withProblems(function* (report) {
      for (const unit of unitsBelow(root, /^T-.*\.json$/, 0, report))
        yield { ...unit, key: unit.key.slice(0, -".json".length) }
    }),
  watched: (root): Watched[] => [{ folder: root, depth: 0, files: /^T-[^/]*\.json$/ }],
  read: (unit, after) => readJsonFile(unit.path, after, recordsOf),
  parse: parseAmp,
  identify: (entry) => (entry.type === "dex-thread" ? entry.type : undefined),
}

/** Yields a record about the thread and one per message. Other fields, such as the traces of every request, are not stored. */
function* recordsOf(file: RawRecord): Generator<RawRecord> {
  const { v, id, created, title, agentMode, messages } = file
  const { trees, platform } = record(record(file.env)?.initial) ?? {}
  const ended = records(record(file.meta)?.traces).map(({ endTime }) => endTime)
  yield { type: "dex-thread", v, id, created, title, agentMode, trees, platform, ended: ended.at(-1) }
  for (const message of records(messages)) yield stripMessage(message)
}

function stripMessage(message: RawRecord): RawRecord {
  const content = records(message.content).map(stripBlock)
  return cutLongTexts({
    ...message,
    ...withoutUndefined({ content: Array.isArray(message.content) ? content : undefined }),
  })
}

function stripBlock({ signature: _, ...block }: RawRecord): RawRecord {
  const { data, ...source } = record(block.source) ?? {}
  if (block.type !== "image" || typeof data !== "string") return block
  const mime = string(source.mediaType) ?? string(source.media_type)
  return { type: "image", image: digestOf(Buffer.from(data, "base64"), mime) }
}

const TOOLS = {
  command: ["Bash", "shell_command"],
  read: ["Read"],
  write: ["create_file"],
  edit: ["edit_file"],
  patch: ["apply_patch"],
}

type Call = { tool: string | undefined; args: RawRecord }

function parseAmp(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  let thread: RawRecord = {}
  const entries: RawRecord[] = []
  for (const entry of raw) {
    if (entry.type === "dex-thread") thread = entry
    else entries.push(entry)
  }
  const id = string(thread.id) ?? unit.key
  const calls = callsIn(entries)
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const messages = entries.flatMap((entry, place) =>
    messagesOf(entry, calls, `${id}:${number(entry.messageId) ?? place}`, (type) => unknown.add(type)),
  )
  const keyedMessages = messages.map((message) => ({ ...message, key: uniqueKey(message.key) }))
  const trees = records(thread.trees)
  const repository = record(trees[0]?.repository)
  const fields = {
    id,
    title: thread.title,
    cwds: trees.map(({ uri }) => folderOf(string(uri))),
    git_branch: string(repository?.ref)?.replace(/^refs\/heads\//, ""),
    git_remote: repository?.url,
    git_commit: repository?.sha,
    agent_version: record(thread.platform)?.clientVersion,
    times: [thread.created, thread.ended],
    messages: keyedMessages,
  }
  return parsedFrom(fields, unknown)
}

function callsIn(entries: RawRecord[]): Map<string, Call> {
  const uses = entries.flatMap(({ content }) => records(content)).filter(({ type }) => type === "tool_use")
  return new Map(
    uses.map(({ id, name, input }) => [string(id) ?? "", { tool: string(name), args: record(input) ?? {} }]),
  )
}

/** Splits an entry into messages. Amp stores tool results in the person's turns; here they become separate messages. */
function messagesOf(
  entry: RawRecord,
  calls: Map<string, Call>,
  key: string,
  countUnknown: (type: string) => void,
): Message[] {
  const usage = record(entry.usage)
  const at = time(record(entry.meta)?.sentAt) ?? time(usage?.timestamp)
  const timeField = at === undefined ? {} : { at }
  const blocks = typeof entry.content === "string" ? [{ type: "text", text: entry.content }] : records(entry.content)
  if (entry.role !== "user" && entry.role !== "assistant") {
    countUnknown(string(entry.role) ?? string(entry.type) ?? "(no role)")
    return []
  }
  const { role } = entry as { role: "user" | "assistant" } // checked above
  const results = blocks.filter(({ type }) => type === "tool_result").map((block) => resultOf(block, calls))
  const parts = blocks.flatMap((block) => partsOf(block, role, countUnknown))
  const [model, tokenUsage] = [string(usage?.model), ampUsage(usage)]
  return [
    ...results.map((message) => ({ ...message, ...timeField, key: `${key}:result` })),
    ...(parts.length === 0 ? [] : [{ key, role, ...timeField, parts, model, usage: tokenUsage }]),
  ]
}

function partsOf(block: RawRecord, role: "user" | "assistant", countUnknown: (type: string) => void): Part[] {
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
      countUnknown(`content/${string(block.type) ?? "(no type)"}`)
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
  const { part, effects } = resultOfCall({
    tool: call?.tool,
    call_id,
    output: problem ?? resultText(run.result),
    failed: problem !== undefined || (run.status !== undefined && run.status !== "done"),
    exit_status: exit,
    action: call ? actionByName(TOOLS, call.tool, call.args) : {},
  })
  return { role: "tool", parts: [part], effects: effects.length > 0 ? effects : undefined }
}

/** Returns the text of a result: a command's output, a file's content or an edit's diff. */
function resultText(result: unknown): string {
  const fields = record(result)
  if (!fields) return string(result) ?? (result === undefined || result === null ? "" : JSON.stringify(result))
  return (
    [fields.output, fields.content, fields.diff].map(string).find((text) => text !== undefined) ??
    JSON.stringify(fields)
  )
}

/** Parses token counts. OpenAI's models have no cache writes, so the tokens that Amp reports as cache writes count as input. */
function ampUsage(usage: RawRecord | undefined): Usage | undefined {
  const countOf = (field: string) => number(usage?.[field]) ?? 0
  const [input, output, written, cache_read] = [
    ...[
      countOf("inputTokens"),
      countOf("outputTokens"),
      countOf("cacheCreationInputTokens"),
      countOf("cacheReadInputTokens"),
    ],
  ] as [number, number, number, number]
  if (input + output + written + cache_read === 0) return undefined
  const isOpenai = string(usage?.model)?.startsWith("gpt-") === true
  return { input: isOpenai ? input + written : input, output, cache_read, cache_write: isOpenai ? 0 : written }
}

function folderOf(uri: string | undefined): string | undefined {
  try {
    return uri?.startsWith("file:") ? fileURLToPath(uri) : undefined
  } catch {
    return undefined // a URI of another system's file, or not a URI
  }
}
