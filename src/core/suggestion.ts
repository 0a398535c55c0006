import type { SourceId } from "./conversation.ts"

export const KINDS = ["fix", "decision", "change", "document", "related_code", "warning", "conversation"] as const
export type ItemKind = (typeof KINDS)[number]

/** The situation in which dex makes a suggestion: the work of the person or agent, and the event that caused the suggestion. */
export type Moment = {
  event:
    | "asked"
    | "session_start"
    | "prompt"
    | "before_edit"
    | "before_read"
    | "failed_command"
    | "subagent_start"
    | "compaction"
    | "watch"
  /** The project's absolute path. */
  project: string
  source?: SourceId
  /** The agent's own session id. */
  session?: string
  /** The branch that is checked out. */
  branch?: string
  /** An absolute path, or one relative to the project. */
  file?: string
  line?: number
  column?: number
  symbol?: string
  recent_files?: string[]
  prompt?: string
  command?: string
  /** The failed command's output. */
  error?: string
  at: number
}

export type Item = {
  kind: ItemKind
  /** Two items about the same thing have the same key, so that a session shows it only once. */
  key: string
  title: string
  summary: string
  reason: string
  /** The ref of a message or a section of a document, or `git:<hash>`. */
  ref?: string
  /** A path relative to the project. */
  file?: string
  symbol?: string
  /** How likely the item is to be used, from 0 to 1. */
  relevance: number
  features: Record<string, number>
  estimated_tokens: number
}

/** True if the title contains the whole summary, so that showing both would repeat it. */
export function isInTitle({ title, summary }: Pick<Item, "title" | "summary">): boolean {
  return title.includes(summary.replace(/^"|"$/g, ""))
}

export const STATUSES = ["pending", "shown", "used", "dismissed"] as const
export type Status = (typeof STATUSES)[number]

export type Suggestion = { id: string; moment: Moment; items: Item[]; status: Status; latency_ms: number }

/**
 * Creates an id that is short enough to type. It is not a secret, so it needs no node:crypto, which would take too long to load
 * in a hook.
 */
export function newSuggestionId(): string {
  return Math.floor(Math.random() * 2 ** 48)
    .toString(16)
    .padStart(12, "0")
}

/** The types of patterns that a subscription can match. `file` is a glob below the project; the other patterns are words. */
export const PATTERN_TYPES = ["file", "symbol", "topic", "entity"] as const
export type Pattern = { type: (typeof PATTERN_TYPES)[number]; pattern: string; priority: number }

export const DELIVERIES = ["poll", "sse", "webhook"] as const
export type Delivery = (typeof DELIVERIES)[number]

export type Subscription = {
  id: string
  project: string
  /** The session that subscribed; absent if a person did. */
  session?: string
  patterns: Pattern[]
  deliver: Delivery
  url?: string
  min_relevance: number
  max_per_trigger: number
  cooldown_ms: number
  last_triggered_at?: number
  enabled: boolean
  /** The reason, if dex itself disabled the subscription. */
  disabled_because?: string
  created_at: number
}
