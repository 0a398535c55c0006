import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { DAY_MS, isoDate, localDay, parseDate } from "../core/dates.ts"
import { withoutUndefined } from "../core/defined.ts"
import { DexError } from "../core/error.ts"
import type { Dex } from "../tools/context.ts"
import { configuredModel } from "../tools/model.ts"
import { type ProjectFacts, projectFacts } from "./digest/facts.ts"
import { factsPage } from "./digest/page.ts"
import type { PERIODS } from "./digest.ts"
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
type PeriodInput = { period?: (typeof PERIODS)[number]; from?: string; to?: string }
type Period = {
  /** `today`, `yesterday`, `week`, or `dates` if a range was given. */
  name: string
  from: number
  to: number
  /** Filters for `dex map`, with days instead of times, so that a repeated digest finds its cached answers. */
  filters: { from: string; to?: string }
}

export type DigestInput = CostOptions & PeriodInput & { project?: string; facts?: boolean; all?: boolean }

export async function run(dex: Dex, input: DigestInput): Promise<Digest> {
  const period = periodOf(input, dex.now())
  // A file gets all facts. The lists are shortened only to fit on a screen.
  const all = input.all === true || input.output !== undefined
  const { projects, notes: factNotes } = await projectFacts(dex, period, { all, project: input.project })
  const base = { period: period.name, from: isoDate(period.from), to: isoDate(period.to), projects }
  const isOnlyNamed = input.facts === true || input.dry_run === true || projects.length === 0
  const model = await configuredModel(dex, { model: input.model, isOnlyNamed })
  if (projects.length === 0 || input.facts || !model) {
    const notes =
      model || input.facts
        ? factNotes
        : [
            ...factNotes,
            "No model is set up, so this shows only the facts. To have one of your coding agents write a summary: dex config set llm.provider agent",
          ]
    if (input.output !== undefined) writeReport(dex, input.output, base.projects, undefined, notes)
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
  if (input.output !== undefined && !input.dry_run)
    writeReport(dex, input.output, projects, mapped.result, mapped.notes)
  return { ...base, mapped, notes: factNotes }
}

function writeReport(
  dex: Dex,
  file: string,
  projects: ProjectFacts[],
  result: MapResult | undefined,
  notes: string[],
): void {
  const path = resolve(dex.cwd, file)
  const summary = result === undefined ? "" : `${markdownOf("Digest", result, notes)}\n`
  const page = `${summary}${factsPage(projects).join("\n")}\n`
  writeFileSync(path, /\.json$/i.test(path) ? `${JSON.stringify({ projects, result }, undefined, 2)}\n` : page)
}

const DAYS_BEFORE = { today: 0, yesterday: 1, week: 6 }

/** The period that the input describes. The default is today. */
function periodOf({ period, from, to }: PeriodInput, now: number): Period {
  if (from === undefined && to === undefined) return namedPeriod(period ?? "today", now)
  if (period !== undefined) throw new DexError("usage", "Use either --period, or --from and --to.")
  if (from === undefined) throw new DexError("usage", "--to needs --from, such as --from 7d.")
  const range = { from: parseDate(from, "from", now), to: to === undefined ? now : parseDate(to, "to", now) }
  if (range.from > range.to)
    throw new DexError(
      "usage",
      `The period would end before it starts: ${localDay(range.from)} is after ${localDay(range.to)}.`,
    )
  return { name: "dates", ...range, filters: withoutUndefined({ from, to }) }
}

function namedPeriod(name: (typeof PERIODS)[number], now: number): Period {
  const day = new Date(now)
  // Computed from noon, because days on which summer time begins or ends do not have 24 hours.
  const noon = new Date(day.getFullYear(), day.getMonth(), day.getDate(), 12).getTime()
  const first = localDay(noon - DAYS_BEFORE[name] * DAY_MS)
  const from = parseDate(first, "from", now)
  if (name !== "yesterday") return { name, from, to: now, filters: { from: first } }
  return { name, from, to: parseDate(first, "to", now), filters: { from: first, to: first } }
}
