import type { Usage } from "./usage.ts"

/**
 * The agent whose history it is, as its record in agents/ names it; or `docs`: a document is kept as a conversation is, its
 * sections are its messages.
 */
export type SourceId = string

/** Whose words a part holds. `injected` is text that a hook, a skill or dex itself put there: never evidence. */
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
      /** The change this result reports, so that a line can later be traced to the conversation that wrote it. */
      hunks?: Hunk[]
    }
  /** The bytes are not kept: only what they were. */
  | { type: "image"; text: string; origin: Origin; mime?: string; bytes?: number; sha256?: string }
  /** A compaction's summary of what came before. */
  | { type: "summary"; text: string; origin: "agent" }

/** Where in its document a section stands. */
export type SectionMark = {
  /** Its heading, or its anchor where the document has that heading twice: what a ref says after `§`. */
  name: string
  anchor: string
  /** From the document's title down to its own. Empty for what stands before the first one. */
  headings: string[]
  first_line: number
  last_line: number
}

/** One run of changed lines; `lines` carry their ` `, `+` or `-`, as in a unified diff. */
export type Hunk = {
  path: string
  old_start: number
  old_lines: number
  new_start: number
  new_lines: number
  lines: string[]
}

/** What a message did to the world, told from its tool calls and their results. */
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
   * Names the native record. Unique within its conversation. The same key in two conversations of one source means the
   * same message, copied by a fork or a resume: so a key made of a position must contain the conversation's id.
   */
  key: string
  role: Role
  /** Milliseconds since 1970, where the record says so. */
  at?: number
  model?: string
  parts: Part[]
  effects?: Effect[]
  usage?: Usage
  /** True where the person went back (rewind, rollback, edit) and this branch was left. It stays readable. */
  abandoned?: boolean
}

/** Where a title came from, best first. */
const TITLE_SOURCES = ["person", "agent", "summary", "plan", "commit", "first_prompt"] as const
export type Title = { text: string; from: (typeof TITLE_SOURCES)[number] }

/** Who ran it: a person, another conversation, a script, or dex itself. Nobody ran a document or a note. */
export const CONVERSATION_KINDS = ["person", "subagent", "automation", "dex", "document", "note"] as const
export type Kind = (typeof CONVERSATION_KINDS)[number]
/** What a listing shows unless all was asked for: what a person did. */
export const PERSONS_KINDS: Kind[] = ["person"]

/** One conversation as a connector reads it out of the records; the store gives it numbers. */
export type Conversation = {
  /** As its agent numbers it. */
  id: string
  kind: Kind
  title?: Title
  /** Every working directory the records name, first one first. */
  cwds: string[]
  git_branch?: string
  git_remote?: string
  git_commit?: string
  agent_version?: string
  /** Set for a subagent. `call_id` is the parent's tool call that started it. */
  parent?: { id: string; call_id?: string }
  fork_of?: string
  /** The conversation that this one goes on with, where the agent starts a new file for it. */
  resume_of?: string
  started_at?: number
  ended_at?: number
  /** In the order in which they were said. */
  messages: Message[]
  /**
   * Several files can tell of one conversation (a database and its older JSON tree, a subagent's own file and its
   * parent's progress records). The highest authority is the one that is kept.
   */
  authority: number
}
