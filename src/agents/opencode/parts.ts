import { fileURLToPath } from "node:url"
import type { Effect, Hunk, Message, Origin, Part } from "../../core/conversation.ts"
import { number, type RawRecord, record, records, string, time } from "../../core/record.ts"
import { addRequest, type Usage } from "../../core/usage.ts"
import { commandEffect, commitEffects, editEffects, fileEffect, hunkOfNewFile, hunksOfDiff } from "../kit/effects.ts"
import { splitAddedText } from "../kit/messages.ts"

// Parses the data that OpenCode's older and newer tables have in common: tool calls, files, token counts.

export type PartsAndEffects = { parts: Part[]; effects?: Effect[] }

/** OpenCode's own tools that work on this machine. The tools of MCP servers are marked only by their server's name. */
const LOCAL_TOOLS = new Set([
  ...["bash", "shell", "read", "write", "edit", "multiedit", "apply_patch", "patch", "glob", "grep", "list", "ls"],
  ...["task", "todowrite", "todoread", "skill", "question", "lsp", "batch", "plan_enter", "plan_exit", "invalid"],
])

/** Returns the parts of a call and, if it has ended, of its result. OpenCode stores both in one part, which it updates. */
export function toolParts(part: RawRecord, id: string): PartsAndEffects {
  const call = callOf(part, id)
  const { tool, call_id, input, status } = call
  const parts: Part[] = [{ type: "tool_call", text: inputText(input), origin: "agent", tool, call_id }]
  if (status === "running") return { parts }
  const hunks = status === "completed" ? hunksOf(call) : []
  const { text, added } = splitAddedText(call.output)
  const origin: Origin = LOCAL_TOOLS.has(tool) ? "local_tool" : "web"
  parts.push({
    type: "tool_result",
    text,
    origin,
    tool,
    call_id,
    is_error: status === "failed" || (call.exit !== undefined && call.exit !== 0),
    hunks: hunks.length > 0 ? hunks : undefined,
  })
  parts.push(...call.attachments.flatMap((file) => fileParts(file, origin).parts))
  parts.push(...added)
  return { parts, effects: effectsOf({ ...call, output: text }, hunks) }
}

type Call = {
  tool: string
  call_id: string
  input: unknown
  status: "running" | "completed" | "failed"
  output: string
  exit?: number
  metadata: RawRecord
  attachments: RawRecord[]
}

function callOf(part: RawRecord, id: string): Call {
  const invocation = record(part.toolInvocation) // the format before version 0.3
  if (invocation) {
    return {
      tool: string(invocation.toolName) ?? "unknown",
      call_id: string(invocation.toolCallId) ?? id,
      input: invocation.args,
      status: invocation.state === "result" ? "completed" : "running",
      output: textOrJson(invocation.result),
      metadata: {},
      attachments: [],
    }
  }
  const state = record(part.state) ?? {}
  const metadata = record(state.metadata) ?? {}
  const content = records(state.content)
  const failed = state.status === "error"
  return {
    tool: string(part.tool) ?? string(part.name) ?? "unknown",
    call_id: string(part.callID) ?? (part.tool === undefined ? string(part.id) : undefined) ?? id,
    input: state.input ?? state.raw,
    status: failed ? "failed" : state.status === "completed" || state.status === "success" ? "completed" : "running",
    output: failed
      ? errorMessageOf(state.error)
      : textOrJson(state.output) || content.map((item) => textOrJson(item.text)).join("\n"),
    exit: number(metadata.exit),
    metadata,
    attachments: [...records(state.attachments), ...content.filter((item) => item.type === "file")],
  }
}

function effectsOf({ tool, call_id, input, status, output, exit, metadata }: Call, hunks: Hunk[]): Effect[] {
  const args = record(input) ?? {}
  const path = string(args.filePath) ?? string(args.path)
  switch (tool) {
    case "bash":
    case "shell": {
      const command = string(args.command)
      if (command === undefined) return []
      const failed = status === "failed" ? true : undefined
      const outcome = { call_id, output, exit_status: exit, failed }
      return [commandEffect(command, outcome), ...commitEffects(command, output, call_id)]
    }
    case "read":
      return status === "completed" && path !== undefined ? [fileEffect(path, "read", call_id)] : []
    case "edit":
    case "write":
    case "multiedit":
    case "apply_patch":
    case "patch": {
      if (status !== "completed") return []
      if (hunks.length > 0) return editEffects(hunks, call_id)
      const paths = records(metadata.files).flatMap((file) => string(file.filePath) ?? [])
      return (paths.length > 0 ? paths : path === undefined ? [] : [path]).map((file) =>
        fileEffect(file, "edited", call_id),
      )
    }
    default:
      return []
  }
}

