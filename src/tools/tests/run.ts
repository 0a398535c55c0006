import { resolve } from "node:path"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { pathBelow } from "../../learn/paths.ts"
import { failingTests } from "../../learn/test-runs/status.ts"
import { budgetTooSmall, fitItems } from "../../render/budget.ts"
import type { Dex } from "../context.ts"
import { updatedKnowledge } from "../learned.ts"
import type { TestsInput } from "./tests.ts"

export async function run(dex: Dex, input: TestsInput) {
  const { project } = dex
  const named = input.file === undefined ? undefined : fileIn(dex, input.file)
  const notes: string[] = []
  const knowledge = await dex.knowledge()
  const file = named && knowledge.files.knownSpelling(project, named)
  if (dex.hasHistory()) notes.push(...(await updatedKnowledge(dex)).notes)
  else notes.push("No conversations have been read yet. Run `dex sync` first.")
  const status = failingTests(knowledge, project, file)
  const known = knowledge.tests.testRunStats(project)
  const shown = status.tests.slice(0, input.limit)
  const unnamed = status.runs.slice(0, input.limit)
  const build = (kept: number) => {
    const left = status.tests.length + status.runs.length - kept
    return {
      project,
      failing: shown.slice(0, kept).map(({ at, is_own_words: _, ...test }) => ({ ...test, date: isoDate(at) })),
      unnamed: unnamed
        .slice(0, Math.max(0, kept - shown.length))
        .map(({ at, is_own_words: _, ...one }) => ({ ...one, date: isoDate(at) })),
      total: status.tests.length,
      runs_known: known.runs,
      newest: known.newest === undefined ? undefined : isoDate(known.newest),
      notes:
        left > 0
          ? [...notes, `${grouped(left)} more were left out. Use a higher limit or max_tokens to see them.`]
          : notes,
    }
  }
  const fits = fitItems(shown.length + unnamed.length, build, input.max_tokens)
  if (fits === undefined) throw budgetTooSmall(input.max_tokens!, build(0))
  return fits.answer
}

function fileIn(dex: Dex, file: string): string {
  const path = pathBelow(dex.project, resolve(dex.cwd, file))
  if (path !== undefined) return path
  throw new DexError("not_in_project", `${file} is not in ${dex.project}. Give a file of this project.`)
}
