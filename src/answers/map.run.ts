import { readFileSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { withoutUndefined } from "../core/defined.ts"
import { DexError, messageOf } from "../core/error.ts"
import { conversationRefOf, formatRef } from "../core/ref.ts"
import { estimateTokens } from "../core/tokens.ts"
import { many } from "../render/words.ts"
import type { Dex } from "../tools/context.ts"
import { configuredModel } from "../tools/model.ts"
import { openCache } from "./map/cache.ts"
import { markdownOf } from "./map/markdown.ts"
import { countUnderfilledBatches, tokensOfBatch } from "./map/pack.ts"
import { mapPrompt } from "./map/prompt.ts"
import { type MapFilters, type MapJob, type MapRunResult, type PreparedMap, prepareMap, runMap } from "./map/run.ts"
import { DEFAULT_SCHEMA, readSchema } from "./map/schema.ts"
import type { MapFormat, MapOutput } from "./map.ts"
import { filledFilters, findRecipe, taskOf } from "./recipes.ts"

export type CostOptions = {
  batch_tokens: number
  parallel: number
  max_tokens_total?: number
  dry_run?: boolean
  model?: string
  output?: string
}
export type MapInput = MapFilters &
  CostOptions & {
    task?: string
    recipe?: string
    topic?: string
    schema?: string
    format?: MapFormat
    resume?: boolean
  }

const LAST_RUN_KEY = "last"

export async function run(dex: Dex, request: MapInput): Promise<MapOutput> {
  const input =
    request.resume && request.task === undefined && request.recipe === undefined ? lastRun(dex, request) : request
  const { title, ...taskFields } = requestedTask(dex, input)
  if (!input.dry_run && (await configuredModel(dex)))
    openCache(dex.home.dir).put(LAST_RUN_KEY, { refs: [], value: input })
  const filters = { ...taskFields.filters, ...filtersOf(input) }
  return mapAll(
    dex,
    title,
    { ...costOptionsOf(input), ...taskFields, filters, format: input.format ?? taskFields.format },
    input,
  )
}

const CURSOR_FRONT_MATTER = "---\ndescription: How this person wants agents to work\nalwaysApply: true\n---\n\n"

type RulesInput = MapFilters & CostOptions & { format?: MapFormat; for?: "agents" | "claude" | "cursor" }

export async function runRules(dex: Dex, input: RulesInput) {
  const { task, schema, filters, format } = findRecipe(dex.home.dir, "rules", dex.cwd)
  const job = {
    ...costOptionsOf(input),
    task,
    schema,
    filters: { ...filters, ...filtersOf(input) },
    format: input.format ?? format,
  }
  const formatPage: typeof markdownOf = (...args) =>
    `${input.for === "cursor" ? CURSOR_FRONT_MATTER : ""}${markdownOf(...args)}`
  return mapAll(dex, "Rules", job, input, formatPage)
}

/** Maps and merges, or only estimates the cost if `dry_run` is set. Without `dry_run`, throws if there is no model. */
export async function mapAll(
  dex: Dex,
  title: string,
  job: MapJob,
  options: Pick<CostOptions, "dry_run" | "model" | "output">,
  formatPage: PageFormatter = markdownOf,
): Promise<MapOutput> {
  const model = await configuredModel(dex, { model: options.model, isOnlyNamed: options.dry_run === true })
  if (!model && !options.dry_run) throw noModelError()
  const prepared = await prepareMap(dex, job, model)
  const commonFields = withoutUndefined({ title, ...describeJob(job, prepared), model: model?.id })
  const scopeNotes = leftOutNotes(job, prepared)
  if (options.dry_run)
    return {
      ...commonFields,
      dry_run: true,
      packed: prepared.batches.map((batch) => ({
        conversations: new Set(batch.pieces.map(({ ref }) => formatRef(conversationRefOf(ref)))).size,
        estimated_tokens: tokensOfBatch(batch),
        cached: prepared.isDone(batch),
      })),
      notes: [
        ...scopeNotes,
        ...(model
          ? []
          : [
              "No model is set up yet, so nothing can be mapped. `dex config set llm.provider agent` uses a coding agent that you have.",
            ]),
      ],
    }
  if (prepared.batches.length === 0) return { ...commonFields, notes: scopeNotes }
  const mapped = await runMap(dex, job, prepared, model!)
  const { requests, input, output, is_estimate, cost_usd } = model!.used()
  const notes = [...scopeNotes, ...notesOf(mapped, prepared)]
  const outputPath = options.output === undefined ? undefined : resolve(dex.cwd, options.output)
  if (outputPath !== undefined)
    writeOutput(
      outputPath,
      /\.json$/i.test(outputPath) ? formatJson(mapped.result) : formatPage(title, mapped.result, notes),
    )
  return withoutUndefined({
    ...commonFields,
    batches: {
      ...commonFields.batches,
      cached: mapped.cached,
      asked: mapped.asked,
      failed: mapped.failed.length,
      not_done: mapped.not_done,
    },
    failed: mapped.failed.length > 0 ? mapped.failed : undefined,
    merges: { ...mapped.merges, failed: mapped.merges.failed.length },
    items: { mapped: mapped.items_before_merge, merged: mapped.items },
    dropped: mapped.dropped,
    refs_not_in_result: mapped.refs_not_in_result,
    result: mapped.result,
    partial: mapped.not_done > 0 || mapped.failed.length > 0 || undefined,
    used: withoutUndefined({ requests, input_tokens: input, output_tokens: output, is_estimate, cost_usd }),
    written: outputPath,
    notes,
  })
}

type PageFormatter = typeof markdownOf

function noModelError(): DexError {
  return new DexError(
    "no_model",
    "This needs a model, and none is set up. Any server with OpenAI's chat completions API works: `dex config set llm.provider http://localhost:11434/v1` and `dex config set llm.model …` for your own server, `dex config set llm.api_key` for OpenAI, or `dex config set llm.provider agent` for a coding agent that you have. --dry-run shows what would be sent.",
  )
}

function requestedTask(dex: Dex, input: MapInput) {
  if (input.task !== undefined && input.recipe !== undefined)
    throw new DexError(
      "usage",
      "Give a task or a --recipe, not both. A recipe can be copied and changed: see docs/map.md.",
    )
  if (input.recipe !== undefined) {
    const recipe = findRecipe(dex.home.dir, input.recipe, dex.cwd)
    const { description, schema, format } = recipe
    const values: Record<string, string> = input.topic === undefined ? {} : { topic: input.topic }
    const filters = filledFilters(recipe, values)
    return {
      title: description,
      task: taskOf(recipe, values),
      schema: input.schema === undefined ? schema : schemaIn(dex, input.schema),
      filters,
      format,
    }
  }
  if (input.task === undefined || input.task.trim() === "")
    throw new DexError(
      "usage",
      'What should be collected? dex map "decisions on the database, and why", or --recipe rules.',
    )
  return {
    title: input.task,
    task: input.task,
    schema: input.schema === undefined ? DEFAULT_SCHEMA : schemaIn(dex, input.schema),
    filters: {},
    format: "stripped" as const,
  }
}

function schemaIn(dex: Dex, file: string) {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(resolve(dex.cwd, file), "utf8"))
  } catch (error) {
    throw new DexError("bad_schema", `The schema ${file} cannot be read (${messageOf(error)}).`, { cause: error })
  }
  return readSchema(value, file)
}

