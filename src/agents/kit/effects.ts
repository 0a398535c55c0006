import type { Effect, Hunk, Origin } from "../../core/conversation.ts"

// Builds the effects of tool calls, in one shape for the tools of all agents.

/**
 * The maximum length of a command in an effect, in characters. This is enough to find the command; the message contains it
 * completely.
 */
const MAX_COMMAND_CHARS = 500
const MAX_ERROR_CHARS = 400

/** Builds the effect of a command. If the command failed, its error is the line of `output` that says what went wrong. */
export function commandEffect(
  command: string,
  outcome: { call_id?: string; exit_status?: number; failed?: boolean; output?: string },
): Effect {
  const failed = outcome.failed ?? (outcome.exit_status === undefined ? undefined : outcome.exit_status !== 0)
  const error = failed && outcome.output ? errorLine(outcome.output) : undefined
  return {
    type: "command",
    command: command.slice(0, MAX_COMMAND_CHARS),
    call_id: outcome.call_id,
    exit_status: outcome.exit_status,
    failed,
    error,
  }
}

/** Finds the commits that a git command reports: `[main 1a2b3c4] subject`. */
export function commitEffects(command: string, output: string, call_id?: string): Effect[] {
  if (!/\bgit\b/.test(command) || !/\b(commit|merge|cherry-pick|revert|am)\b/.test(command)) return []
  const commits: Effect[] = []
  for (const [, branch, hash, subject] of output.matchAll(
    /^\[([^\s\]]{1,200})(?: \([^)\n]{1,40}\))? ([0-9a-f]{7,40})\] (.{1,500})$/gm,
  )) {
    commits.push({
      type: "commit",
      hash: hash!,
      subject: subject!.trim(),
      branch: branch!,
      call_id,
    })
  }
  return commits
}

/** Returns one file effect per file that the hunks touch, with the numbers of added and removed lines. */
export function editEffects(hunks: Hunk[], call_id?: string): Effect[] {
  const byPath = new Map<string, { added: number; removed: number }>()
  for (const hunk of hunks) {
    const counts = byPath.get(hunk.path) ?? { added: 0, removed: 0 }
    for (const line of hunk.lines) {
      if (line.startsWith("+")) counts.added++
      else if (line.startsWith("-")) counts.removed++
    }
    byPath.set(hunk.path, counts)
  }
  return [...byPath].map(([path, counts]) => ({
    type: "file",
    path,
    action: "edited",
    call_id,
    ...counts,
  }))
}

export function fileEffect(path: string, action: "edited" | "read" | "mentioned", call_id?: string): Effect {
  return { type: "file", path, action, call_id }
}

