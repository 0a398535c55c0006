import type { SourceId } from "../../core/conversation.ts"
import type { Moment } from "../../core/suggestion.ts"
import type { Connector } from "./connector.ts"
import type { Headless } from "./headless.ts"
import type { Roots } from "./places.ts"
import type { Wiring } from "./wiring.ts"

export type Basis = "recorded" | "sample" | "description"

/**
 * Everything dex knows about one coding agent, as data and pure functions. The code that reads sessions, starts
 * programs, answers hooks or edits settings works from it. Every command loads all agents, so each is small and loads
 * its large parts on demand.
 */
export type Agent = {
  /** The prefix of its refs. It is stored: never change it or give it to another agent. */
  source: SourceId
  /** The name that people use. */
  name: string
  /** Other names that people type for it. */
  aliases?: readonly string[]
  /** The agent whose format it shares: the same code reads both, and this one has no folder of its own. */
  variantOf?: SourceId
  /** Where its sessions may be. Cheap, so that checking for an agent that is not installed costs almost nothing. */
  roots?: Roots
  /**
   * The evidence that the reader was tested with: sessions written by the agent itself, other people's samples of such
   * sessions, or only a description of the format.
   */
  basis?: Basis
  /** Reads its sessions. Absent if dex serves this agent but does not read it. Loaded only if one of its roots exists. */
  connector?: () => Promise<Connector>
  /** The command that resumes an old conversation, by its id or by the file that contains it. */
  resume?: (id: string, path: string) => string[]
  /** The command that starts it with a first prompt, which is the last argument. */
  open?: readonly string[]
  /** Why a command is missing. */
  without?: { resume?: string; open?: string }
  /** How the programs that it starts can find out which conversation they belong to. */
  session?: {
    variable: string
    /** Reads the id from the metadata of an MCP call. */
    inCall?: (meta: Record<string, unknown>) => string | undefined
  }
  /** The field names that mark a transcript line as the output of a tool. */
  printedMarks?: readonly string[]
  /** How to read its hook input and how to answer it. */
  hooks?: () => Promise<AgentHooks>
  /** How to use it as a model. */
  headless?: () => Promise<Headless>
  /** How dex is added to its settings. */
  wiring?: () => Promise<Wiring>
}

/**
 * Translates one agent's hooks: its input into a moment, and dex's text into its answer format. Pure. The input is
 * untrusted JSON.
 */
export type AgentHooks = {
  /** Undefined if dex has nothing to contribute, or if a field has the wrong type. */
  moment(event: string, input: HookInput): HookMoment | undefined
  /** The output that makes the agent show the text to its model. */
  answer(event: string, text: string): string
  /** The same for `dex-hook`, which joins several into one answer and adds the event: see `integrations/launcher.ts`. */
  piece(text: string): string
}

/** The project is derived from `cwd`. */
export type HookMoment = Omit<Moment, "project" | "source" | "at"> & {
  session: string
  cwd: string
  /** The transcript file of the session, if the agent names it. */
  transcript?: string
}

export type HookInput = Record<string, unknown>

type Variant = Pick<Agent, "name" | "aliases" | "basis" | "resume" | "open" | "without" | "printedMarks"> & {
  source: SourceId
  roots: Roots
  /** Loads the connector of the agent whose format it shares. */
  reader: () => Promise<Connector>
  /** The parts of the connector that differ from that agent. */
  differs?: (parent: Connector) => Promise<Partial<Connector>>
}

/** An agent that writes another agent's format into its own folder. It is read by that agent's code, under its own name. */
export function variant(variantOf: SourceId, { reader, differs, ...own }: Variant): Agent {
  return {
    ...own,
    variantOf,
    connector: async () => {
      const read = await reader()
      return { ...read, ...(await differs?.(read)), source: own.source, roots: own.roots }
    },
  }
}
