import type { Dex } from "../tools/context.ts"
import { markdownOf } from "./map/markdown.ts"
import type { MapFilters } from "./map/run.ts"
import { type Cost, costOf, filtersOf, mapAll } from "./map.run.ts"
import type { MapFormat } from "./map-fields.ts"
import { findRecipe } from "./recipes.ts"

const CURSOR_HEAD = "---\ndescription: How this person wants agents to work\nalwaysApply: true\n---\n\n"

type RulesInput = MapFilters & Cost & { format?: MapFormat; for?: "agents" | "claude" | "cursor" }

export async function run(dex: Dex, input: RulesInput) {
  const { task, schema, filters, format } = findRecipe(dex.home.dir, "rules", dex.cwd)
  const job = {
    ...costOf(input),
    task,
    schema,
    filters: { ...filters, ...filtersOf(input) },
    format: input.format ?? format,
  }
  const page: typeof markdownOf = (...of) => `${input.for === "cursor" ? CURSOR_HEAD : ""}${markdownOf(...of)}`
  return mapAll(dex, "Rules", job, input, page)
}
