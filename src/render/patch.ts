import type { Hunk } from "../core/conversation.ts"

export function patchText(hunks: Hunk[]): string {
  return hunks
    .flatMap(({ path, old_start, old_lines, new_start, new_lines, lines }, i) => [
      ...(path === hunks[i - 1]?.path ? [] : [`--- ${path}`, `+++ ${path}`]),
      `@@ -${old_start},${old_lines} +${new_start},${new_lines} @@`,
      ...lines,
    ])
    .join("\n")
}

export function changedLines(hunks: Hunk[]): { added: number; removed: number } {
  const lines = hunks.flatMap((hunk) => hunk.lines)
  return {
    added: lines.filter((line) => line.startsWith("+")).length,
    removed: lines.filter((line) => line.startsWith("-")).length,
  }
}
