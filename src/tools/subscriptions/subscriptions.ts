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
} from "../../core/schema.ts"
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
  last_triggered: optional(text("When it was last notified.")),
  session: optional(text("The session that subscribed.")),
  enabled: flag(),
  disabled_because: optional(text()),
}

const subscribeInput = object({
  patterns: listOf(text(), "file:<glob>, symbol:<name>, topic:<words> or entity:<name>; without a type, a glob."),
  project: optional(text("The project's folder. Default: the current one.")),
  priority: withDefault(
    integer("Subscriptions with a higher priority are notified first.", { minimum: 0, maximum: 100 }),
    1,
  ),
  deliver: optional(choice(DELIVERIES, "How to notify. Default: webhook if a url is given, else poll.")),
  url: optional(text("Where to send the signed webhook.")),
  min_relevance: withDefault({ ...decimal("Minimum relevance of an item, from 0 to 1."), minimum: 0, maximum: 1 }, 0.5),
  max_per_trigger: withDefault(integer("Maximum number of items per notification.", { minimum: 1, maximum: 10 }), 5),
  cooldown_ms: withDefault(
    integer("Minimum milliseconds between two notifications.", { minimum: 0, maximum: 86_400_000 }),
    5_000,
  ),
})
export type SubscribeInput = Infer<typeof subscribeInput>

export const subscribe = defineTool({
  name: "subscribe",
  summary: "Get notified about files, symbols or topics",
  input: subscribeInput,
  output: object({
    ...subscriptionFields,
    secret: optional(text("The key to check a webhook's signature with. It is shown only once.")),
    notes: listOf(text()),
  }),
  cli: { group: "Agents", positional: "patterns", example: "dex subscribe 'file:src/auth/**' 'topic:refresh token'" },
  mcp: {
    name: "context_subscribe",
    description: "Get notified of past fixes, decisions and changes when these files, symbols or topics are worked on.",
    // A webhook sends text from this machine, so only a person may set it up.
    omit: ["url", "deliver", "project", "priority", "max_per_trigger"],
    writes: true,
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).runSubscribe(dex, input),
})

const subscriptionsInput = object({
  all: optional(flag("Include all projects, not only the current one.")),
  send: optional(flag("Send due webhooks now.")),
  retry_dead: optional(flag("Retry deliveries that failed permanently.")),
})
export type SubscriptionsInput = Infer<typeof subscriptionsInput>

export const subscriptions = defineTool({
  name: "subscriptions",
  summary: "List subscriptions and pending webhook deliveries",
  input: subscriptionsInput,
  output: object({
    subscriptions: listOf(object(subscriptionFields)),
    outbox: object({ waiting: integer(), delivered: integer(), dead: integer(), last_problem: optional(text()) }),
    sent: optional(object({ delivered: integer(), again: integer(), dead: integer() })),
    retried: optional(integer()),
    notes: listOf(text()),
  }),
  cli: {
    group: "Agents",
    short: { a: "all" },
    example: "dex subscriptions",
    formOf: {
      command: "subscribe",
      option: "list",
      alone: true,
      now: "dex subscribe",
      example: "dex subscribe --list --all",
    },
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).runSubscriptions(dex, input),
  found: (output) => output.subscriptions.length > 0,
})

const unsubscribeInput = object({ id: text("The subscription's id, or the start of it.", { minLength: 1 }) })
export type UnsubscribeInput = Infer<typeof unsubscribeInput>

export const unsubscribe = defineTool({
  name: "unsubscribe",
  summary: "Remove a subscription",
  input: unsubscribeInput,
  output: object({ id: text(), project: text() }),
  cli: {
    group: "Agents",
    positional: "id",
    example: "dex unsubscribe 7c1f",
    formOf: { command: "subscribe", option: "off", now: "dex subscribe --off ID", example: "dex subscribe --off 7c1f" },
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).runUnsubscribe(dex, input),
})
