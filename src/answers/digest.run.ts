import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { isoDate } from "../core/dates.ts"
import { withoutUndefined } from "../core/defined.ts"
import type { Dex } from "../tools/context.ts"
import { configuredModel } from "../tools/model.ts"
import { type ProjectFacts, projectFacts } from "./digest/facts.ts"
import { factsPage } from "./digest/page.ts"
import { type PeriodInput, periodOf } from "./digest/period.ts"
import { markdownOf } from "./map/markdown.ts"
import type { MapResult } from "./map/schema.ts"
import { type CostOptions, costOptionsOf, mapAll } from "./map.run.ts"
import type { MapOutput } from "./map.ts"
import { findRecipe } from "./recipes.ts"

type Digest = {
  period: string
  from: string
  to: string
  projects: ProjectFacts[]
  mapped?: MapOutput
  notes: string[]
}
export type DigestInput = CostOptions & PeriodInput & { project?: string; facts?: boolean; all?: boolean }

export async function run(dex: Dex, input: DigestInput): Promise<Digest> {
  const period = periodOf(input, dex.now())
  // A file contains everything, because its size is not limited.
  const all = input.all === true || input.output !== undefined
  const { projects, notes: factNotes } = await projectFacts(dex, period, { all, project: input.project })
  const base = { period: period.name, from: isoDate(period.from), to: isoDate(period.to), projects }
  const only_named = input.facts === true || input.dry_run === true || projects.length === 0
  const model = await configuredModel(dex, { model: input.model, only_named })
  if (projects.length === 0 || input.facts || !model) {
    const notes =
      model || input.facts
        ? factNotes
        : [
            ...factNotes,
            "No model is set up, so these are the facts. `dex config set llm.provider agent` lets a coding agent that you have write the summary.",
          ]
    if (input.output !== undefined) write(dex, input.output, base.projects, undefined, notes)
    return { ...base, notes }
  }
  const { task, schema, filters, format, description } = findRecipe(dex.home.dir, "digest", dex.cwd)
  const { output: _, ...others } = input
  const mapped = await mapAll(
    dex,
    description,
    {
      ...costOptionsOf(input),
      task,
      schema,
      format,
      filters: { ...filters, ...period.filters, ...withoutUndefined({ project: input.project }) },
    },
    others,
  )
  if (input.output !== undefined && !input.dry_run) write(dex, input.output, projects, mapped.result, mapped.notes)
  return { ...base, mapped, notes: factNotes }
}

function write(dex: Dex, file: string, projects: ProjectFacts[], result: MapResult | undefined, notes: string[]): void {
  const path = resolve(dex.cwd, file)
  const summary = result === undefined ? "" : `${markdownOf("Digest", result, notes)}\n`
  const page = `${summary}${factsPage(projects).join("\n")}\n`
  writeFileSync(path, /\.json$/i.test(path) ? `${JSON.stringify({ projects, result }, undefined, 2)}\n` : page)
}
