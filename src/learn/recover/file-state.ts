import type { Hunk } from "../../core/conversation.ts"

/**
 * As much of a file as is known: its text, split at line breaks, with undefined for lines that nothing showed. `count` is the
 * number of these pieces, if the end of the file is known.
 */
export type FileState = { lines: readonly (string | undefined)[]; count?: number }

/** Transcripts are anybody's text. No file is followed that has more lines or characters than these. */
const MAX_LINES = 2_000_000
const MAX_CHARS = 1 << 26

export const NOTHING_KNOWN: FileState = { lines: [] }

/** One time that a message shows something of a file, or changes it. */
export type Sighting =
  | { type: "whole"; text: string }
  /** Some of its lines, the first of them with this number. */
  | { type: "lines"; first: number; lines: (string | undefined)[]; reachesEnd: boolean }
  /** A change. `replaced` is the same change as the call named it, for agents whose hunks have no line numbers. */
  | { type: "change"; hunks: Hunk[]; replaced: Replacement[] }
  /** A change that says nothing about the text. */
  | { type: "unseen" }

type Change = Extract<Sighting, { type: "change" }>

export type Replacement = { old: string; new: string; all: boolean }

export function stateOfText(text: string): FileState {
  const lines = text.split("\n")
  return { lines, count: lines.length }
}

/** The complete text, or undefined if a line or the end is not known. */
export function completeText({ lines, count }: FileState): string | undefined {
  if (count === undefined || count === 0 || lines.length !== count) return undefined
  for (const line of lines) if (line === undefined) return undefined
  return lines.join("\n")
}

/**
 * The state after a sighting. Undefined if it contradicts the known lines: somebody else has changed the file in between, so
 * that nothing known before can be trusted.
 */
export function stateAfter(state: FileState, sighting: Sighting): FileState | undefined {
  switch (sighting.type) {
    case "whole":
      return stateOfText(sighting.text)
    case "lines":
      return withLines(state, sighting)
    case "change":
      return withChange(state, sighting)
    case "unseen":
      return undefined
  }
}

function withLines(
  { lines, count }: FileState,
  { first, lines: seen, reachesEnd }: Extract<Sighting, { type: "lines" }>,
): FileState | undefined {
  const end = first - 1 + seen.length
  if (end > MAX_LINES) return undefined
  if (count !== undefined && (end > count || (reachesEnd && end !== count))) return undefined
  if (reachesEnd && lines.length > end) return undefined
  const merged = [...lines]
  while (merged.length < end) merged.push(undefined)
  for (const [i, line] of seen.entries()) {
    const at = first - 1 + i
    if (line === undefined) continue
    if (merged[at] !== undefined && merged[at] !== line) return undefined
    merged[at] = line
  }
  return { lines: merged, count: reachesEnd ? end : count }
}

function withChange(state: FileState, change: Change): FileState | undefined {
  const text = completeText(state)
  const replaced = text === undefined ? undefined : withReplacements(text, change)
  if (replaced !== undefined) return stateOfText(replaced)
  const { hunks } = change
  if (hunks.length === 0) return undefined
  // From the last hunk up, so that the numbers of the others stay right.
  const sorted = hunks.every(isNumbered) ? [...hunks].sort((a, b) => b.old_start - a.old_start) : hunks
  return sorted.reduce<FileState | undefined>(
    (known, hunk) =>
      known &&
      (isNumbered(hunk) ? withHunk(known, hunk, change, hunk.old_start) : withLocatedHunk(known, hunk, change)),
    state,
  )
}

/** The change alone, for a file of which nothing else is known any longer. */
export function stateOfChange(change: Change): FileState {
  return change.hunks.every(isNumbered) ? (withChange(NOTHING_KNOWN, change) ?? NOTHING_KNOWN) : NOTHING_KNOWN
}

function isNumbered({ old_start, old_lines, new_start }: Hunk): boolean {
  return old_start > 0 || (new_start > 0 && old_lines === 0)
}

