import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { formatRef } from "../../core/ref.ts"
import { type FoundFix, findFixes } from "../../learn/fixes/like.ts"
import { budgetTooSmall, fitItems } from "../../render/budget.ts"
import { many } from "../../render/words.ts"
import type { Dex } from "../context.ts"
import { updatedKnowledge } from "../learned.ts"
import { projectCalled } from "../resolve.ts"
import type { FixInput } from "./fix.ts"

const MAX_FILES = 10

export async function run(dex: Dex, input: FixInput) {
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  const { knowledge, notes, isHidden, hidden } = await updatedKnowledge(dex)
  const query = {
    query: input.error,
    inside: dex.project,
    ...(input.project !== undefined && (await projectCalled(dex, input.project))),
  }
  const { solved, unsolved } = findFixes(knowledge, { ...query, except: hidden })
  const allFixes = hidden.length === 0 ? undefined : findFixes(knowledge, query)
  const withheldCount = allFixes
    ? [...allFixes.solved, ...allFixes.unsolved].filter(({ project }) => isHidden(project)).length
    : 0
  const rows = (solved.length > 0 ? solved : unsolved).slice(0, input.limit).map(describeFix)
  if (unsolved.length > 0)
    notes.push(
      `After ${many(unsolved.length, "similar error")}, code was edited, but no run is known to have passed since then.`,
    )
  if (withheldCount > 0) notes.push(`Not shown: ${many(withheldCount, "similar error")} in private projects.`)
  const build = (count: number) => ({
    fixes: rows.slice(0, count),
    total: solved.length,
    unsolved: unsolved.length,
    notes:
      count === rows.length
        ? notes
        : [...notes, `${many(rows.length - count, "more fix", "more fixes")} left out to stay within max_tokens.`],
  })
  const fitted = fitItems(rows.length, build, input.max_tokens)
  if (fitted === undefined) throw budgetTooSmall(input.max_tokens!, build(0))
  return fitted.answer
}

function describeFix({ source, id, project, command, error, failed_number, fixed_number, at, ...fix }: FoundFix) {
  return {
    command,
    error,
    solved: fixed_number !== undefined,
    ref: fixed_number === undefined ? undefined : formatRef({ source, id, number: fixed_number }),
    failed_ref: formatRef({ source, id, number: failed_number }),
    date: at === undefined ? "" : isoDate(at),
    project: project ?? "",
    source,
    files: fix.files.slice(0, MAX_FILES),
    files_left_out: fix.files.length > MAX_FILES ? fix.files.length - MAX_FILES : undefined,
    edit: fix.edit,
    edit_lines_left_out: fix.edit_lines_left_out > 0 ? fix.edit_lines_left_out : undefined,
    likeness: Number(fix.likeness.toFixed(2)),
  }
}
