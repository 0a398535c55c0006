import { isAbsolute, join } from "node:path"
import { type CallAction, resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, Unit, UnitName, Unreadable } from "../../../src/agents/kit/connector.ts"
import { hunkOfNewFile, hunksOfReplacement } from "../../../src/agents/kit/effects.ts"
import {
  type Report,
  readLines,
  subfolders,
  textAt,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import { cutLongTexts, parsedFrom, uniqueKeys, usageFrom, utcTime } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Effect, Message, Origin, Part } from "../../../src/core/conversation.ts"
import { parseObject, type RawRecord, record, string } from "../../../src/core/record.ts"
import { gptmeRoots } from "./records.ts"

/** Reads gptme: a file of messages in a folder for each conversation. Calls of tools are blocks of code in the answer. */
export const gptmeConnector: Connector = {
  source: "gptme",
  version: 1,
  roots: gptmeRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 1, files: /^[^/]+\/(?:conversation\.jsonl|config\.toml)$/ }],
  read: readLines(cutLongTexts),
  parse: parseGptme,
  identify: (entry) => (entry.type === "dex-session" ? "dex-session" : undefined),
}

const MAX_SETTINGS_BYTES = 1 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const name of subfolders(root, report)) {
    const unit = unitAt(join(root, name, "conversation.jsonl"), name, report)
    if (unit) yield unitWithFacts(unit, factsIn(textAt(join(root, name, "config.toml"), MAX_SETTINGS_BYTES, report)))
  }
}

/** Takes the folder and the name from a conversation's settings, which may also contain secrets. */
function factsIn(settings: string | undefined): RawRecord | undefined {
  const settingIn = (name: string) => {
    const quoted = new RegExp(`^${name} = ("(?:[^"\\\\\n]|\\\\.){1,4000}")$`, "m").exec(settings ?? "")?.[1]
    return quoted === undefined ? undefined : string(parseObject(`{"value":${quoted}}`)?.value)
  }
  const [workspace, name] = [settingIn("workspace"), settingIn("name")]
  if (workspace === undefined && name === undefined) return undefined
  return { type: "dex-session", workspace: workspace && isAbsolute(workspace) ? workspace : undefined, name }
}

type Call = { id: string; tool: string; input: RawRecord | string; action: CallAction }

function parseGptme(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const unknown = createCounts()
  const uniqueKey = uniqueKeys()
  const messages: Message[] = []
  let facts: RawRecord = {}
  let pending: Call[] = []
  for (const entry of raw) {
    const text = string(entry.content)
    if (entry.type === "dex-session") facts = entry
    else if (!ROLES.has(String(entry.role))) unknown.add(string(entry.type) ?? string(entry.role) ?? "(no type)")
    if (text === undefined || !ROLES.has(String(entry.role))) continue
    // A message has no id, and its position changes when the person edits the conversation.
    const key = uniqueKey(`${unit.key}:${entry.timestamp}`)
    const at = utcTime(entry.timestamp)
    if (entry.role === "assistant") {
      pending = callsIn(text, key)
      const metadata = record(entry.metadata)
      messages.push({
        key,
        role: "assistant",
        at,
        model: string(metadata?.model),
        parts: [
          { type: "text", text, origin: "agent" },
          ...pending.map(({ id, tool, input }) => toolCallPart(tool, input, id)),
        ],
        usage: gptmeUsage(record(metadata?.usage)),
      })
      continue
    }
    const call = entry.role === "system" && entry.hide !== true ? pending.shift() : undefined
    const { role, parts, effects } = call ? resultOf(call, text) : wordsOf(entry.role, text)
    messages.push({ key, role, at, parts, effects: effects.length > 0 ? effects : undefined })
  }
  return parsedFrom({ id: unit.key, title: facts.name, cwd: facts.workspace, messages }, unknown)
}

const ROLES = new Set(["system", "user", "assistant"])

type Content = { role: Message["role"]; parts: Part[]; effects: Effect[] }

/** Words of gptme in the person's place are in a tag. */
function wordsOf(role: unknown, text: string): Content {
  const origin: Origin = role === "user" && !/^<system>/.test(text) ? "person" : "injected"
  return { role: role === "user" ? "user" : "system", parts: [{ type: "text", text, origin }], effects: [] }
}

function resultOf({ id, tool, action }: Call, text: string): Content {
  const code = action.command === undefined ? undefined : /^Return code: (-?\d{1,5})$/m.exec(text)?.[1]
  const { part, effects } = resultOfCall({
    tool,
    call_id: id,
    output: text,
    failed: /^(?:Error|Aborted|Patch failed|Tool .{0,200} failed)/.test(text),
    exit_status: code === undefined ? (/^Ran command/.test(text) ? 0 : undefined) : Number(code),
    action,
  })
  return { role: "tool", parts: [part], effects }
}

const TOOLS = [
  "shell",
  "ipython",
  "save",
  "append",
  "patch",
  "patch_many",
  "read",
  "tmux",
  "browser",
  "subagent",
  "vision",
]
const BLOCK = new RegExp(`^\`\`\`(${TOOLS.join("|")})(?: ([^\n]{1,4000}))?$`)
/** A call in the form that a model makes it itself: `@save(call-1): {"path": …}`. */
const NATIVE = /^@(\w{1,100})\(([^)\n]{1,200})\): (\{.*)$/

function callsIn(text: string, key: string): Call[] {
  const calls: Call[] = []
  const lines = text.split("\n")
  for (let index = 0; index < lines.length; index++) {
    const native = NATIVE.exec(lines[index]!)
    const block = BLOCK.exec(lines[index]!)
    if (native) {
      const input = parseObject(native[3]!) ?? {}
      calls.push({ id: native[2]!, tool: native[1]!, input, action: actionOf(native[1]!, string(input.path), input) })
    } else if (block) {
      const end = lines.indexOf("```", index + 1)
      if (end === -1) break
      const content = lines.slice(index + 1, end).join("\n")
      const input = { content, command: content, patch: content }
      const action = actionOf(block[1]!, block[2], input)
      calls.push({
        id: `${key}:${calls.length + 1}`,
        tool: block[1]!,
        input: block[2] ? { path: block[2], content } : content,
        action,
      })
      index = end
    }
  }
  return calls
}

function actionOf(tool: string, path: string | undefined, { content, command, patch }: RawRecord): CallAction {
  if (tool === "shell") return string(command) === undefined ? {} : { command: string(command)!.trim() }
  if (path === undefined) return {}
  if (tool === "read") return { reads: [path] }
  if (tool === "save" && typeof content === "string") return { hunks: [hunkOfNewFile(path, content)] }
  if (tool === "append") return { hunks: hunksOfReplacement(path, undefined, content) }
  return tool === "patch" ? { hunks: hunksOfPatch(path, string(patch) ?? "") } : {}
}

/** gptme marks what it replaces with ORIGINAL and UPDATED. */
function hunksOfPatch(path: string, patch: string) {
  return patch.split(/^<<<<<<< ORIGINAL$/m).flatMap((block) => {
    const [before, rest] = block.split(/^=======$/m)
    const [after, end] = (rest ?? "").split(/^>>>>>>> UPDATED$/m)
    return end === undefined ? [] : hunksOfReplacement(path, before!.replace(/^\n/, ""), after!.replace(/^\n/, ""))
  })
}

function gptmeUsage(usage: RawRecord | undefined) {
  return usageFrom({
    input: usage?.input_tokens,
    output: usage?.output_tokens,
    cache_read: usage?.cache_read_tokens,
    cache_write: usage?.cache_creation_tokens,
  })
}
