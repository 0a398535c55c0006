import { isAbsolute } from "node:path"
import { optedInProjects } from "../../config/projects.ts"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { parseCompleteRef } from "../../core/ref.ts"
import { budgetTooSmall, fitItems } from "../../render/budget.ts"
import { many } from "../../render/words.ts"
import type { DecisionFilter, KnownDecision } from "../../store/knowledge/decisions.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import { changesLookup } from "../changed-later.ts"
import type { Dex } from "../context.ts"
import { updatedKnowledge } from "../learned.ts"
import { isCurrentProject, projectCalled, projectPathOf } from "../resolve.ts"
import type { DecisionsInput } from "./decisions.ts"

const MAX_FILES = 5

export async function run(dex: Dex, input: DecisionsInput) {
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  const extraFacts = optedInProjects(dex.home).some((folder) => isCurrentProject(dex, dex.projectOf(folder)))
    ? { commits: dex.project }
    : {}
  const { knowledge, notes, hidden } = await updatedKnowledge(dex, extraFacts)
  const words = input.words.flatMap((word) => word.match(/[\p{L}\p{N}]+/gu) ?? [])
  const filter: DecisionFilter = {
    ...(await projectFilter(dex, input)),
    ...fileFilter(dex, knowledge, input),
    symbol: input.symbol?.replace(/\(\)$/, ""),
    words: input.words.length > 0 ? words : undefined,
    with_commits: true,
    limit: input.limit,
    offset: input.offset,
  }
  const { decisions, total } = knowledge.decisions.knownDecisions({ ...filter, except: hidden })
  const withheldCount =
    hidden.length === 0 ? 0 : knowledge.decisions.knownDecisions({ ...filter, limit: 1 }).total - total
  if (withheldCount > 0) notes.push(`Not shown: ${many(withheldCount, "decision")} in private projects.`)
  const next = input.offset + decisions.length
  if (decisions.length < total && decisions.length > 0)
    notes.push(
      `${grouped(input.offset + 1)} to ${grouped(next)} of ${grouped(total)}.${next < total ? ` For more: --offset ${next}` : ""}`,
    )
  const changesOf = await changesLookup(dex)
  const rows = decisions.map((one) => {
    const ref = one.conversation === undefined ? undefined : parseCompleteRef(one.ref)
    return { ...describeDecision(one), ...(ref && one.reversed_by === undefined ? changesOf(ref) : {}) }
  })
  const build = (count: number) => ({
    decisions: rows.slice(0, count),
    total,
    notes:
      count === rows.length
        ? notes
        : [...notes, `${many(rows.length - count, "more decision")} left out to stay within max_tokens.`],
  })
  const fitted = fitItems(rows.length, build, input.max_tokens)
  if (fitted === undefined) throw budgetTooSmall(input.max_tokens!, build(0))
  return fitted.answer
}

async function projectFilter(
  dex: Dex,
  { project, all }: DecisionsInput,
): Promise<Pick<DecisionFilter, "project" | "exactly">> {
  if (project !== undefined) return projectCalled(dex, project)
  return all ? {} : { project: dex.project, exactly: true }
}

/**
 * The filter for a file. A path is resolved from the current folder and made relative to the project. In other projects, only the
 * end of the path can be compared.
 */
function fileFilter(
  dex: Dex,
  knowledge: Knowledge,
  { file, project, all }: DecisionsInput,
): Pick<DecisionFilter, "file"> {
  if (file === undefined) return {}
  const typed = file.replaceAll("\\", "/").replace(/^(?:\.\/)+/, "")
  const typedPath = projectPathOf(dex, file)
  const knownPath = typedPath && knowledge.files.knownSpelling(dex.project, typedPath)
  if (isAbsolute(file)) return { file: knownPath ?? typed }
  return { file: all || project !== undefined ? typed : (knownPath ?? typed) }
}

export function describeDecision({ ref, quote, kind, origin, at, project, files, reversed_by: later }: KnownDecision) {
  return {
    quote,
    kind,
    by: origin,
    date: at === undefined ? "" : isoDate(at),
    ref,
    project: project ?? "",
    files: files.slice(0, MAX_FILES),
    files_left_out: files.length > MAX_FILES ? files.length - MAX_FILES : undefined,
    superseded_by: later && {
      quote: later.quote,
      date: later.at === undefined ? "" : isoDate(later.at),
      ref: later.ref,
    },
  }
}
