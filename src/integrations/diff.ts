import { structuredPatch } from "diff"

const CONTEXT = 3

/** A unified diff; empty where nothing differs. `shown` may hide secrets. */
export function unifiedDiff(
  path: string,
  before: string | undefined,
  after: string | undefined,
  shown: (line: string) => string = (line) => line,
): string {
  if (before === after) return ""
  const { hunks } = structuredPatch(path, path, before ?? "", after ?? "", "", "", { context: CONTEXT })
  const lines = [`--- ${before === undefined ? "/dev/null" : path}`, `+++ ${after === undefined ? "/dev/null" : path}`]
  for (const hunk of hunks) {
    lines.push(`@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`)
    for (const line of hunk.lines)
      lines.push(line.startsWith("\\") ? line : line.slice(0, 1) + shown(line.slice(1).replace(/\r$/, "")))
  }
  return `${lines.join("\n")}\n`
}

/** Of no lines, the one before counts. */
function range(start: number, count: number): string {
  return `${count === 0 ? start - 1 : start},${count}`
}
