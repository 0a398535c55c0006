import type { Hunk } from "../../core/conversation.ts"
import { type RawRecord, string } from "../../core/record.ts"
import { hunkOfNewFile, hunksOfDiff, hunksOfReplacement } from "../kit/effects.ts"
import type { Deed } from "../kit/finished-call.ts"

/** Tools are named `<extension>__<tool>`, since 1.29 some without their extension. */
export function deedOfGoose(name: string | undefined, args: RawRecord): Deed {
  const tool = name?.replace(/^\w+?__/, "")
  const path = string(args.path) ?? string(args.file_path)
  if (tool === "shell") {
    const command = string(args.command) ?? string(args.cmd)
    return command === undefined ? {} : { command }
  }
  if (path === undefined) return {}
  if (tool === "read") return { reads: [path] }
  if (tool === "write") return { hunks: newFile(path, args.content) }
  if (tool === "edit") return { hunks: hunksOfReplacement(path, args.before, args.after) }
  return tool === "text_editor" ? editorDeed(path, args) : {}
}

/** One tool for all of it, before 1.29. */
function editorDeed(path: string, args: RawRecord): Deed {
  const diff = string(args.diff)
  switch (args.command) {
    case "view":
      return { reads: [path] }
    case "write":
    case "create":
      return { hunks: newFile(path, args.file_text) }
    case "str_replace":
      return { hunks: diff ? hunksOfDiff(diff, path) : hunksOfReplacement(path, args.old_str, args.new_str) }
    case "insert":
      return { hunks: hunksOfReplacement(path, undefined, args.new_str) }
    default:
      return {}
  }
}

function newFile(path: string, content: unknown): Hunk[] {
  return typeof content === "string" ? [hunkOfNewFile(path, content)] : []
}