/** Returns the hunks of an edit. Only `metadata.patch` is exact: other diffs have lost the indentation that all lines share. */
function hunksOf({ tool, input, metadata }: Call): Hunk[] {
  const args = record(input)
  const path = string(args?.filePath)
  const patch = string(metadata.patch)
  const hunks = patch === undefined ? [] : hunksOfDiff(patch)
  if (hunks.length > 0) return hunks
  const fileHunks = [metadata.filediff, ...records(metadata.files), ...editsOf(metadata)].flatMap((value) => {
    const file = record(value)
    const diff = string(file?.patch) ?? string(file?.diff)
    const name = string(file?.filePath) ?? string(file?.file) ?? path
    return diff === undefined ? [] : hunksOfDiff(diff, name)
  })
  if (fileHunks.length > 0) return fileHunks
  const diff = string(metadata.diff)
  if (diff !== undefined) return hunksOfDiff(diff, path)
  const content = string(args?.content)
  const isNew = tool === "write" && metadata.exists === false
  return isNew && path !== undefined && content !== undefined ? [hunkOfNewFile(path, content)] : []
}

/** Returns the changes in the results of multiedit, which reports a result for each of its edits. */
function editsOf(metadata: RawRecord): unknown[] {
  return records(metadata.results).map((result) => result.filediff ?? result)
}

/** Returns an image as a part with its digest, and any other file as an effect that mentions it. */
export function fileParts(file: RawRecord, origin: Origin): PartsAndEffects {
  const address = file.url ?? file.uri ?? record(file.source)?.uri
  const digest = record(file.data) ?? record(address)
  const mime = string(file.mime) ?? string(digest?.media_type)
  // Since 2.0, OpenCode stores the bytes of project files too. A file with an address is only mentioned, unless it is an image.
  const isNamed = typeof address === "string" && mime?.startsWith("image/") !== true
  if (digest && !isNamed) {
    const name = string(file.filename) ?? string(file.name) ?? ""
    const sha256 = string(digest.sha256)
    const bytes = number(digest.bytes)
    return {
      parts: [
        {
          type: "image",
          text: name,
          origin,
          mime: mime || undefined,
          bytes: bytes || undefined,
          sha256: sha256 || undefined,
        },
      ],
    }
  }
  const path = pathOfUrl(string(address))
  return { parts: [], effects: path === undefined ? [] : [fileEffect(path, "mentioned")] }
}

