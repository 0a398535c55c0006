import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { type FoundFix, findFixes } from "../../learn/fixes/like.ts"
import { fitted, tooSmall } from "../../render/budget.ts"
import type { Dex } from "../context.ts"
import { learnedOf } from "../learned.ts"
import type { FixInput } from "./fix.ts"

const MOST_FILES = 10

export async function run(dex: Dex, input: FixInput) {
  if (!dex.hasHistory())
    throw new DexError("no_history", "Nothing was read yet, so no fix is known. `dex sync` reads your conversations.")
  const { knowledge, notes, isHidden, hidden } = await learnedOf(dex)
  const wanted = {
    query: input.error,
    inside: dex.project,
    project: input.project,
  }
  const { solved, unsolved } = findFixes(knowledge, { ...wanted, except: hidden })
  const all = hidden.length === 0 ? undefined : findFixes(knowledge, wanted)
  const withheld = all ? [...all.solved, ...all.unsolved].filter(({ project }) => isHidden(project)).length : 0
  const shown = (solved.length > 0 ? solved : unsolved).slice(0, input.limit).map(listedFix)
  if (unsolved.length > 0) notes.push(`${grouped(unsolved.length)} similar errors were edited but never seen to pass.`)
  if (withheld > 0) notes.push(`${grouped(withheld)} similar ones in private projects, not shown.`)
  const build = (kept: number) => ({
    fixes: shown.slice(0, kept),
    total: solved.length,
    unsolved: unsolved.length,
    notes:
      kept === shown.length
        ? notes
        : [...notes, `${grouped(shown.length - kept)} more were left out to stay within max_tokens.`],
  })
  const fits = fitted(shown.length, build, input.max_tokens)
  if (fits === undefined) throw tooSmall(input.max_tokens!, build(0))
  return fits.answer
}

function listedFix({ source, id, project, command, error, failed_number, fixed_number, at, ...fix }: FoundFix) {
  return {
    command,
    error,
    solved: fixed_number !== undefined,
    ref: fixed_number === undefined ? undefined : formatRef({ source, id, number: fixed_number }),
    failed_ref: formatRef({ source, id, number: failed_number }),
    date: at === undefined ? "" : isoDate(at),
    project: project ?? "",
    source,
    files: fix.files.slice(0, MOST_FILES),
    files_left_out: fix.files.length > MOST_FILES ? fix.files.length - MOST_FILES : undefined,
    edit: fix.edit,
    edit_lines_left_out: fix.edit_lines_left_out > 0 ? fix.edit_lines_left_out : undefined,
    likeness: Number(fix.likeness.toFixed(2)),
  }
}
