import type { Effect, Hunk, Part } from "../../core/conversation.ts"
import { array, type RawRecord, records, string } from "../../core/record.ts"
import {
  commandEffect,
  commitEffects,
  editEffects,
  fileEffect,
  hunkOfNewFile,
  hunksOfReplacement,
  parsePatch,
  patchIn,
  toolOrigin,
} from "./effects.ts"

/** The action of a call, described in the same way for the tools of all agents. */
export type CallAction = { command?: string; reads?: readonly string[]; hunks?: readonly Hunk[] }

/** A call and its outcome. `action` is what it attempted: if it failed, nothing was read or changed. */
type FinishedCall = {
  tool: string | undefined
  call_id: string | undefined
  output: string
  /** The output of the command itself, if the agent added text around it. */
  commandOutput?: string
  failed: boolean
  exit_status?: number
  action: CallAction
  /** True if a remote server answered. Needed only if the tool's name does not show that. */
  isRemote?: boolean
}

export function resultOfCall(call: FinishedCall): { part: Part; effects: Effect[] } {
  const { tool, call_id, output, exit_status, action } = call
  const failed = call.failed || (exit_status !== undefined && exit_status !== 0)
  const hunks = failed ? [] : [...(action.hunks ?? [])]
  const part: Part = {
    type: "tool_result",
    text: output,
    origin: call.isRemote ? "web" : toolOrigin(tool),
    tool,
    call_id,
    is_error: failed,
    hunks: hunks.length > 0 ? hunks : undefined,
  }
  const effects: Effect[] = editEffects(hunks, call_id)
  if (!failed) effects.push(...(action.reads ?? []).map((path) => fileEffect(path, "read", call_id)))
  if (action.command !== undefined) {
    const outcome = { failed, output: call.commandOutput ?? output, call_id }
    effects.push(commandEffect(action.command, { ...outcome, exit_status }))
    if (!failed) effects.push(...commitEffects(action.command, output, call_id))
  }
  return { part, effects }
}

export function toolCallPart(tool: string | undefined, input: unknown, call_id: string | undefined): Part {
  return {
    type: "tool_call",
    text: typeof input === "string" ? input : JSON.stringify(input ?? {}),
    origin: "agent",
    tool: tool ?? "unknown",
    call_id,
  }
}

/** The names of an agent's tools, grouped by what the tools do. */
export type ToolNames = Partial<Record<"command" | "read" | "write" | "edit" | "patch" | "editor", readonly string[]>>

/** Derives the action of a call from the name of its tool, by the argument names that most agents use. */
export function actionByName(names: ToolNames, tool: string | undefined, args: RawRecord): CallAction {
  const isToolFor = (kind: keyof ToolNames) => tool !== undefined && names[kind]?.includes(tool)
  if (isToolFor("command")) {
    const command = firstText(args, ["command", "cmd", "CommandLine"])
    return command === undefined ? {} : { command }
  }
  if (isToolFor("patch")) {
    const patch = patchIn(firstText(args, ["patch", "input", "patchText"]) ?? "")
    return patch === undefined ? {} : { hunks: parsePatch(patch).hunks }
  }
  const path = firstText(args, ["path", "file_path", "filePath", "target_file"])
  if (path === undefined) return {}
  if (isToolFor("read")) return { reads: [path] }
  if (isToolFor("write")) {
    const content = [args.content, args.file_text, args.contents].find((text) => typeof text === "string")
    return content === undefined ? {} : { hunks: [hunkOfNewFile(path, content as string)] }
  }
  if (isToolFor("editor")) return editorAction(path, args)
  if (!isToolFor("edit")) return {}
  const edits = array(args.edits).length > 0 ? records(args.edits) : [args]
  return { hunks: edits.flatMap((edit) => hunksOfReplacement(path, oldText(edit), newText(edit))) }
}

/** Derives the action of a call to a tool that reads and edits files. The argument `command` selects the operation. */
export function editorAction(path: string, args: RawRecord): CallAction {
  switch (args.command) {
    case "view":
      return { reads: [path] }
    case "create":
    case "write": {
      const content = string(args.file_text) ?? string(args.content) ?? string(args.new_str)
      return content === undefined ? {} : { hunks: [hunkOfNewFile(path, content)] }
    }
    case "str_replace":
    case "strReplace":
      return { hunks: hunksOfReplacement(path, oldText(args), newText(args)) }
    case "insert":
    case "append":
      return { hunks: hunksOfReplacement(path, undefined, newText(args) ?? args.content) }
    default:
      return {}
  }
}

function oldText(edit: RawRecord): unknown {
  return edit.old_string ?? edit.oldText ?? edit.old_str ?? edit.oldStr
}

function newText(edit: RawRecord): unknown {
  return edit.new_string ?? edit.newText ?? edit.new_str ?? edit.newStr
}

function firstText(args: RawRecord, names: readonly string[]): string | undefined {
  return names.map((name) => string(args[name])).find((text) => text !== undefined)
}
