import type { Effect, Hunk, Part } from "../../core/conversation.ts"
import { parseObject, type RawRecord, records, string } from "../../core/record.ts"
import type { Replacement, Sighting } from "./file-state.ts"
import type { SeenAt } from "./replay.ts"

type SeenMessage = { number: number; at?: number; parts: Part[]; effects: Effect[] }

/**
 * Finds the times that messages show or change one file, in their order. `isWanted` says whether a path in a message is the file.
 * Pure.
 */
export function sightingsIn<M extends SeenMessage>(
  messages: readonly M[],
  isWanted: (path: string) => boolean,
): (SeenAt & { message: M })[] {
  const calls = new Map<string, RawRecord>()
  const edited = new Set<string>()
  for (const { parts, effects } of messages) {
    for (const part of parts)
      if (part.type === "tool_call" && part.call_id !== undefined) calls.set(part.call_id, parseObject(part.text) ?? {})
    for (const effect of effects)
      if (effect.type === "file" && effect.action === "edited" && effect.call_id !== undefined && isWanted(effect.path))
        edited.add(effect.call_id)
  }
  return messages.flatMap((message) =>
    message.parts.flatMap((part) => {
      const sighting = part.type === "tool_result" && sightingOf(part, calls, edited, isWanted)
      return sighting ? [{ sighting, at: message.at, message }] : []
    }),
  )
}

type Result = Extract<Part, { type: "tool_result" }>

function sightingOf(
  part: Result,
  calls: ReadonlyMap<string, RawRecord>,
  edited: ReadonlySet<string>,
  isWanted: (path: string) => boolean,
): Sighting | undefined {
  if (part.is_error) return undefined
  const input = (part.call_id === undefined ? undefined : calls.get(part.call_id)) ?? {}
  const path = PATH_FIELDS.map((name) => string(input[name])).find((value) => value !== undefined)
  const hunks = (part.hunks ?? []).filter((hunk) => isWanted(hunk.path))
  const isEdited = part.call_id !== undefined && edited.has(part.call_id)
  if (hunks.length === 0 && !isEdited && (path === undefined || !isWanted(path))) return undefined
  if (hunks.length > 0 || isEdited) {
    const written = writtenText(input)
    if (written !== undefined && path !== undefined) return { type: "whole", text: written }
    const [first] = hunks
    if (hunks.length === 1 && first && isNewFile(first))
      return { type: "whole", text: `${first.lines.map((line) => line.slice(1)).join("\n")}\n` }
    const replaced = replacementsIn(input)
    return hunks.length > 0 || replaced.length > 0 ? { type: "change", hunks, replaced } : { type: "unseen" }
  }
  return linesShown(part.text, input, part.tool)
}

const PATH_FIELDS = ["file_path", "filePath", "absolute_path", "target_file", "path"]
const TEXT_FIELDS = ["content", "contents", "file_text", "fileText"]

/** The complete text that a call wrote, unless it replaces or inserts something. */
function writtenText(input: RawRecord): string | undefined {
  if (replacementsIn(input).length > 0 || input.insert_line !== undefined) return undefined
  return TEXT_FIELDS.map((name) => string(input[name])).find((value) => value !== undefined)
}

function isNewFile({ old_start, old_lines, new_start, lines }: Hunk): boolean {
  return old_start === 0 && old_lines === 0 && new_start === 1 && lines.every((line) => line.startsWith("+"))
}

function replacementsIn(input: RawRecord): Replacement[] {
  const edits = records(input.edits)
  return (edits.length > 0 ? edits : [input]).flatMap((edit) => {
    const old = string(edit.old_string ?? edit.oldString ?? edit.old_str ?? edit.oldText ?? edit.oldStr)
    const replacement = string(edit.new_string ?? edit.newString ?? edit.new_str ?? edit.newText ?? edit.newStr)
    if (old === undefined || replacement === undefined) return []
    return [{ old, new: replacement, all: (edit.replace_all ?? edit.replaceAll) === true }]
  })
}

/** A line with its number, as `cat -n` and the agents' tools for reading show it. */
const NUMBERED_LINE = /^ {0,8}(\d{1,7})(?:→|\t|\| ?)(.*)$/
/** Claude Code shows at most so many lines, and cuts lines that are longer. */
const MAX_SHOWN_LINES = 2_000
const MAX_LINE_CHARS = 2_000

function linesShown(text: string, input: RawRecord, tool: string | undefined): Sighting | undefined {
  const lines: (string | undefined)[] = []
  let first: number | undefined
  for (const row of text.split("\n")) {
    const [, number, line] = NUMBERED_LINE.exec(row) ?? []
    if (number === undefined) {
      if (first === undefined) continue
      break
    }
    first ??= Number(number)
    if (Number(number) !== first + lines.length) break
    lines.push(line!.length >= MAX_LINE_CHARS ? undefined : line)
  }
  if (first === undefined || first < 1) return undefined
  const limit = typeof input.limit === "number" ? input.limit : MAX_SHOWN_LINES
  const reachesEnd = tool === "Read" && lines.length < Math.min(limit, MAX_SHOWN_LINES)
  return { type: "lines", first, lines, reachesEnd }
}

/** Commands that change files without naming each of them: formatters, and git if it writes the working tree. */
const CHANGES_FILES =
  /(?<![-\w])(?:fmt|gofmt|goimports|rustfmt|prettier|biome|black|ruff|format|lint|eslint)\b|--(?:fix|write)\b|\bgit\b[^\n|;&]{0,200}\b(?:checkout|restore|stash|reset|pull|merge|rebase|cherry-pick|apply|revert|am|switch|clean)\b|\b(?:sed|perl)\b[^\n|;&]{0,200}\s-\w{0,4}i/
const WRITES = />|\b(?:mv|cp|rm|tee|patch|install|dd|truncate|python3?|node|ruby|awk)\b/

/**
 * The commands that may have changed the file since a message showed all of it, and after the last message that shows some of
 * it.
 */
export function doubtsAfter<M extends SeenMessage>(
  messages: readonly M[],
  sightings: readonly (SeenAt & { message: M })[],
  path: string,
): { message: M; command: string }[] {
  const complete = sightings.findLast(
    ({ sighting }) =>
      sighting.type === "whole" || (sighting.type === "lines" && sighting.first === 1 && sighting.reachesEnd),
  )
  const name = path.slice(path.lastIndexOf("/") + 1)
  return messages.slice(complete ? messages.indexOf(complete.message) : 0).flatMap((message) =>
    message.effects.flatMap((effect) => {
      if (effect.type !== "command") return []
      const { command } = effect
      const mayChange = CHANGES_FILES.test(command) || (command.includes(name) && WRITES.test(command))
      return mayChange ? [{ message, command }] : []
    }),
  )
}
