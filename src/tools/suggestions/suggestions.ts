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
  text,
  withDefault,
} from "../../core/schema.ts"
import { KINDS, STATUSES } from "../../core/suggestion.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { fromField } from "../fields.ts"

export const suggestionShape = object({
  id: text("Pass it to `dex suggest --feedback`."),
  sequence: integer("A number that grows with every suggestion."),
  date: text(),
  status: choice(STATUSES),
  would: optional(flag("The suggestion was only recorded, not shown.")),
  event: text("The event that caused the suggestion."),
  project: text(),
  session: optional(text()),
  subscription: optional(text()),
  items: listOf(
    object({
      number: integer(),
      kind: text(),
      title: text(),
      summary: text(),
      reason: text(),
      ref: optional(text()),
      file: optional(text()),
      symbol: optional(text()),
      relevance: decimal(),
      status: choice(STATUSES),
    }),
  ),
})

const suggestionsInput = object({
  status: optional(choice(STATUSES, "Only suggestions with this status.")),
  take: optional(flag("Show pending suggestions, oldest first, and mark them as shown.")),
  would: optional(flag("Show suggestions that were only recorded.")),
  subscription: optional(text("Only what this subscription received.")),
  all: optional(flag("Include all projects, not only the current one.")),
  from: fromField,
  limit: withDefault(integer("Show at most this many.", { minimum: 1, maximum: 200 }), 10),
})
export type SuggestionsInput = Infer<typeof suggestionsInput>

export const suggestions = defineTool({
  name: "suggestions",
  summary: "List past and pending suggestions",
  input: suggestionsInput,
  output: object({
    suggestions: listOf(suggestionShape),
    notes: listOf(text(), "Anything that is hidden or left out."),
  }),
  cli: {
    group: "Agents",
    short: { l: "limit", a: "all" },
    example: "dex suggestions --take",
    formOf: { command: "suggest", option: "list", now: "dex suggest --list", example: "dex suggest --list --take" },
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.suggestions.length > 0,
})

const feedbackInput = object({
  id: optional(text("The suggestion's id.")),
  verdict: optional(choice(["used", "dismissed"])),
  item: optional(integer("The item's number, from 1.", { minimum: 1 })),
  reset: optional(flag("Undo everything learned from feedback.")),
})
export type FeedbackInput = Infer<typeof feedbackInput>

export const feedback = defineTool({
  name: "feedback",
  summary: "Say whether a suggestion helped",
  input: feedbackInput,
  output: object({
    id: optional(text()),
    status: optional(choice(STATUSES)),
    items: listOf(object({ number: integer(), kind: text(), title: text(), status: choice(STATUSES) })),
    reset: optional(integer("How many learned weights were reset.")),
    note: text(),
  }),
  cli: {
    group: "Agents",
    positional: "id",
    rest: "verdict",
    example: "dex feedback 3f2a used --item 1",
    formOf: {
      command: "suggest",
      option: "feedback",
      now: "dex suggest --feedback ID used",
      example: "dex suggest --feedback 3f2a used --item 1",
    },
  },
  mcp: {
    name: "suggestion_feedback",
    description: "Tell dex whether its suggestion helped.",
    omit: ["reset"],
    writes: true,
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).giveFeedback(dex, input),
})

const rates = { offered: integer(), used: integer(), dismissed: integer() }

export const report = defineTool({
  name: "report",
  summary: "Show how often suggestions of each kind were used",
  input: object({}),
  output: object({
    suggestions: integer("Suggestions that were shown."),
    would: integer("Suggestions that were only recorded."),
    ...rates,
    used_rate: decimal("Share of the offered items that were used."),
    dismissed_rate: decimal(),
    latency_ms: object({ median: decimal(), p95: decimal() }),
    by_kind: listOf(object({ kind: choice(KINDS), ...rates })),
    by_relevance: listOf(
      object({ from: decimal("Lower end of this range of relevance; each range is 0.1 wide."), ...rates }),
    ),
    weights: mapOf(decimal(), "Learned from verdicts, in log-odds."),
  }),
  cli: {
    group: "Agents",
    example: "dex suggest --report",
    formOf: { command: "suggest", option: "report", now: "dex suggest --report", example: "dex suggest --report" },
  },
  run: async (dex: Dex) => (await import("./run.ts")).reportUse(dex),
  found: ({ suggestions, would }) => suggestions + would > 0,
})
