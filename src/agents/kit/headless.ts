import type { Machine } from "./connector.ts"

/** One question to an agent that is asked as a model. The prompt itself goes to its standard input. */
export type HeadlessRequest = {
  /** What the model is told first: as a text, and as a file with that text. */
  system: string
  systemFile: string
  /** The agent's own choice where absent. */
  model?: string
  /** A folder for what it writes on the way. It is removed afterwards. */
  scratch: string
  machine: Machine
}

export type HeadlessCall = {
  args: string[]
  /** On top of what dex itself was given; undefined takes a variable away. */
  env: Record<string, string | undefined>
  /** What must be in the folder it works in, by path. */
  files?: Record<string, string>
}

/** What it printed, read. Tokens and money where it counts them; `cost_usd` is its own figure. */
export type HeadlessReply =
  | { type: "reply"; text: string; input?: number; output?: number; cost_usd?: number }
  | { type: "failed"; message: string; status?: number }

/**
 * How an installed agent is asked as a model: one prompt, one answer, and nothing else of it. No tool, no hook, no MCP
 * server, no file, no memory, and no session that is kept, as far as the agent has a way to say so.
 */
export type Headless = {
  program: string
  /** The commands that install or update it, and that log in. */
  install: string
  login: string
  /** Who gets what is asked, in words for the user's consent. */
  sendsTo: string
  /** It keeps a session for each folder and cannot be told not to: it always works in the same folder. */
  keepsSessions?: true
  call(request: HeadlessRequest): HeadlessCall
  /** Undefined where nothing of it can be read. Never throws. */
  read(printed: { stdout: string; stderr: string }): HeadlessReply | undefined
}
