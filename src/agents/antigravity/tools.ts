import { parseObject, type RawRecord, record, records, string } from "../../core/record.ts"
import { hunkOfNewFile, hunksOfReplacement } from "../kit/effects.ts"
import type { Deed } from "../kit/finished-call.ts"

export type AntigravityCall = { tool: string; args: RawRecord }

/** Each argument is written as JSON of its own; some versions write plain ones. */
export function antigravityCall(call: RawRecord): AntigravityCall {
  const args = Object.entries(record(call.args) ?? {}).map(([name, value]) => [name, plainValue(value)] as const)
  return { tool: string(call.name) ?? "unknown", args: Object.fromEntries(args) }
}

function plainValue(value: unknown): unknown {
  if (typeof value !== "string" || !/^["[{]/.test(value)) return value
  return parseObject(`{"value":${value}}`)?.value ?? value
}

const READS = ["view_file", "view_file_outline", "view_code_item"]
const WRITES = ["write_to_file", "write_file"]
const EDITS = ["replace_file_content", "multi_replace_file_content", "edit_file"]

export function deedOfAntigravity({ tool, args }: AntigravityCall): Deed {
  if (tool === "run_command") {
    const command = string(args.CommandLine)
    return command === undefined ? {} : { command }
  }
  const path = string(args.TargetFile) ?? string(args.AbsolutePath) ?? string(args.File)
  if (path === undefined) return {}
  if (READS.includes(tool)) return { reads: [path] }
  if (WRITES.includes(tool))
    return typeof args.CodeContent === "string" ? { hunks: [hunkOfNewFile(path, args.CodeContent)] } : {}
  if (!EDITS.includes(tool)) return {}
  const chunks = records(args.ReplacementChunks)
  return {
    hunks: (chunks.length > 0 ? chunks : [args]).flatMap(({ TargetContent, ReplacementContent }) =>
      hunksOfReplacement(path, TargetContent, ReplacementContent),
    ),
  }
}
