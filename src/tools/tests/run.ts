import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { failingTests } from "../../learn/test-runs/status.ts"
import { budgetTooSmall, fitItems } from "../../render/budget.ts"
import { many } from "../../render/words.ts"
import type { Dex } from "../context.ts"
import { updatedKnowledge } from "../learned.ts"
import { projectPathOf } from "../resolve.ts"
import type { TestsInput } from "./tests.ts"

export async function run(dex: Dex, input: TestsInput) {
  const { project } = dex
  const path = input.file === undefined ? undefined : fileIn(dex, input.file)
  const notes: string[] = []
  const knowledge = await dex.knowledge()
  const file = path && knowledge.files.knownSpelling(project, path)
  if (dex.hasHistory()) notes.push(...(await updatedKnowledge(dex)).notes)
  else notes.push("No conversations have been read yet. Run `dex sync` first.")
  const status = failingTests(knowledge, project, file)
  const runStats = knowledge.tests.testRunStats(project)
  const failingTestRows = status.tests.slice(0, input.limit)
  const unnamedRuns = status.runs.slice(0, input.limit)
  const build = (count: number) => {
    const leftOutCount = status.tests.length + status.runs.length - count
    return {
      project,
      failing: failingTestRows
        .slice(0, count)
        .map(({ at, is_own_words: _, ...test }) => ({ ...test, date: isoDate(at) })),
      unnamed: unnamedRuns
        .slice(0, Math.max(0, count - failingTestRows.length))
        .map(({ at, is_own_words: _, ...run }) => ({ ...run, date: isoDate(at) })),
      total: status.tests.length,
      runs_known: runStats.runs,
      newest: runStats.newest === undefined ? undefined : isoDate(runStats.newest),
      notes:
        leftOutCount > 0
          ? [...notes, `${many(leftOutCount, "more result")} left out. Use a higher limit or max_tokens to see all.`]
          : notes,
    }
  }
  const fitted = fitItems(failingTestRows.length + unnamedRuns.length, build, input.max_tokens)
  if (fitted === undefined) throw budgetTooSmall(input.max_tokens!, build(0))
  return fitted.answer
}

function fileIn(dex: Dex, file: string): string {
  const path = projectPathOf(dex, file)
  if (path !== undefined) return path
  throw new DexError("not_in_project", `${file} is not in ${dex.project}. Give a file of this project.`)
}
