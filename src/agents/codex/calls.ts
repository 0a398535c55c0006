import type { Effect, Hunk, Message, Part } from "../../core/conversation.ts"
import { defined } from "../../core/defined.ts"
import type { RawRecord } from "../../core/record.ts"
import { array, isRecord, number, parseObject, record, records, string } from "../../core/record.ts"
import { parsePatch, patchIn } from "../kit/apply-patch.ts"
import {
  commandEffect,
  commitEffects,
  editEffects,
  fileEffect,
  hunkOfNewFile,
  hunksOfDiff,
  toolOrigin,
} from "../kit/effects.ts"

type Result = Extract<Part, { type: "tool_result" }>

/** A tool call, with all that later records tell of it. They come in any order. */
export type CodexCall = {
  message?: Message
  tool?: string
  command?: string
  patch?: string
  image?: string
  result?: Result
  exitStatus?: number
  failed?: boolean
  changes?: RawRecord
  reads: string[]
  isRemote: boolean
}

export const newCall = (): CodexCall => ({ reads: [], isRemote: false })

const SHELLS = /^(shell|shell_command|local_shell|exec_command|container\.exec|unified_exec)$/

/** What a call's input says it will do. */
export function describeCall(call: CodexCall, tool: string, input: string, args: RawRecord | undefined): void {
  call.tool = tool
  if (tool === "apply_patch") call.patch = patchIn(string(args?.input) ?? input)
  else if (tool === "view_image") call.image = string(args?.path)
  else if (SHELLS.test(tool) && args) {
    call.command = commandOf(args.cmd ?? args.command)
    if (call.command && /\bapply_?patch\b/.test(call.command)) call.patch = patchIn(call.command)
  }
}

/** `["bash", "-lc", script]` is the script: the rest is how Codex runs everything. */
export function commandOf(command: unknown): string | undefined {
  if (typeof command === "string") return string(command)
  const argv = array(command).filter((word) => typeof word === "string")
  if (argv.length === 3 && /(^|\/)(ba|z|da|fi)?sh$/.test(argv[0]!) && /^-l?c$/.test(argv[1]!)) return string(argv[2])
  return string(argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`)).join(" "))
}

/** Once every record was read: effects go to the message that holds the call, hunks to the result. */
export function settleCall(call: CodexCall, id: string): void {
  const { message, result } = call
  const failed = call.failed ?? (call.exitStatus === undefined ? wasRefused(call) : call.exitStatus !== 0)
  if (result) {
    if (call.tool) result.tool = call.tool
    result.origin = call.isRemote ? "web" : toolOrigin(result.tool)
    if (failed !== undefined) result.is_error = failed
  }
  if (!message) return
  const effects: Effect[] = []
  const edits = call.patch !== undefined || call.changes ? editsOf(call, id, failed) : undefined
  if (edits) {
    if (result && edits.hunks.length > 0) result.hunks = edits.hunks
    effects.push(...editEffects(edits.hunks, id), ...edits.deleted)
  } else if (call.command) {
    const output = result?.text ?? ""
    effects.push(commandEffect(call.command, { call_id: id, exit_status: call.exitStatus, failed, output }))
    effects.push(...call.reads.map((path) => fileEffect(path, "read", id)))
    if (!failed) effects.push(...commitEffects(call.command, output, id))
  } else if (call.image) effects.push(fileEffect(call.image, "read", id))
  if (effects.length > 0) message.effects = [...(message.effects ?? []), ...effects]
}

/** A patch that does not apply says so in its output only. Of other tools nothing is known. */
function wasRefused({ patch, result }: CodexCall): boolean | undefined {
  if (patch === undefined || !result) return undefined
  return /^(apply_patch verification failed|error|failed|invalid|patch rejected)/i.test(result.text)
}

type Edits = { hunks: Hunk[]; deleted: Effect[] }

/** A patch that failed, or of which no outcome is known, has changed nothing. */
function editsOf(call: CodexCall, id: string, failed: boolean | undefined): Edits {
  const nothing = { hunks: [], deleted: [] }
  if (failed || (!call.result && !call.changes)) return nothing
  const told = call.changes ? editsOfChanges(call.changes, id) : nothing
  if (told.hunks.length > 0 || told.deleted.length > 0) return told
  const patch = parsePatch(call.patch ?? "")
  return { hunks: patch.hunks, deleted: patch.deleted.map((path) => fileEffect(path, "edited", id)) }
}

/** `{path: {type: "update", unified_diff}}`, or `{path: {update: {unified_diff}}}` in older files. */
function editsOfChanges(changes: RawRecord, id: string): Edits {
  const edits: Edits = { hunks: [], deleted: [] }
  for (const [path, value] of Object.entries(changes)) {
    const told = record(value)
    const [tag] = Object.keys(told ?? {})
    const change = typeof told?.type === "string" ? told : { ...record(told?.[tag ?? ""]), type: tag }
    const diff = string(change.unified_diff)
    const content = string(change.content)
    if (change.type === "add" && content !== undefined) edits.hunks.push(hunkOfNewFile(path, content))
    else if (change.type === "update" && diff) edits.hunks.push(...hunksOfDiff(diff, string(change.move_path) ?? path))
    else if (change.type === "delete") {
      const removed = number(change.lines)
      edits.deleted.push({
        ...fileEffect(path, "edited", id),
        ...defined({ added: removed === undefined ? undefined : 0, removed }),
      })
    }
  }
  return edits
}

/** `parsed_cmd` is Codex's own reading of a command: which files it shows. */
export function readsOf(parsed: unknown): string[] {
  return records(parsed).flatMap((step) => (step.type === "read" ? (string(step.path) ?? []) : []))
}

export type Output = { text: string; exitStatus?: number; failed?: boolean; images: RawRecord[] }

/** A tool's output in any of its shapes: text, JSON text with metadata, content items, `{content, success}`. */
export function readCallOutput(output: unknown): Output {
  if (typeof output === "string") return outputOfText(output)
  if (Array.isArray(output)) {
    const items = output.filter(isRecord)
    const text = items.flatMap((item) => (typeof item.text === "string" ? [item.text] : [])).join("\n")
    return { ...outputOfText(text), images: items.filter((item) => item.type === "input_image") }
  }
  const told = record(output)
  if (!told) return { text: "", images: [] }
  if (typeof told.text === "string") return readCallOutput([told])
  const inner = readCallOutput(told.content ?? told.output ?? "")
  return typeof told.success === "boolean" ? { ...inner, failed: !told.success } : inner
}

function outputOfText(text: string): Output {
  const wrapped = text.startsWith("{") ? parseObject(text) : undefined
  const metadata = record(wrapped?.metadata)
  if (typeof wrapped?.output === "string" && metadata) {
    return { text: wrapped.output, exitStatus: number(metadata.exit_code), images: [] }
  }
  const head = HEADER.exec(text)?.[0] ?? ""
  const exit = /^(?:Process exited with code|Exit code:) (-?\d{1,10})$/m.exec(head)?.[1]
  return { text: text.slice(head.length), exitStatus: exit === undefined ? undefined : Number(exit), images: [] }
}

/** What the harness writes before a command's output. Only here does it speak of exit codes: below, anybody may. */
const HEADER =
  /^(?:(?:Chunk ID|Wall time|Process|Exit code|Original token count|Total output lines)\b[^\n]{0,200}\n){1,8}Output:(?:\n|$)/
