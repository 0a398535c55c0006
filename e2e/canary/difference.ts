import type { Agent } from "../agents.ts"

/** `copy` is an unread file that contains words of the conversation. */
export type What = "run" | "record" | "skipped" | "file" | "copy" | "table" | "column" | "text"

/** Something that the agent wrote and dex did not read, or that dex should have and has not. */
export type Difference = { what: What; name: string; count: number; why?: string }

export type AgentReport = {
  agent: Agent["name"]
  title: string
  /** The newest version on npm. */
  newest?: string
  /** The version that was run. */
  version?: string
  seconds?: number
  files: number
  read: number
  records: Record<string, number>
  differences: Difference[]
  explained: Difference[]
}

export type Report = {
  date: string
  agents: AgentReport[]
  not_run: readonly { title: string; package: string; why: string }[]
}

export const WORDS: Record<What, string> = {
  run: "could not be run",
  record: "unknown record",
  skipped: "damaged record",
  file: "unread file",
  copy: "unread file with words of the conversation",
  table: "unknown table",
  column: "unknown column",
  text: "lost",
}
