import type { Hunk } from "../core/conversation.ts"
import { isoDate } from "../core/dates.ts"
import { DexError } from "../core/error.ts"
import { grouped } from "../core/format.ts"
import { formatRef } from "../core/ref.ts"
import { fitted, tooSmall } from "../render/budget.ts"
import { patchText } from "../render/patch.ts"
import { type FoundFix, type FoundFixes, findFixes } from "../suggest/find-fixes.ts"
import type { Edit } from "../suggest/fixes.ts"
import type { Dex } from "./context.ts"

export type FixInput = { error: string; project?: string; limit: number; max_tokens?: number }

const MOST_FILES = 10
const MOST_EDIT_LINES = 40
const LONGEST_LINE = 300

export async function run(dex: Dex, input: FixInput) {
  if (!dex.hasHistory())
    throw new DexError("no_history", "Nothing was read yet, so no fix is known. `dex sync` reads your conversations.")
  const found = await findFixes(await dex.store(), await dex.index(), input.error, {
    ...(input.project !== undefined && { project: input.project }),
    inside: dex.project,
  })
  const { solved, unsolved } = found
  const shown = (solved.length > 0 ? solved : unsolved).slice(0, input.limit).map(told)
  const notes = notesOn(found)
  const build = (kept: number) => ({
    fixes: shown.slice(0, kept),
    total: solved.length,
    unsolved: unsolved.length,
    conversations_read: found.read,
    notes:
      kept === shown.length
        ? notes
        : [...notes, `${grouped(shown.length - kept)} more were left out to stay within max_tokens.`],
  })
  const fits = fitted(shown.length, build, input.max_tokens)
  if (fits === undefined) throw tooSmall(input.max_tokens!, build(0))
  return fits.answer
}

function told(fix: FoundFix) {
  const { row, command, error, fixed_at, failed_at, at } = fix
  const edits = fix.edits.map((edit) => below(edit, row.project))
  const files = filesOf(edits)
  const lines = patchText(inOrder(edits)).split("\n")
  const kept = lines.slice(0, MOST_EDIT_LINES).map((line) => line.slice(0, LONGEST_LINE))
  return {
    command,
    error,
    solved: fixed_at !== undefined,
    ...(fixed_at !== undefined && { ref: formatRef({ ...row.ref, number: fixed_at }) }),
    failed_ref: formatRef({ ...row.ref, number: failed_at }),
    date: at === undefined ? "" : isoDate(at),
    project: row.project ?? "",
    source: row.ref.source,
    files: files.slice(0, MOST_FILES),
    ...(files.length > MOST_FILES && { files_left_out: files.length - MOST_FILES }),
    edit: kept.join("\n"),
    ...(lines.length > MOST_EDIT_LINES && { edit_lines_left_out: lines.length - MOST_EDIT_LINES }),
    likeness: Number(fix.likeness.toFixed(2)),
  }
}

/** Its paths as the project knows them. */
function below(edit: Edit, project: string | undefined): Edit {
  const short = (path: string) =>
    project !== undefined && path.startsWith(`${project}/`) ? path.slice(project.length + 1) : path
  return { ...edit, path: short(edit.path), hunks: edit.hunks.map((hunk) => ({ ...hunk, path: short(hunk.path) })) }
}

function filesOf(edits: Edit[]): { path: string; added: number; removed: number }[] {
  const sums = new Map<string, { path: string; added: number; removed: number }>()
  for (const { path, added, removed } of edits) {
    const sum = sums.get(path) ?? { path, added: 0, removed: 0 }
    sums.set(path, { path, added: sum.added + added, removed: sum.removed + removed })
  }
  return [...sums.values()]
}

/** One file's changes together, the files in the order of their first edit. */
function inOrder(edits: Edit[]): Hunk[] {
  return [...Map.groupBy(edits, ({ path }) => path).values()].flat().flatMap(({ hunks }) => hunks)
}

function notesOn({ unsolved, read, candidates, outcome }: FoundFixes): string[] {
  const notes: string[] = []
  if (unsolved.length > 0)
    notes.push(`${grouped(unsolved.length)} like it, with edits after it, but no run that ended well.`)
  if (candidates > read)
    notes.push(`The ${grouped(read)} closest of ${grouped(candidates)} conversations with these words were read.`)
  if (outcome.mode === "scan")
    notes.push("There is no index yet, so not everything was looked at. `dex sync` builds it.")
  else if (!outcome.index_is_current)
    notes.push("The index is catching up: the newest messages may be missing. `dex sync` completes it.")
  if (outcome.hidden_private > 0)
    notes.push(`${grouped(outcome.hidden_private)} messages with these words in private projects, not read.`)
  return notes
}
