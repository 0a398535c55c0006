import { isAbsolute, join } from "node:path"
import { defined } from "../../core/defined.ts"
import { array, type RawRecord, record, string } from "../../core/record.ts"
import { deedByName, type ToolNames } from "../kit/deed-by-name.ts"
import type { Deed } from "../kit/finished-call.ts"
import { hunksOfBlocks } from "../kit/search-replace.ts"

const TOOLS: ToolNames = {
  command: ["execute_command"],
  read: ["read_file"],
  write: ["write_to_file"],
  edit: ["edit", "edit_file", "search_replace", "search_and_replace"],
  patch: ["apply_patch"],
}

/** Paths are those of the workspace. */
export function deedOfRooCode(tool: string | undefined, args: RawRecord, workspace: string | undefined): Deed {
  const within = (path: string) => (workspace === undefined || isAbsolute(path) ? path : join(workspace, path))
  const files = array(args.files).flatMap((file) => string(record(file)?.path) ?? string(file) ?? [])
  if (tool === "read_file" && files.length > 0) return { reads: files.map(within) }
  const [path, diff] = [string(args.path) ?? string(args.file_path), string(args.diff)]
  if (tool === "apply_diff" && path !== undefined)
    return { hunks: diff === undefined ? [] : hunksOfBlocks(diff, within(path)) }
  const deed = deedByName(TOOLS, tool, args)
  return {
    ...deed,
    ...defined({
      reads: deed.reads?.map(within),
      hunks: deed.hunks?.map((hunk) => ({ ...hunk, path: within(hunk.path) })),
    }),
  }
}

/** A call inside the text of an answer, as models were asked to write them before they had tools of their own. */
export type WrittenCall = { tool: string; args: RawRecord; from: number; to: number }

const WRITTEN = [
  ...[
    "read_file",
    "write_to_file",
    "apply_diff",
    "search_and_replace",
    "insert_content",
    "execute_command",
    "list_files",
  ],
  ...[
    "search_files",
    "codebase_search",
    "list_code_definition_names",
    "use_mcp_tool",
    "access_mcp_resource",
    "new_task",
  ],
  ...[
    "ask_followup_question",
    "attempt_completion",
    "switch_mode",
    "update_todo_list",
    "browser_action",
    "fetch_instructions",
  ],
]

/** Linear in the text: a tag that does not end is text. */
export function writtenCalls(text: string): WrittenCall[] {
  const calls: WrittenCall[] = []
  const unended = new Set<string>()
  for (let at = text.indexOf("<"); at !== -1; at = text.indexOf("<", at + 1)) {
    if (!/[a-z]/.test(text[at + 1] ?? "")) continue
    const tool = WRITTEN.find((name) => text.startsWith(`${name}>`, at + 1) && !unended.has(name))
    const end = tool === undefined ? -1 : text.indexOf(`</${tool}>`, at)
    if (tool !== undefined && end === -1) unended.add(tool)
    if (tool === undefined || end === -1) continue
    calls.push({ tool, args: writtenArgs(text.slice(at + tool.length + 2, end)), from: at, to: end + tool.length + 3 })
    at = end
  }
  return calls
}

const ARGUMENTS = ["path", "content", "diff", "command", "regex", "query", "result", "question", "mode", "message"]
const MORE_ARGUMENTS = ["server_name", "tool_name", "arguments", "uri", "search", "replace", "line", "todos"]

function writtenArgs(inner: string): RawRecord {
  const args: RawRecord = {}
  for (const name of [...ARGUMENTS, ...MORE_ARGUMENTS]) {
    const [open, close] = [`<${name}>`, `</${name}>`]
    const from = inner.indexOf(open)
    const to = inner.lastIndexOf(close)
    if (from !== -1 && to > from) args[name] = inner.slice(from + open.length, to).replace(/^\n|\n$/g, "")
  }
  return args
}
