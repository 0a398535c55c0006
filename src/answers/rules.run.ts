import type { Dex } from "../tools/context.ts"
import { markdownOf } from "./map/markdown.ts"
import type { MapFilters } from "./map/run.ts"
import { type Cost, costOf, filtersOf, mapAll } from "./map.run.ts"
import { findRecipe } from "./recipes.ts"

const CURSOR_HEAD = "---\ndescription: How this person wants agents to work\nalwaysApply: true\n---\n\n"

export async function run(dex: Dex, input: MapFilters & Cost & { for?: "agents" | "claude" | "cursor" }) {
  const { task, schema, filters } = findRecipe(dex.home.dir, "rules", dex.cwd)
  const job = { ...costOf(input), task, schema, filters: { ...filters, ...filtersOf(input) } }
  const page: typeof markdownOf = (...of) => `${input.for === "cursor" ? CURSOR_HEAD : ""}${markdownOf(...of)}`
  return mapAll(dex, "Rules", job, input, page)
}
