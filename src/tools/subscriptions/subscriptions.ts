import { choice, decimal, flag, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { DELIVERIES } from "../../core/suggestion.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const subscriptionFields = {
  id: text(),
  project: text(),
  patterns: listOf(text(), "file:…, symbol:…, topic:… or entity:…"),
  priority: integer(),
  deliver: choice(DELIVERIES),
  url: optional(text()),
  min_relevance: decimal(),
  max_per_trigger: integer(),
  cooldown_ms: integer(),
  last_triggered: optional(text("When it was last told of something.")),
  session: optional(text("The session that asked for it.")),
  enabled: flag(),
  disabled_because: optional(text()),
}

export const subscribe = defineTool({
  name: "subscribe",
  summary: "Get notified about files, symbols or topics",
  input: object({
    patterns: listOf(text(), "file:<glob>, symbol:<name>, topic:<words> or entity:<name>; without a type, a glob."),
    project: optional(text("The project's folder; the current one if left out.")),
    priority: withDefault(integer("Subscriptions with a higher one are told first.", { minimum: 0, maximum: 100 }), 1),
    deliver: optional(choice(DELIVERIES, "How it is told; a webhook where a url is given, else poll.")),
    url: optional(text("Where a webhook is sent to, signed.")),
    min_relevance: withDefault(
      { ...decimal("Only what is at least so likely to be used, from 0 to 1."), minimum: 0, maximum: 1 },
      0.5,
    ),
    max_per_trigger: withDefault(
      integer("How many things are told at a time, at the most.", { minimum: 1, maximum: 10 }),
      5,
    ),
    cooldown_ms: withDefault(
      integer("Milliseconds within which it is not told again.", { minimum: 0, maximum: 86_400_000 }),
      5_000,
    ),
  }),
  output: object({
    ...subscriptionFields,
    secret: optional(text("To check a webhook's signature with. It is shown this once.")),
    notes: listOf(text()),
  }),
  cli: { group: "Agents", positional: "patterns", example: "dex subscribe 'file:src/auth/**' 'topic:refresh token'" },
  mcp: {
    name: "context_subscribe",
    description: "Be told of past fixes, decisions and changes when these files, symbols or topics are worked on.",
    // A webhook sends words out of this machine: a person sets it up.
    omit: ["url", "deliver", "project", "priority", "min_relevance", "max_per_trigger", "cooldown_ms"],
    writes: true,
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).runSubscribe(dex, input),
})

export const subscriptions = defineTool({
  name: "subscriptions",
  summary: "List subscriptions and pending webhook deliveries",
  input: object({
    all: optional(flag("Of all projects, not only the current one.")),
    send: optional(flag("Send to webhooks what is due now.")),
    retry_dead: optional(flag("Let what was given up be tried again from the start.")),
  }),
  output: object({
    subscriptions: listOf(object(subscriptionFields)),
    outbox: object({ waiting: integer(), delivered: integer(), dead: integer(), last_problem: optional(text()) }),
    sent: optional(object({ delivered: integer(), again: integer(), dead: integer() })),
    retried: optional(integer()),
    notes: listOf(text()),
  }),
  cli: { group: "Agents", short: { a: "all" }, example: "dex subscriptions" },
  run: async (dex: Dex, input) => (await import("./run.ts")).runSubscriptions(dex, input),
  found: (output) => output.subscriptions.length > 0,
})

export const unsubscribe = defineTool({
  name: "unsubscribe",
  summary: "Remove a subscription",
  input: object({ id: text("The subscription's id, or a beginning that only one has.", { minLength: 1 }) }),
  output: object({ id: text(), project: text() }),
  cli: { group: "Agents", positional: "id", example: "dex unsubscribe 7c1f" },
  run: async (dex: Dex, input) => (await import("./run.ts")).runUnsubscribe(dex, input),
})
