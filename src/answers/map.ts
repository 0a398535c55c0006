import type { Format } from "../core/format.ts"
import {
  choice,
  decimal,
  flag,
  type Infer,
  integer,
  listOf,
  mapOf,
  object,
  optional,
  type Schema,
  text,
  withDefault,
} from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { fromField, projectField, sourceField, toField } from "../tools/fields.ts"

/** Fields that choose the conversations. All mapping commands share them, so that an option means the same everywhere. */
const filterFields = {
  project: projectField,
  source: sourceField,
  from: fromField,
  to: toField,
  all: optional(flag("Include subagents and automated runs.")),
  query: optional(text("Only the conversations that a search for these words finds, best first.", { minLength: 1 })),
  limit: optional(integer("Only the newest N conversations; with a query the best N, 30 if omitted.", { minimum: 1 })),
}

/** How much of a conversation the model sees: everything but tool outputs, or only the person's words and approved plans. */
export const MAP_FORMATS = ["stripped", "user_only"] as const satisfies readonly Format[]
export type MapFormat = (typeof MAP_FORMATS)[number]

/** How much of each conversation the model reads. A recipe can choose this too. */
const formatField = optional(
  choice(
    MAP_FORMATS,
    "stripped: what was said, without tool outputs; user_only: only a person's words and approved plans.",
  ),
)

/** Fields that control the run and its cost. */
export const costFields = {
  batch_tokens: withDefault(
    integer("Tokens of conversations per request.", { minimum: 4_000, maximum: 2_000_000 }),
    80_000,
  ),
  parallel: withDefault(integer("Requests at once.", { minimum: 1, maximum: 32 }), 3),
  max_tokens_total: optional(integer("Stop before a request that could exceed this many tokens.", { minimum: 1 })),
  dry_run: optional(flag("Show what would be sent, and send nothing.")),
  model: optional(text("Use this model instead of llm.model.")),
  output: optional(text("A file to write: JSON if it ends in .json, else Markdown.")),
}

/** An object that follows the user's schema. */
const anyObject = (description: string): Schema<Record<string, unknown>> => ({
  type: "object",
  additionalProperties: true,
  description,
})

export const mapOutput = object({
  title: text(),
  task: text(),
  model: optional(text()),
  dry_run: optional(flag()),
  format: choice(MAP_FORMATS),
  conversations: integer("Conversations that were chosen and contain text."),
  without_text: integer("Conversations that were chosen, but are empty or copies of others."),
  left_out: mapOf(integer(), "Matching conversations of other kinds, which all includes."),
  estimated_tokens: integer("Estimated size of all conversations as the model sees them."),
  batch_tokens: integer(),
  batches: object({
    total: integer(),
    cached: integer("Batches answered in an earlier run, which cost nothing now."),
    asked: optional(integer()),
    failed: optional(integer()),
    not_done: optional(integer()),
    loose: integer(
      "Batches of earlier runs that were reused although they are more than 5 % underfilled. The final batch does not count.",
    ),
  }),
  packed: optional(
    listOf(
      object({ conversations: integer(), estimated_tokens: integer(), cached: flag() }),
      "In a dry run: each batch.",
    ),
  ),
  failed: optional(
    listOf(object({ refs: listOf(text()), reason: text() }), "Conversations that could not be mapped, and why."),
  ),
  merges: optional(
    object({
      asked: integer(),
      cached: integer(),
      failed: integer(),
      unmerged: integer("Results of batches that are listed without being merged."),
    }),
  ),
  items: optional(object({ mapped: integer(), merged: integer() })),
  dropped: optional(
    object(
      { foreign_refs: integer(), items_without_refs: integer(), items_with_foreign_links: integer() },
      "What was removed because it has no source in the data.",
    ),
  ),
  refs_not_in_result: optional(integer("Refs that merging left out.")),
  result: optional(anyObject("The result, as the schema defines it.")),
  partial: optional(flag("The result is incomplete; the notes say what is missing.")),
  used: optional(
    object({
      requests: integer(),
      input_tokens: integer(),
      output_tokens: integer(),
      is_estimate: flag(),
      cost_usd: optional(decimal("As counted by the agent that was used as a model.")),
    }),
  ),
  written: optional(text("The file that was written.")),
  notes: listOf(text()),
})

export type MapOutput = Infer<typeof mapOutput>

export const map = defineTool({
  name: "map",
  summary: "Run one question over many conversations (needs a model)",
  input: object({
    task: optional(text("What to collect from the conversations.")),
    recipe: optional(text("A saved task: rules, preferences, evaluation, digest, one of your own, or a file.")),
    topic: optional(text("The topic, if the recipe needs one.")),
    ...filterFields,
    format: formatField,
    schema: optional(text("A JSON Schema file for the result: an object with lists of items.")),
    ...costFields,
    resume: optional(flag("Continue the last run; running the same command again does that too.")),
  }),
  output: mapOutput,
  cli: {
    group: "Learn",
    positional: "task",
    short: { l: "limit", s: "source", p: "project", a: "all", o: "output" },
    example: 'dex map "decisions on the database, and why" --project api --dry-run',
  },
  run: async (dex: Dex, input) => (await import("./map.run.ts")).run(dex, input),
  found: (output) => output.conversations > 0,
})

export const rules = defineTool({
  name: "rules",
  summary: "Draft AGENTS.md rules from past requests (needs a model)",
  input: object({
    ...filterFields,
    format: formatField,
    for: optional(
      choice(
        ["agents", "claude", "cursor"],
        "Format of the --output file: agents, claude or cursor (adds front matter).",
      ),
    ),
    ...costFields,
  }),
  output: mapOutput,
  cli: {
    group: "Learn",
    short: { l: "limit", s: "source", p: "project", a: "all", o: "output" },
    example: "dex rules --project api --output rules.md",
  },
  run: async (dex: Dex, input) => (await import("./map.run.ts")).runRules(dex, input),
  found: (output) => output.conversations > 0,
})
