import type { Effect, Hunk, Origin, Part } from "../../core/conversation.ts"
import { number, type RawRecord, record, records, string } from "../../core/record.ts"
import {
  commandEffect,
  commitEffects,
  editEffects,
  fileEffect,
  hunkOfNewFile,
  parsePatch,
  patchIn,
  toolOrigin,
} from "../kit/effects.ts"
import { splitInjected } from "../kit/messages.ts"

// Derives the effects of Cursor's tools. A tool has different names in the editor, the transcripts and the command line.

const COMMAND_TOOLS = new Set(["run_terminal_cmd", "run_terminal_command", "shell", "bash", "terminal"])
const READ_TOOLS = new Set(["read_file", "read"])
const EDIT_TOOLS = new Set([
  ...["edit_file", "search_replace", "strreplace", "str_replace", "edit", "multiedit", "edit_notebook", "reapply"],
  ...["write", "write_file", "delete_file", "delete", "apply_patch"],
])

export type CursorCall = {
  tool: string
  call_id: string
  input: RawRecord
  /** The input as the agent wrote it. */
  text: string
  /** Undefined if the outcome of the call is unknown. */
  outcome?: { failed: boolean; output: string; result?: RawRecord }
}

export function effectsOf({ tool, call_id, input, outcome }: CursorCall, hunks: Hunk[] = []): Effect[] {
  const name = plainName(tool)
  const path = pathOf(input)
  if (COMMAND_TOOLS.has(name)) {
    const command = string(input.command)
    if (command === undefined) return []
    const output = outcome?.output ?? ""
    const exit_status = number(outcome?.result?.exitCode) ?? number(outcome?.result?.exitCodeV2)
    const details = {
      call_id,
      output,
      exit_status,
      failed: outcome?.failed ? true : undefined,
    }
    return [commandEffect(command, details), ...commitEffects(command, output, call_id)]
  }
  if (outcome?.failed) return []
  if (READ_TOOLS.has(name)) return path === undefined ? [] : [fileEffect(path, "read", call_id)]
  if (!EDIT_TOOLS.has(name)) return []
  if (hunks.length > 0) return editEffects(hunks, call_id)
  return path === undefined ? [] : [fileEffect(path, "edited", call_id)]
}

/** Returns the hunks of an edit: from its patch, or from the changes that its result reports. */
export function hunksOf({ tool, input, text, outcome }: CursorCall): Hunk[] {
  if (!outcome || outcome.failed || !EDIT_TOOLS.has(plainName(tool))) return []
  const patch = [...Object.values(input), text].map((value) => patchIn(string(value) ?? "")).find((value) => value)
  if (patch !== undefined) return parsePatch(patch).hunks
  const path = pathOf(input)
  if (path === undefined) return []
  const hunks = records(record(outcome.result?.diff)?.chunks).flatMap((chunk) => hunkOfChunk(path, chunk))
  if (hunks.length > 0) return hunks
  const content = string(input.contents) ?? string(input.content)
  const isNew = outcome.result?.isNewFile === true || outcome.result?.created === true
  return isNew && content !== undefined ? [hunkOfNewFile(path, content)] : []
}

function hunkOfChunk(path: string, chunk: RawRecord): Hunk[] {
  const lines = string(chunk.diffString)?.split("\n")
  if (!lines?.every((line) => /^[ +-]/.test(line) || line === "")) return []
  return [
    {
      path,
      old_start: number(chunk.oldStart) ?? 0,
      old_lines: number(chunk.oldLines) ?? 0,
      new_start: number(chunk.newStart) ?? 0,
      new_lines: number(chunk.newLines) ?? 0,
      lines: lines.map((line) => (line === "" ? " " : line)),
    },
  ]
}

export function cursorToolOrigin(tool: string): Origin {
  return /^mcp/i.test(tool) ? "web" : toolOrigin(tool)
}

/** Returns the text of a tool's result without the object around it. */
export function outputText(value: unknown): string {
  if (typeof value === "string") return value
  if (Array.isArray(value)) return value.map(outputText).join("\n")
  const fields = record(value)
  if (!fields) return value === undefined || value === null ? "" : String(value)
  for (const field of ["output", "contents", "text", "content", "value", "stdout"]) {
    const inner = fields[field]
    if (typeof inner === "string" || Array.isArray(inner)) return outputText(inner)
  }
  return JSON.stringify(fields)
}

function plainName(tool: string): string {
  return tool.toLowerCase().replace(/_v\d+$/, "")
}

function pathOf(input: RawRecord): string | undefined {
  for (const field of ["target_file", "file_path", "filePath", "path", "relativeWorkspacePath", "target_notebook"]) {
    const path = string(input[field])
    if (path !== undefined) return path
  }
  return undefined
}

/** Tags that Cursor inserts into the user's turn. */
const INJECTED_TAGS = [
  ...["user_info", "system_reminder", "system-reminder", "project_layout", "git_status", "rules", "user_rules"],
  ...["attached_files", "open_and_recently_viewed_files", "additional_data", "timestamp", "task_notification"],
  ...["manually_attached_skills", "agent_skills", "available_skills", "mcp_instructions", "mcp_file_system"],
  ...["agent_transcripts", "external_links", "cursor_rules", "terminal_files_information", "image_files"],
]

/**
 * Splits a prompt. The person's text is in `<user_query>`, and the rest was inserted. Without that tag, everything outside the
 * known tags is the person's.
 */
export function promptParts(text: string, promptOrigin: Origin): Part[] {
  const runs = splitInjected(text, ["user_query"])
  if (runs.some((run) => run.injected)) {
    return runs.flatMap((run): Part[] => {
      if (!run.injected) return [{ type: "text", text: run.text, origin: "injected" }]
      const prompt = run.text.slice(run.text.indexOf(">") + 1, run.text.lastIndexOf("</")).trim()
      return prompt === "" ? [] : [{ type: "text", text: prompt, origin: promptOrigin }]
    })
  }
  return splitInjected(text, INJECTED_TAGS).map((run) => ({
    type: "text",
    text: run.text,
    origin: run.injected || isSingleElement(run.text) ? "injected" : promptOrigin,
  }))
}

/** Whether the text is one `<snake_case>` element, which nobody types as a prompt. */
function isSingleElement(text: string): boolean {
  const tag = /^<([a-z]+_[a-z_]+)>/.exec(text)?.[1]
  return tag !== undefined && text.endsWith(`</${tag}>`)
}