function lastRun(dex: Dex, request: MapInput): MapInput {
  const lastInput = openCache(dex.home.dir).get(LAST_RUN_KEY) as MapInput | undefined
  if (lastInput === undefined || typeof lastInput !== "object")
    throw new DexError("nothing_to_resume", 'There is no earlier run to continue. To start one: dex map "…"')
  const { max_tokens_total: _, ...before } = lastInput
  const { max_tokens_total, output, dry_run } = request
  return { ...before, ...withoutUndefined({ max_tokens_total, output, dry_run: dry_run || undefined }) }
}

function filtersOf({ project, source, from, to, all, query, limit }: MapFilters): MapFilters {
  return withoutUndefined({ project, source, from, to, all: all || undefined, query, limit })
}

export function costOptionsOf({ batch_tokens, parallel, max_tokens_total }: CostOptions) {
  return { batch_tokens, parallel, max_tokens_total }
}

function describeJob(job: MapJob, prepared: PreparedMap) {
  const { batches, conversations, without_text, left_out } = prepared
  const emptyPrompt = mapPrompt(job.task, job.schema, "")
  const perRequest = estimateTokens(emptyPrompt.system + emptyPrompt.text)
  return {
    task: job.task,
    format: job.format,
    conversations: conversations.size,
    without_text,
    left_out,
    estimated_tokens: batches.reduce((sum, batch) => sum + tokensOfBatch(batch) + perRequest, 0),
    batch_tokens: job.batch_tokens,
    batches: {
      total: batches.length,
      cached: batches.filter(prepared.isDone).length,
      loose: countUnderfilledBatches(batches, prepared.budget),
    },
  }
}

