import type { SourceId } from "../../core/conversation.ts"
import type { Moment } from "../../core/suggestion.ts"
import type { Connector } from "./connector.ts"
import type { Headless } from "./headless.ts"
import type { Roots } from "./places.ts"
import type { Wiring } from "./wiring.ts"

export type Basis = "recorded" | "sample" | "description"

/**
 * What dex knows about one coding agent: data and pure functions. Code that reads sessions, starts programs, answers hooks or
 * edits settings works from it. Every command loads all records, so they are small, and load what is large when it is needed.
 */
export type Agent = {
  /** How its refs begin. It is stored: never changed, and never given to another. */
  source: SourceId
  /** As people call it. */
  name: string
  /** Other words that people type for it. */
  aliases?: readonly string[]
  /** The agent whose format it has: it is read with the same code, and has no folder of its own. */
  variantOf?: SourceId
  /** Where its sessions may be. Cheap, so that looking for an agent that is not installed costs next to nothing. */
  roots?: Roots
  /**
   * What its reading was tried on: sessions that its own program wrote, other people's samples of such sessions, or
   * nothing but a description of its format.
   */
  basis?: Basis
  /** Reads its sessions. Absent where dex is given to it, and does not read it. Loaded only where a root is there. */
  connector?: () => Promise<Connector>
  /** The command that continues an old conversation, by its id or by the file that contains it. */
  resume?: (id: string, path: string) => string[]
  /** The command that opens it with a first prompt, which is the last argument. */
  open?: readonly string[]
  /** Why there is no such command. */
  without?: { resume?: string; open?: string }
  /** How it tells what it starts which conversation it is. */
  session?: {
    variable: string
    /** From what it sends with a call over MCP. */
    inCall?: (meta: Record<string, unknown>) => string | undefined
  }
  /** The names by which a line of its transcript shows that it holds what a tool printed. */
  printedMarks?: readonly string[]
  /** What it says at its hooks, and how it wants to be answered. */
  hooks?: () => Promise<AgentHooks>
  /** How it is asked as a model. */
  headless?: () => Promise<Headless>
  /** How dex is given to it. */
  wiring?: () => Promise<Wiring>
}

/** One agent's hooks: what it says of the moment, and how it wants to be answered. Pure; its input is anybody's JSON. */
export type AgentHooks = {
  /** Undefined where there is nothing for dex to say, or where a field is not what it should be. */
  moment(event: string, input: HookInput): HookMoment | undefined
  /** What to print, so that the text stands before the model. */
  answer(event: string, text: string): string
  /** The same for `dex-hook`, which puts several into one answer and names the event: see `integrations/launcher.ts`. */
  piece(text: string): string
}

/** The project is found from the folder. */
export type HookMoment = Omit<Moment, "project" | "source" | "at"> & {
  session: string
  cwd: string
  /** What the agent keeps of the session, where it says so. */
  transcript?: string
}

export type HookInput = Record<string, unknown>

type Variant = Pick<Agent, "name" | "aliases" | "basis" | "resume" | "open" | "without" | "printedMarks"> & {
  source: SourceId
  roots: Roots
  /** Reads the sessions of the agent whose format it has. */
  reader: () => Promise<Connector>
  /** What it does differently from that agent. */
  differs?: (parent: Connector) => Promise<Partial<Connector>>
}

/** An agent that writes what another one writes, in a folder of its own: read by that one's code, under its own name. */
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