function pathOfUrl(url: string | undefined): string | undefined {
  if (!url?.startsWith("file:///")) return undefined
  try {
    return fileURLToPath(url.split(/[?#]/)[0]!)
  } catch {
    return undefined // the URL is not a path on this machine
  }
}

/** Returns the usage of a message. A message's own count covers only its last step, so the counts of its steps are added up. */
export function opencodeUsage(assistant: RawRecord, partRows: RawRecord[]): Usage | undefined {
  const steps = partRows.flatMap((row) => {
    const part = record(row.data)
    return part?.type === "step-finish" && record(part.tokens) ? [part] : []
  })
  return usageIn(steps.length > 0 ? steps : [assistant])
}

export function usageIn(counted: RawRecord[]): Usage | undefined {
  const usage = counted.map(stepUsage).reduce<Usage | undefined>(addRequest, undefined)
  return usage && Object.values(usage).some((amount) => Number(amount) > 0) ? usage : undefined
}

/** Converts a step's token counts. OpenCode's output count excludes the thoughts, which cost the same. */
function stepUsage({ tokens, cost }: RawRecord): Usage {
  const tokenCounts = record(tokens)
  const cache = record(tokenCounts?.cache)
  const reasoning = number(tokenCounts?.reasoning)
  const recordedCost = number(cost)
  return {
    input: number(tokenCounts?.input) ?? 0,
    output: (number(tokenCounts?.output) ?? 0) + (reasoning ?? 0),
    cache_read: number(cache?.read) ?? 0,
    cache_write: number(cache?.write) ?? 0,
    reasoning: reasoning || undefined,
    cost: recordedCost || undefined,
  }
}

/** Removes the quotes in which `opencode run "fix it"` stores an argument that contains a space. */
export function promptWithoutQuotes(text: string): string {
  const content = /^"((?:[^"]|(?<=\\)")*)"\s*$/s.exec(text)?.[1]
  return content?.includes(" ") ? content.replaceAll('\\"', '"') : text
}

/** Returns the input of a call as text. The input of an unfinished call is a piece of text. */
function inputText(input: unknown): string {
  return typeof input === "string" ? input : JSON.stringify(input ?? {})
}

function textOrJson(value: unknown): string {
  if (typeof value === "string") return value
  return value === undefined || value === null ? "" : JSON.stringify(value)
}

/** Returns a message's error as a separate message. */
export function errorNotice(id: string, text: string, at: number | undefined): Message {
  const parts: Part[] = [{ type: "text", text, origin: "agent" }]
  return { key: `${id}:error`, role: "system", at, parts }
}

function errorMessageOf(error: unknown): string {
  const fields = record(error)
  return fields
    ? (string(fields.message) ?? string(record(fields.data)?.message) ?? textOrJson(fields))
    : textOrJson(error)
}

/** Returns the message in a `session_message` row and its error. Since 2.0, such rows replace `message` and `part` rows. */
export function eventMessages(row: RawRecord, promptOrigin: Origin, countUnknown: (type: string) => void): Message[] {
  const message = eventMessage(row, promptOrigin, countUnknown)
  const error = row.type === "assistant" ? record(row.data)?.error : undefined
  const text = error === undefined || error === null ? "" : errorMessageOf(error)
  const at = time(row.time_created)
  return [...(message ? [message] : []), ...(text ? [errorNotice(String(row.id), text, at)] : [])]
}

function eventMessage(row: RawRecord, promptOrigin: Origin, countUnknown: (type: string) => void): Message | undefined {
  const key = string(row.id)
  const data = record(row.data)
  if (key === undefined || !data) return undefined
  const at = time(record(data.time)?.created) ?? time(row.time_created)
  const base = { key, at }
  const text = string(data.text)
  switch (row.type) {
    case "user": {
      const files = records(data.files).map((file) => fileParts(file, promptOrigin))
      const skills = records(data.skills).flatMap((skill): Part[] => {
        const text = string(skill.text)
        return text === undefined ? [] : [{ type: "text", text, origin: "injected" }]
      })
      return combineParts({ ...base, role: "user" }, [
        { parts: promptParts(text ?? "", promptOrigin) },
        { parts: skills },
        ...files,
      ])
    }
    case "synthetic":
    case "skill":
      return text === undefined
        ? undefined
        : { ...base, role: "user", parts: [{ type: "text", text, origin: "injected" }] }
    case "system":
      return text === undefined
        ? undefined
        : { ...base, role: "system", parts: [{ type: "text", text, origin: "injected" }] }
    case "shell":
      return shellMessage(base, data)
    case "assistant": {
      const content = records(data.content).map((part, index) => assistantPart(part, `${key}:${index}`, countUnknown))
      const model = string(record(data.model)?.id) ?? string(record(data.model)?.modelID)
      const usage = usageIn([data])
      return combineParts({ ...base, role: "assistant", model: model || undefined, usage }, content)
    }
    case "compaction": {
      const summary = string(data.summary)
      const usage = usageIn([data])
      if (!summary) return undefined
      return {
        ...base,
        role: "system",
        parts: [{ type: "summary", text: summary, origin: "agent" }],
        usage,
      }
    }
    case "agent-switched":
    case "model-switched":
    case "location-switched":
    case "idle":
      return undefined
    default:
      countUnknown(`session_message ${String(row.type)}`)
      return undefined
  }
}

/** Matches the text that the upgrade to 2.0 wrote into the prompt in place of a file. */
const UNAVAILABLE_FILE = /(?:^|\n\n)(\[Attachment unavailable after migration: [^\n]*\])/g

function promptParts(text: string, promptOrigin: Origin): Part[] {
  const missing = [...text.matchAll(UNAVAILABLE_FILE)].map(([, note]) => note!)
  const typed = promptWithoutQuotes(missing.length > 0 ? text.replaceAll(UNAVAILABLE_FILE, "") : text)
  const parts: Part[] = typed.trim() === "" ? [] : [{ type: "text", text: typed, origin: promptOrigin }]
  return [...parts, ...missing.map((note): Part => ({ type: "text", text: note, origin: "injected" }))]
}

function assistantPart(part: RawRecord, id: string, countUnknown: (type: string) => void): PartsAndEffects {
  const text = string(part.text)
  switch (part.type) {
    case "text":
      return { parts: text === undefined ? [] : [{ type: "text", text, origin: "agent" }] }
    case "reasoning":
      return { parts: text === undefined ? [] : [{ type: "thinking", text, origin: "agent" }] }
    case "tool":
      return toolParts(part, id)
    default:
      countUnknown(`session_message content ${String(part.type)}`)
      return { parts: [] }
  }
}

/** Returns a command that the person ran from the prompt. */
function shellMessage(commonFields: { key: string; at?: number }, data: RawRecord): Message | undefined {
  const command = string(data.command)
  if (command === undefined) return undefined
  const output = string(data.output) ?? string(record(data.output)?.output) ?? string(record(data.output)?.text) ?? ""
  const exitCode = number(data.exit)
  const call_id = string(data.callID) ?? string(data.shellID) ?? commonFields.key
  const outcome = { call_id, output, exit_status: exitCode }
  const isError = exitCode !== undefined && exitCode !== 0
  return {
    ...commonFields,
    role: "user",
    parts: [
      { type: "text", text: `!${command}`, origin: "person" },
      { type: "tool_result", text: output, origin: "local_tool", tool: "shell", call_id, is_error: isError },
    ],
    effects: [commandEffect(command, outcome), ...commitEffects(command, output, call_id)],
  }
}

function combineParts(message: Omit<Message, "parts" | "effects">, contents: PartsAndEffects[]): Message | undefined {
  const parts = contents.flatMap((content) => content.parts)
  const effects = contents.flatMap((content) => content.effects ?? [])
  return parts.length === 0 ? undefined : { ...message, parts, effects: effects.length > 0 ? effects : undefined }
}

/** The end of the id of a message or a part that dex copied for `dex resume`. */
const COPY_SUFFIX = /dex[0-9a-f]{8}(?=:|$)/

/** Returns the id, or the key that begins with it, that a copied message has in the original conversation. */
export function originalId(id: string): string {
  return id.replace(COPY_SUFFIX, "")
}
