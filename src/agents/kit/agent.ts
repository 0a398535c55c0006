import type { SourceId } from "../../core/conversation.ts"
import type { AgentLimits } from "../../core/limits.ts"
import type { Moment } from "../../core/suggestion.ts"
import type { Bring } from "./bring.ts"
import type { Connector } from "./connector.ts"
import type { HeadlessAgent } from "./headless.ts"
import type { Roots } from "./places.ts"
import type { Wiring } from "./wiring.ts"

/** How well the format is known; see `Agent.basis`. */
export type Basis = "recorded" | "sample" | "description"

/**
 * Everything that dex knows about one coding agent, as data and pure functions. The code that reads sessions, starts programs,
 * answers hooks or edits settings uses it. Every command loads all agents, so each is small and loads its large parts on demand.
 */
export type Agent = {
  /** The prefix of the agent's refs. It is stored: never change it or give it to another agent. */
  source: SourceId
  /** The name that people use. */
  name: string
  /** Other names that people type for the agent. */
  aliases?: readonly string[]
  /** The agent whose format this agent shares. The same code reads the sessions of both. */
  variantOf?: SourceId
  /** The folders that may contain sessions. Must be cheap, because it is also called for agents that are not installed. */
  roots?: Roots
  /**
   * The evidence with which the reader was tested: sessions written by the agent itself, other people's samples of such sessions,
   * or only a description of the format.
   */
  basis?: Basis
  /** Reads the agent's sessions. Absent if dex serves this agent but does not read it. Loaded only if one of its roots exists. */
  connector?: () => Promise<Connector>
  /** True for a service whose conversations `dex import` reads from an export. It has no folder on this machine. */
  isExported?: true
  /**
   * The command that resumes an old conversation, by its id or by the file that contains it. `isElsewhere` is true if it is run in
   * another folder than the conversation's own.
   */
  resume?: (id: string, path: string, isElsewhere?: boolean) => string[]
  /** Copies a conversation to a folder in which the agent finds it. Absent if that is never necessary. */
  bring?: () => Promise<Bring>
  /** The command that starts the agent with a first prompt, which is the last argument. */
  open?: readonly string[]
  /** The reason why `resume` or `open` is missing. */
  whyMissing?: { resume?: string; open?: string }
  /** How the programs that the agent starts can find out to which conversation they belong. */
  session?: {
    variable: string
    /** Reads the id from the metadata of an MCP call. */
    idFromCall?: (meta: Record<string, unknown>) => string | undefined
  }
  /** The field names that mark a transcript line as the output of a tool. */
  toolOutputMarks?: readonly string[]
  /** Reads the agent's hook input and answers it. */
  hooks?: () => Promise<AgentHooks>
  /** The form of the answers, if it is not Claude Code's. */
  hookOutput?: HookOutput
  /** Uses the agent as a model. */
  headless?: () => Promise<HeadlessAgent>
  /** Reads the limits of the user's plan from the agent's own files. */
  limits?: () => Promise<(roots: readonly string[]) => AgentLimits | undefined>
  /** Adds dex to the agent's settings. */
  wiring?: () => Promise<Wiring>
}

/**
 * Translates one agent's hook input to a moment, and dex's text to the answer format of that agent's hooks. Both are pure
 * functions. The input is untrusted JSON.
 */
export type AgentHooks = {
  /** Returns undefined if dex has nothing to contribute, or if a field has the wrong type. */
  moment(event: string, input: HookInput): HookMoment | undefined
  /** Formats the output that makes the agent show the text to its model. */
  answer(event: string, text: string): string
  /**
   * Like `answer`, for `dex-hook`, which joins several pieces into one answer and adds the event; see `integrations/launcher.ts`.
   */
  piece(text: string): string
}

/** The facts that an agent reports at a hook. The project is derived from `cwd`. */
export type HookMoment = Omit<Moment, "project" | "source" | "at"> & {
  session: string
  cwd: string
  /** The transcript file of the session, if the agent names it. */
  transcript?: string
}

export type HookInput = Record<string, unknown>

/** Plain text, or a JSON object in which the field of this name has the text. */
export type HookOutput = "text" | "additionalContext" | "contextModification" | "additional_context"

type Variant = Pick<
  Agent,
  | "name"
  | "aliases"
  | "basis"
  | "resume"
  | "open"
  | "whyMissing"
  | "toolOutputMarks"
  | "hooks"
  | "hookOutput"
  | "wiring"
> & {
  source: SourceId
  roots: Roots
  /** Loads the connector of the agent whose format this agent shares. */
  reader: () => Promise<Connector>
  /** The parts of the connector that differ from the other agent's connector. */
  overrides?: (parent: Connector) => Promise<Partial<Connector>>
}

/**
 * Declares an agent that writes another agent's format into its own folder. The other agent's code reads its sessions, and they
 * are stored under its own name.
 */
export function agentVariant(variantOf: SourceId, { reader, overrides, ...agent }: Variant): Agent {
  return {
    ...agent,
    variantOf,
    connector: async () => {
      const parent = await reader()
      return { ...parent, ...(await overrides?.(parent)), source: agent.source, roots: agent.roots }
    },
  }
}
