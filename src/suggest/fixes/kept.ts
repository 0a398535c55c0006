import type { Hunk } from "../../core/conversation.ts"
import { errorText, placeInError, shortened } from "../../core/error-text.ts"
import { patchText } from "../../render/patch.ts"
import type { FixedFile, KeptFix } from "../../store/knowledge/fixes.ts"
import { fileNameOf, pathBelow } from "../paths.ts"
import type { Fix, FixEdit } from "./fixes.ts"

// What of a fix is kept, so that it can be found and told without reading its conversation again.

const MOST_LINES = 10
const LONGEST_LINE = 300
const LONGEST_COMMAND = 1000
const MOST_FILES = 40
const MOST_EDIT_LINES = 40

export function keptFix(fix: Fix, project: string | undefined): KeptFix & { words: string } {
  const edits = fix.edits.map((edit) => below(edit, project))
  const lines = fix.lines.slice(0, MOST_LINES).map((line) => shortened(line, LONGEST_LINE))
  const hunks = inOrder(edits, lines)
  return {
    command: fix.command.slice(0, LONGEST_COMMAND),
    lines,
    failed_number: fix.failed_at,
    ...(fix.fixed_at !== undefined && { fixed_number: fix.fixed_at }),
    ...(fix.at !== undefined && { at: fix.at }),
    files: filesOf(edits).slice(0, MOST_FILES),
    edits: edits.length,
    edit: firstLines(hunks)
      .map((line) => line.slice(0, LONGEST_LINE))
      .join("\n"),
    edit_lines_left_out: Math.max(0, lineCount(hunks) - MOST_EDIT_LINES),
    words: wordsOf(lines, fix.command).join(" "),
  }
}

/** Of the whole change only what is kept is written out: an edit may be a file of thousands of lines. */
function firstLines(hunks: Hunk[]): string[] {
  const first: Hunk[] = []
  for (let i = 0, lines = 0; i < hunks.length && lines < MOST_EDIT_LINES; i++) {
    const hunk = hunks[i]!
    first.push({ ...hunk, lines: hunk.lines.slice(0, MOST_EDIT_LINES) })
    lines += hunk.lines.length + 1
  }
  return patchText(first).split("\n").slice(0, MOST_EDIT_LINES)
}

/** Of the change as `patchText` writes it. */
function lineCount(hunks: Hunk[]): number {
  return hunks.reduce((sum, { path, lines }, i) => sum + (path === hunks[i - 1]?.path ? 1 : 3) + lines.length, 0)
}

/** What it is found by: the words of its error, the names in it, and what was run. */
function wordsOf(lines: string[], command: string): string[] {
  const found = lines.flatMap((line) => {
    const { words, particulars } = errorText(line)
    return [...words, ...particulars]
  })
  return [...new Set([...found, ...command.slice(0, LONGEST_LINE).split(/\s+/)])]
}

/** Its paths as the project knows them. */
function below(edit: FixEdit, project: string | undefined): FixEdit {
  const short = (path: string) => (project === undefined ? path : (pathBelow(project, path) ?? path))
  return { ...edit, path: short(edit.path), hunks: edit.hunks.map((hunk) => ({ ...hunk, path: short(hunk.path) })) }
}

function filesOf(edits: FixEdit[]): FixedFile[] {
  const sums = new Map<string, FixedFile>()
  for (const { path, added, removed } of edits) {
    const sum = sums.get(path) ?? { path, added: 0, removed: 0 }
    sums.set(path, { path, added: sum.added + added, removed: sum.removed + removed })
  }
  return [...sums.values()]
}

/** One file's changes together, the files in the order of their first edit; what is at an error's place goes first. */
function inOrder(edits: FixEdit[], lines: string[]): Hunk[] {
  const places = lines.flatMap((line) => placeInError(line) ?? [])
  const isAtPlace = ({ path, old_start, old_lines }: Hunk) =>
    places.some(
      ({ file, line }) =>
        fileNameOf(file) === fileNameOf(path) && line >= old_start && line < old_start + Math.max(1, old_lines),
    )
  return [...Map.groupBy(edits, ({ path }) => path).values()]
    .map((own) => own.flatMap(({ hunks }) => hunks))
    .flatMap((hunks) => [...hunks.filter(isAtPlace), ...hunks.filter((hunk) => !isAtPlace(hunk))])
}
