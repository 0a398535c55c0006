import type { SourceId } from "../core/conversation.ts"

export const KINDS = ["fix", "decision", "change", "document", "related_code", "warning", "conversation"] as const
export type ItemKind = (typeof KINDS)[number]

/** What is being worked on right now. Paths are absolute or relative to the project. */
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
  project: string
  source?: SourceId
  /** As the agent numbers it. */
  session?: string
  /** The branch that is checked out. */
  branch?: string
  file?: string
  line?: number
  column?: number
  symbol?: string
  recent_files?: string[]
  prompt?: string
  command?: string
  /** What the failed command printed. */
  error?: string
  at: number
}

/** One thing that dex offers unasked. */
export type Item = {
  kind: ItemKind
  /** The same thing has the same key: it is not said twice in a session. */
  key: string
  title: string
  summary: string
  reason: string
  /** What to open: a conversation's message, a document's section, or `git:<hash>`. */
  ref?: string
  /** Relative to the project. */
  file?: string
  symbol?: string
  /** From 0 to 1, calibrated: how likely it is to be used. */
  relevance: number
  features: Record<string, number>
  estimated_tokens: number
}

export const STATUSES = ["pending", "shown", "used", "dismissed"] as const
export type Status = (typeof STATUSES)[number]
export type Suggestion = { id: string; moment: Moment; items: Item[]; status: Status; latency_ms: number }
