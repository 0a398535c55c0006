import { localDay } from "../../core/dates.ts"
import { locationInError } from "../../core/error-text.ts"
import { formatRef } from "../../core/ref.ts"
import { type FoundFix, findFixes } from "../../learn/fixes/like.ts"
import { fileNameOf, isPlainPath } from "../../learn/paths.ts"
import type { Finder } from "./finder.ts"

// Finds what fixed this error before, in this project.

const MAX_CANDIDATES = 2
const MAX_FILES = 3
/** An error that is at least this similar counts as the same error with the same names. */
const MIN_SAME_SIMILARITY = 0.9
const MAX_EDIT_LINES = 8
const MAX_LINE_LENGTH = 160

export const findFix: Finder = ({ knowledge }, moment) => {
  const query = moment.error ?? moment.command
  if (query === undefined || query.trim() === "") return []
  const { solved } = findFixes(knowledge, {
    query: query,
    ran: moment.error === undefined ? undefined : moment.command,
    inside: moment.project,
    here: true,
  })
  return solved
    .filter(({ id, files }) => id !== moment.session && files.some(({ path }) => isPlainPath(path)))
    .slice(0, MAX_CANDIDATES)
    .map((fix) => {
      const { source, id, fixed_number } = fix
      const files = fix.files.filter(({ path }) => isPlainPath(path)).slice(0, MAX_FILES)
      const day = fix.at === undefined ? "before" : `on ${localDay(fix.at)}`
      const edit = fix.is_own_words ? editLines(fix) : []
      return {
        kind: "fix" as const,
        key: `fix:${source}:${id}#${fix.failed_number}`,
        title: `Solved ${day} by editing ${files.map(({ path }) => path).join(", ")}`,
        summary: edit.join("\n"),
        reason: `The same command failed with a similar error ${day}, and passed after the edit.`,
        ref: formatRef({ source, id, number: fixed_number! }),
        file: files[0]!.path,
        names: [...files.map(({ path }) => fileNameOf(path)), ...newNames(edit)],
        features: {
          likeness: fix.likeness,
          same: fix.likeness >= MIN_SAME_SIMILARITY ? 1 : 0,
        },
      }
    })
}

/** The changed lines without their context. Those nearest to the error are chosen, and kept in the edit's order. */
function editLines({ edit, error }: FoundFix): string[] {
  const changes = changesIn(edit)
  const place = locationInError(error)
  const distanceToError = ({ file, from, to }: Change) => {
    if (place === undefined || fileNameOf(file) !== fileNameOf(place.file)) return Number.MAX_SAFE_INTEGER
    return from === 0 ? Number.MAX_SAFE_INTEGER - 1 : Math.max(0, from - place.line, place.line - to)
  }
  let linesLeft = MAX_EDIT_LINES
  const shown = new Map<Change, string[]>()
  for (const change of changes.toSorted((a, b) => distanceToError(a) - distanceToError(b))) {
    shown.set(change, change.lines.slice(0, linesLeft))
    linesLeft = Math.max(0, linesLeft - change.lines.length)
  }
  return changes.flatMap((change) => shown.get(change)!).map((line) => line.slice(0, MAX_LINE_LENGTH))
}

/** Lines that were changed together, with their former line numbers, which are 0 if they were not recorded. */
type Change = { file: string; from: number; to: number; lines: string[] }

function changesIn(diff: string): Change[] {
  const changes: Change[] = []
  let file = ""
  let at = 0
  let change: Change | undefined
  for (const line of diff.split("\n")) {
    const start = /^@@ -(\d+)/.exec(line)
    const isHead = /^(?:---|\+\+\+) /.test(line)
    if (line.startsWith("+++ ")) file = line.slice(4)
    if (start) at = Number(start[1])
    if (start || isHead || !/^[+-]/.test(line)) {
      change = undefined
      if (at > 0 && !start && !isHead) at++
      continue
    }
    if (change === undefined) {
      change = { file, from: at, to: at, lines: [] }
      changes.push(change)
    }
    if (/^.\s*\S/.test(line)) change.lines.push(line)
    if (at > 0 && line.startsWith("-")) change.to = at++
  }
  return changes
}

const NAME = /[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*/g

/** Names that look like code and occur in the added lines, but not in the removed lines. */
function newNames(edit: string[]): string[] {
  const namesIn = (sign: string) =>
    edit.filter((line) => line.startsWith(sign)).flatMap((line) => line.match(NAME) ?? [])
  const removedNames = new Set(namesIn("-"))
  return [...new Set(namesIn("+"))].filter((name) => !removedNames.has(name) && isCode(name))
}

function isCode(name: string): boolean {
  return name.length >= 5 && /[a-z][A-Z]|_|\.|^[A-Z][a-z]+[A-Z]/.test(name)
}