/** The text after the replacements, if they are possible and their result is what the hunks say. */
function withReplacements(text: string, { hunks, replaced }: Change): string | undefined {
  if (replaced.length === 0) return undefined
  const result = replaced.reduce<string | undefined>(
    (known, one) => (known === undefined ? undefined : withReplacement(known, one)),
    text,
  )
  const lines = result?.split("\n")
  const agrees = hunks
    .filter(isNumbered)
    .every(({ new_start, lines: shown }) =>
      shown
        .filter((line) => !/^[-\\]/.test(line))
        .every((line, i) => isLineShown(lines?.[Math.max(0, new_start - 1) + i], line.slice(1))),
    )
  return agrees ? result : undefined
}

function withReplacement(text: string, { old, new: replacement, all }: Replacement): string | undefined {
  const at = old === "" ? -1 : text.indexOf(old)
  if (at === -1) return undefined
  const growth = all ? replacement.length / old.length : 1
  if (text.length * Math.max(1, growth) + replacement.length > MAX_CHARS) return undefined
  if (all) return text.replaceAll(old, () => replacement)
  if (text.includes(old, at + 1)) return undefined
  return text.slice(0, at) + replacement + text.slice(at + old.length)
}

/** Whether a hunk shows this line. Claude Code writes two spaces for each tab at a line's beginning. */
function isLineShown(line: string | undefined, shown: string): boolean {
  return line === shown || line?.replace(/^\t+/, (tabs) => "  ".repeat(tabs.length)) === shown
}

const NO_FINAL_NEWLINE = "\\"

/** Applies a hunk at a line. Undefined if a known line differs from what the hunk says was there. */
function withHunk(state: FileState, hunk: Hunk, change: Change, start: number): FileState | undefined {
  if (!Number.isSafeInteger(start) || start < 0 || start > MAX_LINES) return undefined
  const { lines, count } = state
  const before: string[] = []
  const after: (string | undefined)[] = []
  let endedWithoutNewline = false
  let endsWithoutNewline = false
  const added = change.replaced.flatMap((one) => one.new.split("\n"))
  const hasOldLines = hunk.lines.some((line) => line.startsWith("-") || line.startsWith(" "))
  // A hunk without old lines says after which line it inserts.
  const from = hasOldLines ? Math.max(0, start - 1) : start
  for (const [i, line] of hunk.lines.entries()) {
    const text = line.slice(1)
    if (line.startsWith(NO_FINAL_NEWLINE)) {
      const sign = hunk.lines[i - 1]?.[0]
      endedWithoutNewline ||= sign !== "+"
      endsWithoutNewline ||= sign !== "-"
    } else if (line.startsWith("+")) after.push(lineShown(text, added, change))
    else {
      const known = lines[from + before.length]
      if (known !== undefined && !isLineShown(known, text)) return undefined
      before.push(text)
      if (!line.startsWith("-")) after.push(known ?? lineShown(text, added, change))
    }
  }
  if (count !== undefined && from + before.length > count) return undefined
  const isNewFile = before.length === 0 && start === 0 && lines.length === 0
  const head = lines.slice(0, from)
  while (head.length < from) head.push(undefined)
  const end = from + after.length
  if (endsWithoutNewline) return { lines: [...head, ...after], count: end }
  if (endedWithoutNewline || isNewFile) return { lines: [...head, ...after, ""], count: end + 1 }
  return {
    lines: [...head, ...after, ...lines.slice(from + before.length)],
    count: count === undefined ? undefined : count + after.length - before.length,
  }
}

/**
 * The line that a hunk shows. If two spaces at its beginning may have been a tab, it is what the call wrote, or not known.
 */
function lineShown(shown: string, added: readonly string[], { replaced }: Change): string | undefined {
  if (replaced.length === 0 || !shown.startsWith("  ")) return shown
  return added.find((line) => isLineShown(line, shown))
}

/** Applies a hunk without line numbers at the only place that has its old lines. */
function withLocatedHunk(state: FileState, hunk: Hunk, change: Change): FileState | undefined {
  const before = hunk.lines.filter((line) => !line.startsWith("+")).map((line) => line.slice(1))
  if (before.length === 0) return undefined
  const places: number[] = []
  for (let at = 0; at + before.length <= state.lines.length && places.length < 2; at++)
    if (before.every((line, i) => state.lines[at + i] === line)) places.push(at)
  return places.length === 1 ? withHunk(state, hunk, change, places[0]! + 1) : undefined
}
