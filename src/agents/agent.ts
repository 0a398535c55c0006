import type { SourceId } from "../core/conversation.ts"
import type { Connector } from "./kit/connector.ts"
import type { Roots } from "./kit/every-root.ts"
import type { Headless } from "./kit/headless.ts"
import type { AgentHooks } from "./kit/hooks.ts"
import type { Wiring } from "./kit/wiring.ts"

export type Basis = "recorded" | "sample" | "description"

/**
 * What dex knows of one coding agent: data and pure functions, in a folder of its own. Whoever reads sessions, opens
 * programs, answers hooks or edits settings interprets it. Small, because every command loads all of them: what is large
 * is loaded when it is asked for.
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
  /** The command that takes up an old conversation, by its id or by the file that it is kept in. */
  resume?: (id: string, path: string) => string[]
  /** The command that opens it with a first prompt, which is the last argument. */
  open?: readonly string[]
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