/** Parses the hunks of a unified diff. If `path` is given, the file names in the diff's headers are ignored. */
export function hunksOfDiff(diff: string, path?: string): Hunk[] {
  const hunks: Hunk[] = []
  let file = path
  let hunk: Hunk | undefined
  let oldLinesLeft = 0
  let newLinesLeft = 0
  for (const line of diff.split("\n")) {
    if (hunk && (oldLinesLeft > 0 || newLinesLeft > 0)) {
      const sign = line[0]
      if (sign === "+") newLinesLeft--
      else if (sign === "-") oldLinesLeft--
      else if (sign === " " || line === "") {
        oldLinesLeft--
        newLinesLeft--
      } else if (sign !== "\\") hunk = undefined
      if (hunk && sign !== "\\") hunk.lines.push(line === "" ? " " : line)
      if (hunk) continue
    }
    const header = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/.exec(line)
    if (header && file !== undefined) {
      oldLinesLeft = Number(header[2] ?? 1)
      newLinesLeft = Number(header[4] ?? 1)
      hunk = {
        path: file,
        old_start: Number(header[1]),
        old_lines: oldLinesLeft,
        new_start: Number(header[3]),
        new_lines: newLinesLeft,
        lines: [],
      }
      hunks.push(hunk)
    } else if (path === undefined && line.startsWith("+++ ")) {
      const diffPath = line.slice(4).split("\t")[0]!.trim()
      if (diffPath !== "/dev/null") file = diffPath.replace(/^b\//, "")
    } else if (path === undefined && line.startsWith("--- ")) {
      const diffPath = line.slice(4).split("\t")[0]!.trim()
      file = diffPath === "/dev/null" ? undefined : diffPath.replace(/^a\//, "")
    }
  }
  return hunks
}

/** Returns a new file as one hunk. */
export function hunkOfNewFile(path: string, content: string): Hunk {
  const lines = content.split("\n")
  if (lines.at(-1) === "") lines.pop()
  return {
    path,
    old_start: 0,
    old_lines: 0,
    new_start: 1,
    new_lines: lines.length,
    lines: lines.map((line) => `+${line}`),
  }
}

/** Returns the replacement that a call requested, as a hunk. The surrounding file is unknown, so there are no line numbers. */
export function hunksOfReplacement(path: string, oldText: unknown, newText: unknown): Hunk[] {
  const [removed, added] = [linesOf(oldText), linesOf(newText)]
  const lines = [...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`)]
  if (lines.length === 0) return []
  return [{ path, old_start: 0, old_lines: removed.length, new_start: 0, new_lines: added.length, lines }]
}

function linesOf(text: unknown): string[] {
  return typeof text === "string" && text !== "" ? text.replace(/\n$/, "").split("\n") : []
}

/** The origin of a tool's result. A remote server's result is as untrusted as a web page. */
export function toolOrigin(tool: string | undefined): Origin {
  return tool !== undefined && /mcp|web|fetch|browser|^open_page$|^find_in_page$/i.test(tool) ? "web" : "local_tool"
}

/** Finds the line of an output that says what went wrong: the first that names an error, otherwise the last. */
function errorLine(output: string): string | undefined {
  const head = output.slice(0, 20_000)
  const lines = head
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
  const firstError = lines.find((line) =>
    /\b(error|fatal|panic|exception|failed|cannot|not found|denied|no such)\b/i.test(line.slice(0, 500)),
  )
  return (firstError ?? lines.at(-1))?.slice(0, MAX_ERROR_CHARS)
}

/** A patch in the grammar of Codex's `apply_patch`, which locates changes by their surrounding lines and not by line numbers. */
export type Patch = { hunks: Hunk[]; deleted: string[] }

/** Returns the patch in a tool's input or a command: the text from `*** Begin Patch` up to `*** End Patch`. */
export function patchIn(text: string): string | undefined {
  const begin = text.indexOf("*** Begin Patch")
  if (begin === -1) return undefined
  const end = text.indexOf("*** End Patch", begin)
  return text.slice(begin, end === -1 ? undefined : end)
}

/** Parses a patch. Hunks of changed files begin at line 0, because the line is unknown. */
export function parsePatch(patch: string): Patch {
  const hunks: Hunk[] = []
  const deleted: string[] = []
  let path: string | undefined
  let added: string[] | undefined
  let hunk: Hunk | undefined
  const finishFile = () => {
    if (added && path !== undefined) hunks.push(hunkOfNewFile(path, added.join("\n")))
    if (hunk && hunk.lines.length > 0) hunks.push(hunk)
    added = undefined
    hunk = undefined
  }
  for (const line of patch.split("\n")) {
    const header = /^\*\*\* (Add File|Update File|Delete File|Move to): (.{1,4000})$/.exec(line.trimEnd())
    if (header) {
      const [, verb, name] = header as unknown as [string, string, string]
      finishFile()
      path = name.trim()
      if (verb === "Add File") added = []
      else if (verb === "Delete File") {
        deleted.push(path)
        path = undefined
      }
    } else if (line.startsWith("*** ")) finishFile()
    else if (added) {
      if (line.startsWith("+")) added.push(line.slice(1))
    } else if (path !== undefined && line.startsWith("@@")) {
      finishFile()
    } else if (path !== undefined && /^[ +-]/.test(line)) {
      hunk ??= { path, old_start: 0, old_lines: 0, new_start: 0, new_lines: 0, lines: [] }
      if (!line.startsWith("+")) hunk.old_lines++
      if (!line.startsWith("-")) hunk.new_lines++
      hunk.lines.push(line)
    }
  }
  finishFile()
  return { hunks, deleted }
}

/** A block between `<<<<<<< SEARCH` and `>>>>>>> REPLACE`. A line `=======` separates the text to find from its replacement. */
type SearchReplace = { search: string[]; replace: string[]; firstLine: number; lastLine: number }

/** Finds the complete blocks in a text. `firstLine` and `lastLine` are indexes of `lines`. */
export function searchReplaceBlocks(lines: readonly string[]): SearchReplace[] {
  const blocks: SearchReplace[] = []
  let block: SearchReplace | undefined
  let section: "search" | "replace" = "search"
  for (const [index, line] of lines.entries()) {
    if (/^<{5,9} SEARCH>?\s*$/.test(line)) {
      block = { search: [], replace: [], firstLine: index, lastLine: index }
      section = "search"
    } else if (block && /^={5,9}\s*$/.test(line)) section = "replace"
    else if (block && /^>{5,9} REPLACE\s*$/.test(line)) {
      blocks.push({ ...block, lastLine: index })
      block = undefined
    } else block?.[section].push(line)
  }
  return blocks
}

/** Parses SEARCH/REPLACE blocks to hunks, without the line number that Roo Code writes before the text to find. */
export function hunksOfBlocks(text: string, path: string): Hunk[] {
  return searchReplaceBlocks(text.split("\n")).flatMap(({ search, replace }) => {
    const ruleIndex = search.findIndex((line) => /^-{5,9}$/.test(line))
    const hasLineNumber =
      ruleIndex !== -1 && ruleIndex < 3 && search.slice(0, ruleIndex).every((line) => /^:\w+:/.test(line))
    return hunksOfReplacement(path, search.slice(hasLineNumber ? ruleIndex + 1 : 0).join("\n"), replace.join("\n"))
  })
}
