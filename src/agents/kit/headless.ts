import type { Machine } from "./connector.ts"

/** One question to an agent that is used as a model. The prompt itself goes to its standard input. */
export type HeadlessRequest = {
  /** The text of the system prompt, and the path of a file that contains it. */
  system: string
  systemFile: string
  /** The model's name. If absent, the agent chooses the model. */
  model?: string
  /** A folder for temporary files, which is removed afterwards. */
  scratch: string
  machine: Machine
}

export type HeadlessCall = {
  args: string[]
  /** Variables added to dex's own environment; undefined removes one. */
  env: Record<string, string | undefined>
  /** Files that must exist in the working folder, by path. */
  files?: Record<string, string>
}

/** The parsed output. It has tokens and cost if the agent reports them; `cost_usd` is the agent's own figure. */
export type HeadlessReply =
  | { type: "reply"; text: string; input?: number; output?: number; cost_usd?: number }
  | { type: "failed"; message: string; status?: number }

/**
 * Uses an installed agent as a model: one prompt, one answer. The agent runs without tools, hooks, MCP servers, files and memory,
 * and saves no session, if it has options for that.
 */
export type HeadlessAgent = {
  program: string
  /** The commands that install or update the agent, and that log in. */
  install: string
  login: string
  /** The recipient of the prompt, as it is named when the user is asked for consent. */
  sendsTo: string
  /** True if the agent cannot be kept from saving sessions. dex then always runs it in the same folder. */
  keepsSessions?: true
  call(request: HeadlessRequest): HeadlessCall
  /** Parses the output. Returns undefined if it cannot be parsed. Never throws. */
  read(output: { stdout: string; stderr: string }): HeadlessReply | undefined
}
