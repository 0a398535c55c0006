import type { Effect, Hunk, Origin } from "../../core/conversation.ts"

// What tool calls did to the world, in the one shape that all agents' tools are brought to.

/** The whole command stands in the message; this is for finding it. */
const MAX_COMMAND = 500
const MAX_ERROR = 400

/** A command and what became of it. `output` is searched for the line that says what went wrong. */
export function commandEffect(
  command: string,
  outcome: { call_id?: string; exit_status?: number; failed?: boolean; output?: string },
): Effect {
  const failed = outcome.failed ?? (outcome.exit_status === undefined ? undefined : outcome.exit_status !== 0)
  const error = failed && outcome.output ? errorLine(outcome.output) : undefined
  return {
    type: "command",
    command: command.slice(0, MAX_COMMAND),
    call_id: outcome.call_id,
    exit_status: outcome.exit_status,
    failed,
    error,
  }
}

/** The commits that a git command reports having made: `[main 1a2b3c4] subject`. */
export function commitEffects(command: string, output: string, call_id?: string): Effect[] {
  if (!/\bgit\b/.test(command) || !/\b(commit|merge|cherry-pick|revert|am)\b/.test(command)) return []
  const made: Effect[] = []
  for (const [, branch, hash, subject] of output.matchAll(
    /^\[([^\s\]]{1,200})(?: \([^)\n]{1,40}\))? ([0-9a-f]{7,40})\] (.{1,500})$/gm,
  )) {
    made.push({
      type: "commit",
      hash: hash!,
      subject: subject!.trim(),
      branch: branch!,
      call_id,
    })
  }
  return made
}

/** One file effect for each file that the hunks touch, with the lines they add and remove. */
export function editEffects(hunks: Hunk[], call_id?: string): Effect[] {
  const byPath = new Map<string, { added: number; removed: number }>()
  for (const hunk of hunks) {
    const sum = byPath.get(hunk.path) ?? { added: 0, removed: 0 }
    for (const line of hunk.lines) {
      if (line.startsWith("+")) sum.added++
      else if (line.startsWith("-")) sum.removed++
    }
    byPath.set(hunk.path, sum)
  }
  return [...byPath].map(([path, sum]) => ({
    type: "file",
    path,
    action: "edited",
    call_id,
    ...sum,
  }))
}

export function fileEffect(path: string, action: "edited" | "read" | "mentioned", call_id?: string): Effect {
  return { type: "file", path, action, call_id }
}

/** The hunks of a unified diff. `path` names the file where the diff has no header of its own. */
export function hunksOfDiff(diff: string, path?: string): Hunk[] {
  const hunks: Hunk[] = []
  let file = path
  let hunk: Hunk | undefined
  let oldLeft = 0
  let newLeft = 0
  for (const line of diff.split("\n")) {
    if (hunk && (oldLeft > 0 || newLeft > 0)) {
      const sign = line[0]
      if (sign === "+") newLeft--
      else if (sign === "-") oldLeft--
      else if (sign === " " || line === "") {
        oldLeft--
        newLeft--
      } else if (sign !== "\\") hunk = undefined
      if (hunk && sign !== "\\") hunk.lines.push(line === "" ? " " : line)
      if (hunk) continue
    }
    const header = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/.exec(line)
    if (header && file !== undefined) {
      oldLeft = Number(header[2] ?? 1)
      newLeft = Number(header[4] ?? 1)
      hunk = {
        path: file,
        old_start: Number(header[1]),
        old_lines: oldLeft,
        new_start: Number(header[3]),
        new_lines: newLeft,
        lines: [],
      }
      hunks.push(hunk)
    } else if (path === undefined && line.startsWith("+++ ")) {
      const named = line.slice(4).split("\t")[0]!.trim()
      if (named !== "/dev/null") file = named.replace(/^b\//, "")
    } else if (path === undefined && line.startsWith("--- ")) {
      const named = line.slice(4).split("\t")[0]!.trim()
      file = named === "/dev/null" ? undefined : named.replace(/^a\//, "")
    }
  }
  return hunks
}

/** A whole new file as one hunk. */
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

/** What a call asked to replace. Of the file around it nothing is known, and so no line numbers either. */
export function hunksOfReplacement(path: string, oldText: unknown, newText: unknown): Hunk[] {
  const [removed, added] = [linesOf(oldText), linesOf(newText)]
  const lines = [...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`)]
  if (lines.length === 0) return []
  return [{ path, old_start: 0, old_lines: removed.length, new_start: 0, new_lines: added.length, lines }]
}

function linesOf(text: unknown): string[] {
  return typeof text === "string" && text !== "" ? text.replace(/\n$/, "").split("\n") : []
}

/** Where a tool's answer came from. What a remote server sent is as untrusted as a web page. */
export function toolOrigin(tool: string | undefined): Origin {
  return tool !== undefined && /mcp|web|fetch|browser|^open_page$|^find_in_page$/i.test(tool) ? "web" : "local_tool"
}

/** The line of an output that says what went wrong: the first that names an error, else the last one. */
function errorLine(output: string): string | undefined {
  const head = output.slice(0, 20_000)
  const lines = head
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
  const telling = lines.find((line) =>
    /\b(error|fatal|panic|exception|failed|cannot|not found|denied|no such)\b/i.test(line.slice(0, 500)),
  )
  return (telling ?? lines.at(-1))?.slice(0, MAX_ERROR)
}
