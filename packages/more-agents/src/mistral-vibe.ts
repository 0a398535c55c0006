import { join } from "node:path"
import { actionByName, type CallAction, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, Unit, UnitName } from "../../../src/agents/kit/connector.ts"
import { hunksOfReplacement } from "../../../src/agents/kit/effects.ts"
import {
  entriesOf,
  objectAt,
  type Report,
  readLines,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import {
  addSessionUsage,
  type ConversationFields,
  cutLongTexts,
  digestOf,
  imagePart,
  parsedFrom,
  uniqueKeys,
  usageFrom,
} from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Origin, Part, Title } from "../../../src/core/conversation.ts"
import { parseObject, type RawRecord, record, records, string } from "../../../src/core/record.ts"
import type { Usage } from "../../../src/core/usage.ts"
import { vibeRoots } from "./records.ts"

/**
 * Reads Mistral Vibe: a folder per session, with its messages, a file of facts about the session, and folders of its subagents.
 */
export const mistralVibeConnector: Connector = {
  source: "mistral_vibe",
  version: 1,
  roots: vibeRoots,
  discover: (root) => withProblems((report) => sessionsIn(root, "", MAX_NESTED, report)),
  watched: (root) => [{ folder: root, depth: 1 + 2 * MAX_NESTED, files: /\/(messages\.jsonl|meta\.json)$/ }],
  read: readLines(stripMessage),
  parse: parseVibe,
  identify,
}

const MAX_META_BYTES = 16 << 20
/** Subagents that are nested more deeply than this are not read. */
const MAX_NESTED = 3

function* sessionsIn(folder: string, prefix: string, nestingLeft: number, report: Report): Generator<Unit> {
  for (const entry of entriesOf(folder, report)) {
    if (!entry.isDirectory()) continue
    const [session, key] = [join(folder, entry.name), `${prefix}${entry.name}`]
    const path = join(session, "messages.jsonl")
    const unit = unitAt(path, key, report)
    if (unit) yield unitWithFacts(unit, factsAt(join(session, "meta.json"), report))
    if (nestingLeft > 0) yield* sessionsIn(join(session, "agents"), `${key}/agents/`, nestingLeft - 1, report)
  }
}

/** Reads the facts about a session. The settings, the system prompt and the tools' descriptions in that file are not stored. */
function factsAt(path: string, report: Report): RawRecord | undefined {
  const meta = objectAt(path, MAX_META_BYTES, report)
  if (!meta) return undefined
  const { session_id, parent_session_id, start_time, end_time, git_commit, git_branch, title, title_source } = meta
  return {
    type: "dex-session",
    ...{ session_id, parent_session_id, start_time, end_time, git_commit, git_branch, title, title_source },
    cwd: string(record(meta.environment)?.working_directory) ?? meta.working_dir,
    model: string(meta.model) ?? record(meta.config)?.active_model,
    stats: meta.stats,
  }
}

function identify(entry: RawRecord): string | undefined {
  if (entry.type === "dex-session") return "dex-session"
  return string(entry.message_id) ?? string(entry.tool_call_id)
}

function stripMessage({ reasoning_signature: _, reasoning_state: __, ...message }: RawRecord): RawRecord {
  return cutLongTexts(
    Array.isArray(message.images) ? { ...message, images: records(message.images).map(stripImage) } : message,
  )
}

/** Replaces the bytes of an image with a digest. In older versions, the fields of `source` are in the image itself. */
function stripImage(image: RawRecord): RawRecord {
  const { data, ...source } = record(image.source) ?? image
  if (typeof data !== "string") return image
  return { alias: image.alias, ...source, image: digestOf(Buffer.from(data, "base64"), string(image.mime_type)) }
}

const TOOLS = {
  command: ["bash"],
  read: ["read", "read_file"],
  write: ["write_file"],
  edit: ["edit"],
}

type Content = Pick<Message, "role" | "parts" | "effects">
type Call = { tool: string | undefined; args: RawRecord }

function parseVibe(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const entries: RawRecord[] = []
  let facts: RawRecord = {}
  for (const entry of raw) {
    if (entry.type === "dex-session") facts = entry
    else entries.push(entry)
  }
  const id = string(facts.session_id) ?? unit.key.split("/").at(-1)!
  const calls = callsIn(entries)
  const uniqueKey = uniqueKeys()
  const unknown = createCounts()
  const messages: Message[] = []
  for (const entry of entries) {
    const content = contentOf(entry, calls)
    if (!content) unknown.add(string(entry.role) ?? string(entry.type) ?? "(no role)")
    else if (content.parts.length > 0)
      messages.push({ key: uniqueKey(recordKey(entry) ?? `${id}:${content.role}:${messages.length}`), ...content })
  }
  addSessionUsage(messages, string(facts.model), vibeUsage(record(facts.stats)))
  const isSubagent = unit.key.includes("/agents/")
  const fields: ConversationFields = {
    id,
    kind: isSubagent ? "subagent" : "person",
    title: titleOf(facts, messages),
    cwd: facts.cwd,
    git_branch: facts.git_branch,
    git_commit: facts.git_commit,
    parent: isSubagent ? facts.parent_session_id : undefined,
    resume_of: isSubagent ? undefined : facts.parent_session_id,
    times: [facts.start_time, facts.end_time],
    messages,
  }
  return parsedFrom(fields, unknown)
}

