import { isoDate } from "../core/dates.ts"
import { formatRef } from "../core/ref.ts"
import { type FoundFix, findFixes } from "./find-fixes.ts"
import type { Finder } from "./finder.ts"
import { isPlainPath, nameOf } from "./paths.ts"

// What made this very error go away before, in this project.

const MOST_CANDIDATES = 2
const MOST_FILES = 3
/** With the same names in it: not only the like of it, but that error. */
const SAME = 0.9
const MOST_EDIT_LINES = 8
const LONGEST_LINE = 160

export const findFix: Finder = ({ knowledge }, moment) => {
  const asked = moment.error ?? moment.command
  if (asked === undefined || asked.trim() === "") return []
  const { solved } = findFixes(knowledge, { asked, inside: moment.project, here: true })
  return solved
    .filter(({ id, files }) => id !== moment.session && files.some(({ path }) => isPlainPath(path)))
    .slice(0, MOST_CANDIDATES)
    .map((fix) => {
      const { source, id, fixed_number } = fix
      const files = fix.files.filter(({ path }) => isPlainPath(path)).slice(0, MOST_FILES)
      const day = fix.at === undefined ? "before" : `on ${isoDate(fix.at).slice(0, 10)}`
      const edit = fix.is_own_words ? editLines(fix) : []
      return {
        kind: "fix" as const,
        key: `fix:${source}:${id}#${fix.failed_number}`,
        title: `Solved ${day} by editing ${files.map(({ path }) => path).join(", ")}`,
        summary: edit.join("\n"),
        reason: `The same command failed with the like of this error ${day}, and passed after the edit.`,
        ref: formatRef({ source, id, number: fixed_number! }),
        file: files[0]!.path,
        names: [...files.map(({ path }) => nameOf(path)), ...newNames(edit)],
        features: {
          likeness: fix.likeness,
          same: fix.likeness >= SAME ? 1 : 0,
          others: Math.log1p(solved.length - 1),
          days: Math.log1p(Math.max(0, moment.at - (fix.at ?? 0)) / 86_400_000),
        },
      }
    })
}

/** What was changed, without what stood around it. */
function editLines({ edit }: FoundFix): string[] {
  return edit
    .split("\n")
    .filter((line) => /^[+-](?![+-]{2} )\s*\S/.test(line))
    .slice(0, MOST_EDIT_LINES)
    .map((line) => line.slice(0, LONGEST_LINE))
}

const NAME = /[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*/g

/** What the edit brought in: names that look like code and did not stand in what it took out. */
function newNames(edit: string[]): string[] {
  const namesIn = (sign: string) =>
    edit.filter((line) => line.startsWith(sign)).flatMap((line) => line.match(NAME) ?? [])
  const before = new Set(namesIn("-"))
  return [...new Set(namesIn("+"))].filter((name) => !before.has(name) && isCode(name))
}

function isCode(name: string): boolean {
  return name.length >= 5 && /[a-z][A-Z]|_|\.|^[A-Z][a-z]+[A-Z]/.test(name)
}
