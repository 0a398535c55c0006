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

/** The facts to update in addition to those from conversations: everything about a project, or only its commits. */
export type ExtraFacts = {
  project?: string
  commits?: string
  /** Update only the spending. */
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
  /** The name of the calling agent, as it introduces itself. Absent on the command line. */
  caller?: string
  /** True if messages name the forms of `dex show` instead of the commands that they replaced: see `formLine`. */
  hasForms?: boolean
  /** True if the history belongs to a team: conversations are pushed to it, and no agent's files are read. */
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
  /** False until a command needs a fact, because nothing is learned before that. */
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
  learnInBackground?: (also: ExtraFacts) => Promise<string[]>
  /** The damage found since the last call: refs of damaged conversations, and sentences about other damage. */
  takeDamaged(): Promise<string[]>
  /** Learns in a subprocess. The caller must have the lock of the knowledge. */
  learnInSubprocess(): Promise<{ complete: boolean }>
  /** Starts `dex sync` as a separate process, which embeds everything that is missing. False if it could not be started. */
  syncInBackground?: () => Promise<boolean>
  /** True in a server: work that needs memory is then done in another process, even if there is little of it. */
  staysSmall?: boolean
  /** Everything that a sync needs, including the connectors of all agents that are or were on this machine. */
  syncDeps(): Promise<SyncDeps>
  /** The connectors of all agents, even of those that are not on this machine yet. */
  allConnectors(): Promise<readonly Connector[]>
  /** The agents that the user added. */
  outside(): Promise<OutsideAgents>
  /** Called again and again during long work. */
  onProgress?: (progress: SyncProgress) => void
  /** Called when dex waits for another process. */
  onWait?: (text: string) => void
  signal?: AbortSignal
  /**
   * Receives the facts for the trace that the output does not contain, such as scores and rejected candidates. Absent if no trace
   * is recorded.
   */
  trace?: (facts: TraceFacts) => void
  lastListing(): Listing
  /** Removes forgotten conversations from the last listings and from stored answers that were based on them. */
  clearCopies(refs: Ref[], projects: string[]): Promise<void>
  /** Redacts the copies outside the history again, or deletes them, because newer rules find more secrets. */
  redactCopies(): Promise<void>
}

/**
 * The last listing in this terminal: the refs that the row numbers 1, 2, 3 stand for, and the matched words if it was a search.
 */
export type Listing = { refs: string[]; words: string[] }