/** Returns the key of a record. A record has the same key in a fork, which copies messages together with their ids. */
function recordKey(entry: RawRecord): string | undefined {
  const call = string(entry.tool_call_id)
  return string(entry.message_id) ?? (call && `result ${call}`)
}

function callsIn(entries: RawRecord[]): Map<string, Call> {
  const calls = entries.flatMap((entry) => records(entry.tool_calls))
  return new Map(calls.map((call) => [string(call.id) ?? "", callOf(call)]))
}

function callOf(call: RawRecord): Call {
  const { name, arguments: rawArgs } = record(call.function) ?? {}
  return { tool: string(name), args: record(rawArgs) ?? parseObject(string(rawArgs) ?? "") ?? {} }
}

/** Returns undefined for an unknown role. */
function contentOf(entry: RawRecord, calls: Map<string, Call>): Content | undefined {
  switch (entry.role) {
    case "user":
      return { role: "user", parts: promptParts(entry) }
    case "assistant":
      return { role: "assistant", parts: answerParts(entry) }
    case "tool":
      return resultOf(entry, calls)
    case "system":
      return { role: "system", parts: textParts(entry.content, "injected") }
    default:
      return undefined
  }
}

function promptParts(entry: RawRecord): Part[] {
  const origin = entry.injected === true ? "injected" : "person"
  const images = records(entry.images).map((image) => imagePart(image.image, origin, string(image.alias)))
  return [...textParts(entry.content, origin), ...images]
}

function answerParts(entry: RawRecord): Part[] {
  const thinking = string(entry.reasoning_content)
  return [
    ...(thinking === undefined ? [] : [{ type: "thinking", text: thinking, origin: "agent" } as const]),
    ...textParts(entry.content, "agent"),
    ...records(entry.tool_calls).map((call) =>
      toolCallPart(callOf(call).tool, record(call.function)?.arguments, string(call.id)),
    ),
  ]
}

/** Parses a result. It has one line per field, except for a failed command, whose result is a sentence with the exit code. */
function resultOf(entry: RawRecord, calls: Map<string, Call>): Content {
  const call_id = string(entry.tool_call_id)
  const call = calls.get(call_id ?? "")
  const tool = string(entry.name) ?? call?.tool
  const text = textParts(entry.content, "local_tool")
    .map((part) => part.text)
    .join("\n")
  const exit = tool === "bash" ? /^(returncode|Return code): (-?\d{1,10})$/m.exec(text) : undefined
  const commandOutput = exit?.[1] === "Return code" ? text.slice(exit.index + exit[0].length) : text
  const { part, effects } = resultOfCall({
    tool,
    call_id,
    output: commandOutput.replace(/^stdout: /m, ""),
    failed: /^\s*<(?:tool_error|user_cancellation)>/.test(text),
    exit_status: exit ? Number(exit[2]) : undefined,
    action: call ? actionOf(call) : {},
  })
  return { role: "tool", parts: [{ ...part, text }], effects: effects.length > 0 ? effects : undefined }
}

function actionOf({ tool, args }: Call): CallAction {
  const path = string(args.file_path) ?? string(args.path)
  if (tool !== "search_replace" || path === undefined) return actionByName(TOOLS, tool, args)
  return {
    hunks: searchReplacePairs(string(args.content) ?? "").flatMap(([before, after]) =>
      hunksOfReplacement(path, before, after),
    ),
  }
}

/** Parses an edit from before version 2.10, which is a text with `<<<<<<< SEARCH`, `=======` and `>>>>>>> REPLACE`. */
function searchReplacePairs(text: string): [string, string][] {
  return text.split(/^<{5,9} SEARCH\n/m).flatMap((block): [string, string][] => {
    const [edit, ...rest] = block.split(/^>{5,9} REPLACE$/m)
    const [before, ...after] = edit!.split(/^={5,9}\n/m)
    return rest.length > 0 && after.length > 0 ? [[before!, after.join("")]] : []
  })
}

function textParts(content: unknown, origin: Origin): Part[] {
  const texts = typeof content === "string" ? [content] : records(content).map(({ text }) => text)
  return texts.flatMap((text): Part[] => (string(text) ? [{ type: "text", text: string(text)!, origin }] : []))
}

function vibeUsage(stats: RawRecord | undefined): Usage | undefined {
  return usageFrom({
    prompt: stats?.session_prompt_tokens,
    output: stats?.session_completion_tokens,
    cache_read: stats?.session_cached_tokens,
    cost: stats?.session_cost,
  })
}

/** Returns the session's title. A title that nobody chose is ignored if it is only the beginning of the first prompt. */
function titleOf(facts: RawRecord, messages: Message[]): Title | undefined {
  const text = string(facts.title)
  if (text === undefined) return undefined
  if (facts.title_source === "manual") return { text, from: "person" }
  const prompt = messages.find(({ role }) => role === "user")?.parts[0]?.text ?? ""
  return prompt.startsWith(text.replace(/…$/, "")) ? undefined : { text, from: "agent" }
}
