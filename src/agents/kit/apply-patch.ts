import type { Hunk } from "../../core/conversation.ts"
import { hunkOfNewFile } from "./effects.ts"

/** A patch in the grammar of Codex's `apply_patch`, which names places by their lines, not by their numbers. */
export type Patch = { hunks: Hunk[]; deleted: string[] }

/** The text between `*** Begin Patch` and `*** End Patch`, wherever it stands: a tool's input, a heredoc, an argument. */
export function patchIn(text: string): string | undefined {
  const begin = text.indexOf("*** Begin Patch")
  if (begin === -1) return undefined
  const end = text.indexOf("*** End Patch", begin)
  return text.slice(begin, end === -1 ? undefined : end)
}

/** Changed files have hunks that begin at line 0: unknown. */
export function parsePatch(patch: string): Patch {
  const hunks: Hunk[] = []
  const deleted: string[] = []
  let path: string | undefined
  let added: string[] | undefined
  let hunk: Hunk | undefined
  const close = () => {
    if (added && path !== undefined) hunks.push(hunkOfNewFile(path, added.join("\n")))
    if (hunk && hunk.lines.length > 0) hunks.push(hunk)
    added = undefined
    hunk = undefined
  }
  for (const line of patch.split("\n")) {
    const header = /^\*\*\* (Add File|Update File|Delete File|Move to): (.{1,4000})$/.exec(line.trimEnd())
    if (header) {
      const [, verb, name] = header as unknown as [string, string, string]
      close()
      path = name.trim()
      if (verb === "Add File") added = []
      else if (verb === "Delete File") {
        deleted.push(path)
        path = undefined
      }
    } else if (line.startsWith("*** ")) close()
    else if (added) {
      if (line.startsWith("+")) added.push(line.slice(1))
    } else if (path !== undefined && line.startsWith("@@")) {
      close()
    } else if (path !== undefined && /^[ +-]/.test(line)) {
      hunk ??= { path, old_start: 0, old_lines: 0, new_start: 0, new_lines: 0, lines: [] }
      if (!line.startsWith("+")) hunk.old_lines++
      if (!line.startsWith("-")) hunk.new_lines++
      hunk.lines.push(line)
    }
  }
  close()
  return { hunks, deleted }
}
