import type { Machine } from "./connector.ts"

/** One question to an agent that is used as a model. The prompt itself goes to its standard input. */
export type HeadlessRequest = {
  /** The system prompt, as text and as a file. */
  system: string
  systemFile: string
  /** If absent, the agent chooses. */
  model?: string
  /** A folder for temporary files. It is removed afterwards. */
  scratch: string
  machine: Machine
}

export type HeadlessCall = {
  args: string[]
  /** Added to dex's own environment; undefined removes a variable. */
  env: Record<string, string | undefined>
  /** Files that must exist in its working folder, by path. */
  files?: Record<string, string>
}

/** The parsed output. Has tokens and cost if the agent reports them; `cost_usd` is the agent's own figure. */
export type HeadlessReply =
  | { type: "reply"; text: string; input?: number; output?: number; cost_usd?: number }
  | { type: "failed"; message: string; status?: number }

/**
 * How to use an installed agent as a model: one prompt, one answer. It runs without tools, hooks, MCP servers, files
 * and memory, and saves no session, if the agent has options for that.
 */
export type Headless = {
  program: string
  /** The commands that install or update it, and that log in. */
  install: string
  login: string
  /** Who receives the prompt, in words for the user's consent. */
  sendsTo: string
  /** It saves a session per folder and has no option against that, so it always works in the same folder. */
  keepsSessions?: true
  call(request: HeadlessRequest): HeadlessCall
  /** Undefined if the output cannot be read. Never throws. */
  read(printed: { stdout: string; stderr: string }): HeadlessReply | undefined
}
