import type { Usage } from "./usage.ts"

/** The agent's id in agents/, or `docs` for documents, which are stored like conversations with their sections as messages. */
export type SourceId = string

/** The tag around text that dex adds to an agent's conversation. Ingest marks that text as `injected`. */
export const CONTEXT_TAG = "dex-context"

/** Whose words a part contains. `injected` is text that a hook, a skill or dex inserted; it never counts as evidence. */
export type Origin = "person" | "agent" | "local_tool" | "web" | "injected" | "document"

export const ROLES = ["user", "assistant", "tool", "system", "document"] as const
export type Role = (typeof ROLES)[number]

export type Part =
  | { type: "text"; text: string; origin: Origin; section?: SectionMark }
  | { type: "thinking"; text: string; origin: "agent" }
  /** `text` is the input as the agent wrote it: JSON, or the plain string of a freeform tool. */
  | { type: "tool_call"; text: string; origin: "agent"; tool: string; call_id?: string }
  | {
      type: "tool_result"
      text: string
      origin: Origin
      tool?: string
      call_id?: string
      is_error: boolean
      /** The change that this result reports, so that dex can later trace a line to the conversation that wrote it. */
      hunks?: Hunk[]
    }
  /** An image. dex stores only this description of it and never its bytes. */
  | { type: "image"; text: string; origin: Origin; mime?: string; bytes?: number; sha256?: string }
  /** A compaction's summary of the messages before it. */
  | { type: "summary"; text: string; origin: "agent" }

/** The position of a section in its document. */
export type SectionMark = {
  /** The section's heading, or its anchor if the document repeats that heading. A ref shows this name after `§`. */
  name: string
  anchor: string
  /** The headings from the document's title down to this section. Empty for text before the first heading. */
  headings: string[]
  first_line: number
  last_line: number
}

/** One hunk of a diff. Each line begins with ` `, `+` or `-`, as in a unified diff. */
export type Hunk = {
  path: string
  old_start: number
  old_lines: number
  new_start: number
  new_lines: number
  lines: string[]
}

/** Something that a message did, derived from its tool calls and their results. */
export type Effect =
  | {
      type: "file"
      path: string
      action: "edited" | "read" | "mentioned"
      call_id?: string
      added?: number
      removed?: number
    }
  | { type: "command"; command: string; call_id?: string; exit_status?: number; failed?: boolean; error?: string }
  | { type: "commit"; hash: string; subject: string; branch?: string; call_id?: string }
  | { type: "pull_request"; url: string }

export type Message = {
  /**
   * The id of the native record, unique within its conversation. If a key occurs in two conversations of one source, dex assumes
   * that a fork or a resume copied the message. Therefore a key that is derived from a position must contain the conversation's
   * id.
   */
  key: string
  role: Role
  /** Milliseconds since 1970. Undefined if the record has no time. */
  at?: number
  model?: string
  parts: Part[]
  effects?: Effect[]
  usage?: Usage
  /** True if the message is on a branch that the person left (rewind, rollback, edit). It can still be read. */
  abandoned?: boolean
}

/** The possible sources of a title, best first. */
const TITLE_SOURCES = ["person", "agent", "summary", "plan", "commit", "first_prompt"] as const
export type Title = { text: string; from: (typeof TITLE_SOURCES)[number] }

/** The tag of a conversation with a star. */
export const STAR_TAG = "starred"

/** Says who ran the conversation: a person, another conversation, a script or dex. Documents and notes are not run by anybody. */
export const CONVERSATION_KINDS = ["person", "subagent", "automation", "dex", "document", "note"] as const
export type Kind = (typeof CONVERSATION_KINDS)[number]
/** The kinds that a listing shows by default. */
export const LISTED_KINDS: Kind[] = ["person"]

/** One conversation as a connector reads it from the records. Its messages get their numbers when they are stored. */
export type Conversation = {
  /** The agent's own id. */
  id: string
  kind: Kind
  title?: Title
  /** Every working directory in the records, in order of appearance. */
  cwds: string[]
  git_branch?: string
  git_remote?: string
  git_commit?: string
  agent_version?: string
  /** Set for a subagent. `call_id` is the parent's tool call that started it. */
  parent?: { id: string; call_id?: string }
  fork_of?: string
  /** The conversation that this one continues, if the agent starts a new file for that. */
  resume_of?: string
  started_at?: number
  ended_at?: number
  /** The messages in chronological order. */
  messages: Message[]
  /**
   * Several files can describe one conversation, such as a subagent's own file and its parent's progress records. The one with
   * the highest authority is stored.
   */
  authority: number
}
