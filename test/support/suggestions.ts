import type { Item, Moment, Subscription, Suggestion } from "../../src/core/suggestion.ts"

export const NOW = Date.parse("2026-11-03T09:12:00Z")

export function itemOf(more: Partial<Item> = {}): Item {
  return {
    kind: "fix",
    key: "fix:1",
    title: "Cannot find module 'zod'",
    summary: "npm install zod",
    reason: "The same error was solved on 3 Oct.",
    ref: "claude_code:aaaa-1111#12",
    relevance: 0.8,
    features: { likeness: 0.9, age: 0.2 },
    estimated_tokens: 40,
    ...more,
  }
}

export function suggestionOf(
  id: string,
  more: Partial<Omit<Suggestion, "moment">> & { moment?: Partial<Moment> } = {},
) {
  const moment: Moment = {
    event: "failed_command",
    project: "/home/someone/api",
    source: "claude_code",
    session: "now-1",
    at: NOW,
    ...more.moment,
  }
  return { items: [itemOf()], status: "shown", latency_ms: 12, ...more, id, moment } satisfies Suggestion
}

export function subscriptionOf(id: string, more: Partial<Subscription> = {}): Subscription {
  return {
    id,
    project: "/home/someone/api",
    patterns: [{ type: "file", pattern: "src/**", priority: 1 }],
    deliver: "poll",
    min_relevance: 0.5,
    max_per_trigger: 5,
    cooldown_ms: 0,
    enabled: true,
    created_at: NOW,
    ...more,
  }
}
