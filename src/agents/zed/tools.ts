import { basename } from "node:path"
import type { Hunk } from "../../core/conversation.ts"
import { type RawRecord, record, records, string } from "../../core/record.ts"
import { hunkOfNewFile, hunksOfDiff, hunksOfReplacement } from "../kit/effects.ts"
import type { Deed } from "../kit/finished-call.ts"

export function deedOfZed(
  tool: string | undefined,
  input: RawRecord,
  output: unknown,
  folders: readonly string[],
): Deed {
  const path = string(input.path)
  const command = tool === "terminal" ? string(input.command) : undefined
  if (command !== undefined) return { command }
  if (path === undefined) return {}
  const file = inProject(path, folders)
  if (tool === "read_file") return { reads: [file] }
  if (tool !== "edit_file" && tool !== "write_file" && tool !== "create_file") return {}
  return { hunks: hunksOfEdit(file, input, output) }
}

function hunksOfEdit(file: string, input: RawRecord, output: unknown): Hunk[] {
  const diff = string(record(output)?.diff)
  const hunks = diff === undefined ? [] : hunksOfDiff(diff, file)
  if (hunks.length > 0) return hunks
  const content = string(input.content)
  if (content !== undefined) return [hunkOfNewFile(file, content)]
  return records(input.edits).flatMap(({ old_text, new_text }) => hunksOfReplacement(file, old_text, new_text))
}

/** A path begins with the name of one of the project's folders, wherever that folder is. */
function inProject(path: string, folders: readonly string[]): string {
  const [first, ...rest] = path.split(/[\\/]/)
  const folder = folders.find((one) => basename(one) === first)
  if (folder === undefined || rest.length === 0) return path
  return [folder, ...rest].join(folder.includes("\\") ? "\\" : "/")
}
