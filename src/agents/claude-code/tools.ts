import type { Effect, Hunk } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"
import { array, isRecord, number, record, records, string } from "../../core/record.ts"
import { commandEffect, commitEffects, editEffects, fileEffect, hunkOfNewFile } from "../kit/effects.ts"

// What Claude Code's tool calls did to the world, told from the call, its result's text and its structured result.

export type ToolUse = { id: string; tool: string; input: RawRecord }

export type ToolUseResult = {
  text: string
  isError: boolean
  /** The record's `toolUseResult`: an object that depends on the tool, a string on failure, or absent. */
  structured: unknown
}

export type EffectsAndHunks = { effects: Effect[]; hunks: Hunk[] }

const NOTHING: EffectsAndHunks = { effects: [], hunks: [] }

export function outcomeOf(call: ToolUse, result: ToolUseResult): EffectsAndHunks {
  switch (call.tool) {
    case "Bash":
    case "PowerShell":
      return wasRefused(result) ? NOTHING : { effects: commandEffects(call, result), hunks: [] }
    case "Edit":
    case "MultiEdit":
    case "Write":
    case "NotebookEdit":
      return result.isError ? NOTHING : editOutcome(call, result)
    case "Read":
    case "NotebookRead": {
      const path = pathOf(call, result)
      return result.isError || path === undefined
        ? NOTHING
        : { effects: [fileEffect(path, "read", call.id)], hunks: [] }
    }
    default:
      return NOTHING
  }
}

/** True where the tool never ran: refused by the person or a rule, or called with bad input. */
function wasRefused({ text, isError }: ToolUseResult): boolean {
  return isError && /^(<tool_use_error>|The user doesn't want to |Permission to use |\[Request interrupted)/.test(text)
}

function commandEffects(call: ToolUse, result: ToolUseResult): Effect[] {
  const command = string(call.input.command)
  if (command === undefined) return []
  const effect = commandEffect(command, { call_id: call.id, ...statusOf(call, result), output: result.text })
  return [effect, ...commitEffects(command, result.text, call.id)]
}

/** Claude Code writes no exit status; it follows from what it does write. */
function statusOf(
  call: ToolUse,
  { text, isError, structured }: ToolUseResult,
): { exit_status?: number; failed?: boolean } {
  const told = record(structured)
  if (told?.interrupted === true) return { failed: true }
  if (isError) {
    const code = /^Exit code (\d{1,5})/.exec(text)?.[1]
    return code === undefined ? { failed: true } : { exit_status: Number(code), failed: true }
  }
  if (told?.backgroundTaskId !== undefined || call.input.run_in_background === true) return {} // not over yet
  // A status of 1 that means "no matches" or "files differ" is not a failure.
  if (string(told?.returnCodeInterpretation) !== undefined) return { exit_status: 1, failed: false }
  return { exit_status: 0, failed: false }
}

function editOutcome(call: ToolUse, result: ToolUseResult): EffectsAndHunks {
  const path = pathOf(call, result)
  if (path === undefined) return NOTHING
  const hunks = hunksOf(path, call, result)
  const effects =
    hunks.length > 0 ? editEffects(hunks, call.id) : [{ ...fileEffect(path, "edited", call.id), ...sizeOf(call) }]
  return { effects, hunks }
}

function hunksOf(path: string, call: ToolUse, { text, structured }: ToolUseResult): Hunk[] {
  const told = record(structured)
  const patch = records(told?.structuredPatch).flatMap((piece) => hunkOf(path, piece))
  if (patch.length > 0) return patch
  const content = call.tool === "Write" ? string(call.input.content) : undefined
  const created = told ? told.type === "create" : text.startsWith("File created")
  return created && content !== undefined ? [hunkOfNewFile(path, content)] : []
}

function hunkOf(path: string, piece: RawRecord): Hunk[] {
  const [old_start, old_lines] = [number(piece.oldStart), number(piece.oldLines)]
  const [new_start, new_lines] = [number(piece.newStart), number(piece.newLines)]
  if (old_start === undefined || old_lines === undefined || new_start === undefined || new_lines === undefined)
    return []
  const lines = array(piece.lines).filter((line) => typeof line === "string")
  return [{ path, old_start, old_lines, new_start, new_lines, lines }]
}

/** How much an edit changed, where only its input tells. */
function sizeOf({ tool, input }: ToolUse): { added?: number; removed?: number } {
  const edits = tool === "Edit" ? [input] : tool === "MultiEdit" ? records(input.edits) : []
  if (edits.length === 0) return {}
  const count = (field: string) => edits.reduce((sum, edit) => sum + linesIn(edit[field]), 0)
  return { added: count("new_string"), removed: count("old_string") }
}

function linesIn(text: unknown): number {
  return typeof text === "string" && text !== "" ? text.replace(/\n$/, "").split("\n").length : 0
}

function pathOf(call: ToolUse, { structured }: ToolUseResult): string | undefined {
  const told = isRecord(structured) ? structured : {}
  return (
    string(call.input.file_path) ??
    string(call.input.notebook_path) ??
    string(told.filePath) ??
    string(record(told.file)?.filePath)
  )
}
