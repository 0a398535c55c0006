import {
  choice,
  decimal,
  flag,
  type Infer,
  integer,
  listOf,
  object,
  optional,
  text,
  withDefault,
} from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import { changedFields } from "../tools/changed-later.ts"
import type { Dex } from "../tools/context.ts"
import { TEAM_FLAG, whereField } from "../tools/team.ts"

/** The default token limit of a complete answer. */
export const ANSWER_TOKENS = 600

export const askOutput = object({
  answer: text("Every sentence ends with the number of its source, like [1]."),
  sources: listOf(
    object({
      n: integer("The number in the answer."),
      ref: text("The ref to pass to dex_get or dex show. For a file of the project: its path and line."),
      collection: optional(text()),
      document: optional(text()),
      section: optional(text()),
      title: text(),
      origin: text("Whose words: person, agent, local_tool, web, document."),
      date: optional(text()),
      ...changedFields,
    }),
    "The sources of the answer, all of which were read.",
  ),
  likely: optional(
    listOf(
      object({ ref: text(), title: text(), date: optional(text()) }),
      "If no answer was found: the conversations that are most likely to contain it.",
    ),
  ),
  confidence: choice(["high", "medium", "low", "none"], "Computed from what the sources contain, not by the model."),
  probability: decimal("Estimated probability that the best statement answers the question."),
  extractive: flag("The answer consists of exact quotes: no model was used, or its answer could not be verified."),
  partial: optional(flag("The answer is incomplete; the note says why.")),
  note: optional(text("What is uncertain, old or left out.")),
  used: optional(
    object({
      model: text(),
      calls: integer(),
      input_tokens: integer(),
      output_tokens: integer(),
      is_estimate: flag(),
      cost_usd: optional(decimal()),
    }),
  ),
})

export const inField = withDefault(choice(["history", "docs", "all"], "Conversations, documents, or both."), "all")

export const ask = defineTool({
  name: "ask",
  summary: "Answer a question from your history, with sources",
  input: object({
    query: text("The question.", { minLength: 1 }),
    use_case: optional(text("What the answer is for.")),
    collections: optional(listOf(text(), "Only documents of these collections.")),
    no_global: optional(flag("Leave out documents that belong to no project.")),
    in: inField,
    model: optional(text("Use this model instead of llm.model.")),
    quotes: optional(flag("Answer with exact quotes only, without a model.")),
    max_tokens: withDefault(
      integer("Approximate token limit of the answer.", { minimum: 200, maximum: 8000 }),
      ANSWER_TOKENS,
    ),
    where: whereField,
  }),
  renamed: { scope: "in" },
  output: askOutput,
  cli: {
    group: "Learn",
    choosing: TEAM_FLAG,
    common: true,
    positional: "query",
    short: { u: "use_case", c: "collections" },
    example: 'dex ask "how do we retry failed webhooks" --use-case "adding a new one"',
  },
  trace: { command: "ask" },
  run: async (dex: Dex, input) => withSourcesTraced(dex, await (await import("./ask.run.ts")).run(dex, input)),
  found: (output) => output.sources.length > 0,
})

/** Replaces what the searches wrote into the trace with the answer's sources. The answer's text is not recorded. */
export function withSourcesTraced<Output extends Infer<typeof askOutput>>(dex: Dex, output: Output): Output {
  dex.trace?.({
    mode: output.extractive ? "quotes" : "model",
    ranking: output.sources.map(({ ref, title }, i) => ({
      rank: i + 1,
      ref,
      score_final: 0,
      terms: [],
      summary: title,
    })),
    skipped: [],
    skipped_total: 0,
  })
  return output
}
