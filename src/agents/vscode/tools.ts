import { type RawRecord, records, string } from "../../core/record.ts"
import { deedByName, type ToolNames } from "../kit/deed-by-name.ts"
import { hunksOfReplacement } from "../kit/effects.ts"
import type { Deed } from "../kit/finished-call.ts"

/** By the names that the model knows, and by those that the window knows. */
const TOOLS: ToolNames = {
  command: ["run_in_terminal", "copilot_runInTerminal"],
  read: ["read_file", "copilot_readFile"],
  write: ["create_file", "copilot_createFile"],
  patch: ["apply_patch", "copilot_applyPatch"],
}
const REPLACES = [
  "replace_string_in_file",
  "copilot_replaceString",
  "multi_replace_string_in_file",
  "copilot_multiReplaceString",
]

export function deedOfVscode(tool: string | undefined, args: RawRecord): Deed {
  if (tool === undefined || !REPLACES.includes(tool)) return deedByName(TOOLS, tool, args)
  const edits = Array.isArray(args.replacements) ? records(args.replacements) : [args]
  return {
    hunks: edits.flatMap(({ filePath, oldString, newString }) =>
      string(filePath) === undefined ? [] : hunksOfReplacement(string(filePath)!, oldString, newString),
    ),
  }
}
