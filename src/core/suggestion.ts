import type { SourceId } from "./conversation.ts"

export const KINDS = ["fix", "decision", "change", "document", "related_code", "warning", "conversation"] as const
export type ItemKind = (typeof KINDS)[number]

/** The current situation: event, project, file, prompt, error. */
export type Moment = {
  event:
    | "asked"
    | "session_start"
    | "prompt"
    | "before_edit"
    | "before_read"
    | "failed_command"
    | "subagent_start"
    | "watch"
  /** The project's absolute path. */
  project: string
  source?: SourceId
  /** The agent's own session id. */
  session?: string
  /** The branch that is checked out. */
  branch?: string
  /** Absolute, or relative to the project. */
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
  /** The same thing has the same key, so that it is shown only once in a session. */
  key: string
  title: string
  summary: string
  reason: string
  /** A ref to open: a conversation's message, a document's section, or `git:<hash>`. */
  ref?: string
  /** Relative to the project. */
  file?: string
  symbol?: string
  /** From 0 to 1: how likely it is to be used. */
  relevance: number
  features: Record<string, number>
  estimated_tokens: number
}

export const STATUSES = ["pending", "shown", "used", "dismissed"] as const
export type Status = (typeof STATUSES)[number]

export type Suggestion = { id: string; moment: Moment; items: Item[]; status: Status; latency_ms: number }

/** Short enough to type. It is not a secret: loading node:crypto would take too long in a hook. */
export function newSuggestionId(): string {
  return Math.floor(Math.random() * 2 ** 48)
    .toString(16)
    .padStart(12, "0")
}

/** A subscription matches one of these. `file` is a glob below the project; the others are words. */
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
  /** Set if dex itself disabled it. */
  disabled_because?: string
  created_at: number
}
