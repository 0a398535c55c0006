import { structuredPatch } from "diff"
import type { Hunk } from "../../core/conversation.ts"
import { array, number, records, string } from "../../core/record.ts"
import { hunkOfNewFile } from "./effects.ts"

/** If two texts differ in more lines than this, the change is treated as a complete replacement. */
const MAX_CHANGES = 2_000

export function hunksBetween(path: string, before: string, after: string): Hunk[] {
  if (before === after) return []
  if (before === "") return [hunkOfNewFile(path, after)]
  const patch = structuredPatch(path, path, before, after, "", "", { context: 0, maxEditLength: MAX_CHANGES })
  if (!patch) return [{ ...hunkOfNewFile(path, after), old_start: 1, old_lines: before.split("\n").length }]
  return patch.hunks.map(({ oldStart, oldLines, newStart, newLines, lines }) => ({
    path,
    old_start: oldStart,
    old_lines: oldLines,
    new_start: newStart,
    new_lines: newLines,
    lines: lines.filter((line) => !line.startsWith("\\")),
  }))
}

/** Reads the hunks that a stored record contains. Skips values that are not hunks. */
export function storedHunks(value: unknown): Hunk[] {
  return records(value).flatMap(({ path, old_start, old_lines, new_start, new_lines, lines }) => {
    const file = string(path)
    if (file === undefined) return []
    const countOf = (field: unknown) => number(field) ?? 0
    return [
      {
        path: file,
        old_start: countOf(old_start),
        old_lines: countOf(old_lines),
        new_start: countOf(new_start),
        new_lines: countOf(new_lines),
        lines: array(lines).filter((line) => typeof line === "string"),
      },
    ]
  })
}