function leftOutNotes({ format }: MapJob, { left_out, without_text }: PreparedMap): string[] {
  const kindCounts = Object.entries(left_out).map(([kind, count]) => `${count} of kind ${kind}`)
  return [
    ...(kindCounts.length > 0 ? [`Not included: ${kindCounts.join(", ")}; --all includes them.`] : []),
    ...(format === "user_only"
      ? ["The model reads only the person's words and approved plans; --format stripped adds what agents said."]
      : []),
    ...(without_text > 0
      ? [
          `Conversations without ${format === "user_only" ? "words of a person" : "text of their own"}: ${without_text}.`,
        ]
      : []),
  ]
}

function notesOf(mapped: MapRunResult, { batches }: PreparedMap): string[] {
  const { failed, not_done, stopped, merges, dropped, refs_not_in_result } = mapped
  const continueHint = "Run the same command to continue; finished batches cost nothing."
  return [
    ...(not_done > 0
      ? [`Partial: ${not_done} of ${batches.length} batches were not done: ${stopped}. ${continueHint}`]
      : []),
    ...(not_done === 0 && stopped !== undefined ? [`Not everything was merged: ${stopped}. ${continueHint}`] : []),
    ...failed.map(
      ({ refs, reason }) =>
        `Partial: ${many(refs.length, "conversation")} could not be mapped (${refs[0]}…): ${reason}.`,
    ),
    ...merges.failed.map((reason) => `Merging failed, so the items of each batch are listed separately: ${reason}.`),
    ...(merges.unmerged > 0 && merges.failed.length === 0 && stopped === undefined
      ? [
          `The results of ${many(merges.unmerged, "batch", "batches")} did not fit into the final question and are listed separately. A larger llm.max_tokens makes room for more, up to --batch-tokens.`,
        ]
      : []),
    ...(dropped.foreign_refs > 0 ? [`Dropped ${many(dropped.foreign_refs, "ref")} not found in the data.`] : []),
    ...(dropped.items_without_refs > 0
      ? [`Dropped ${many(dropped.items_without_refs, "item")} without a source.`]
      : []),
    ...(dropped.items_with_foreign_links > 0
      ? [`Dropped ${many(dropped.items_with_foreign_links, "item")} with a link that is in no conversation.`]
      : []),
    ...(mapped.cutByServer > 0
      ? [
          `In ${many(mapped.cutByServer, "request")} the server counted less than half of the tokens that were sent. If its context is smaller than a batch, it did not read everything: try a smaller --batch-tokens.`,
        ]
      : []),
    ...(refs_not_in_result > 0 ? [`Merging left ${many(refs_not_in_result, "ref")} out.`] : []),
  ]
}

function formatJson(result: unknown): string {
  return `${JSON.stringify(result, undefined, 2)}\n`
}

function writeOutput(path: string, content: string): void {
  try {
    writeFileSync(path, content)
  } catch (error) {
    throw new DexError(
      "output",
      `${path} cannot be written (${messageOf(error)}). The answers are stored, so running the command again with another --output costs nothing.`,
      {
        cause: error,
      },
    )
  }
}
