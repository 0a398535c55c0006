import type { Connector, Machine } from "../agents/kit/connector.ts"
import type { OutsideAgents } from "../agents/outside.ts"
import type { Home } from "../config/home.ts"
import type { Ref } from "../core/ref.ts"
import type { TraceFacts } from "../core/trace.ts"
import type { SyncDeps, SyncProgress } from "../ingest/sync-types.ts"
import type { HistoryReader, HistoryWriter } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import type { SpendingFile } from "../store/spending/spending-file.ts"
import type { Suggestions } from "../store/suggestions/suggestions.ts"

/** The facts to read in addition to the conversations: everything about a project, or only its commits. */
export type AlsoRead = {
  project?: string
  commits?: string
  /** Read only the spending. */
  only?: "spending"
}

/** The environment of a tool. Databases open on first use, so that a command pays only for what it touches. */
export type Dex = {
  home: Home
  machine: Machine
  version: string
  cwd: string
  /** The project that `cwd` belongs to. */
  project: string
  now(): number
  /** The agent that calls, by its own name. Absent on the command line. */
  caller?: string
  /** Messages name the forms of `dex show` instead of the commands that they replaced: see `formLine`. */
  hasForms?: boolean
  /** The history belongs to a team: conversations are pushed to it, and no agent's files are read. */
  isTeam?: true
  /** False until the first sync. */
  hasHistory(): boolean
  /** The history, for reading. */
  store(): Promise<HistoryReader>
  /** The history, for writing. */
  storeToWrite(): Promise<HistoryWriter>
  /** The index, for reading. Undefined if it is missing or damaged; a search then reads the history directly. */
  index(): Promise<SearchIndex | undefined>
  indexIsDamaged(): Promise<boolean>
  /** The index, for writing. Undefined if there is none. */
  indexToWrite(): Promise<SearchIndex | undefined>
  /** False until a fact is first needed: nothing is learned before that. */
  hasKnowledge(): boolean
  /** The facts learned so far. The file is created if it does not exist. */
  knowledge(): Promise<Knowledge>
  /** The spending, up to the last sync. The file is created if it does not exist. */
  spending(): Promise<SpendingFile>
  /** False until something is suggested or subscribed to. */
  hasSuggestions(): boolean
  /** The suggestions and subscriptions. The file is created when the first one is saved. */
  suggestions(): Promise<Suggestions>
  /**
   * Updates the facts outside this thread and returns notes about anything that is not known yet. If absent, the caller updates
   * them.
   */
  learnInBackground?: (also: AlsoRead) => Promise<string[]>
  /** The damage found since the last call: refs of damaged conversations, and sentences about other damage. */
  takeDamaged(): Promise<string[]>
  /** Learns in a subprocess. The caller must hold the lock. */
  learnInSubprocess(): Promise<{ complete: boolean }>
  /** Starts `dex sync` as a separate process, which embeds everything that is missing. False if it could not be started. */
  syncInBackground?: () => Promise<boolean>
  /** dex runs inside a server, so work that needs memory is done in another process, even if there is little of it. */
  staysSmall?: boolean
  /** Includes the connectors of all agents that are or were on this machine. */
  syncDeps(): Promise<SyncDeps>
  /** The connectors of all agents, for a caller that waits for agents to appear. */
  allConnectors(): Promise<readonly Connector[]>
  /** The agents that the user added. */
  outside(): Promise<OutsideAgents>
  /** Called during long work. */
  onProgress?: (progress: SyncProgress) => void
  /** Called when dex waits for another process. */
  onWait?: (text: string) => void
  signal?: AbortSignal
  /**
   * Receives what the trace needs and the output does not contain: scores, rejected candidates. Absent if nothing is recorded.
   */
  trace?: (facts: TraceFacts) => void
  lastListing(): Listing
  /** Removes forgotten conversations from the last listings and from stored answers that were based on them. */
  clearCopies(refs: Ref[], projects: string[]): Promise<void>
  /** Redacts the copies outside the history again with the current rules, or deletes them. Newer rules find more. */
  redactCopies(): Promise<void>
}

/**
 * The last listing in this terminal: the refs that the row numbers 1, 2, 3 stand for, and the matched words if it was a search.
 */
export type Listing = { refs: string[]; words: string[] }
