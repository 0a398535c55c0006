import type { Connector, Machine } from "../agents/kit/connector.ts"
import type { Outside } from "../agents/outside.ts"
import type { Home } from "../config/home.ts"
import type { Ref } from "../core/ref.ts"
import type { TraceFacts } from "../core/trace.ts"
import type { SyncDeps, SyncProgress } from "../ingest/sync-types.ts"
import type { HistoryReader, HistoryWriter } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import type { SpendingFile } from "../store/spending/spending-file.ts"
import type { Suggestions } from "../store/suggestions/suggestions.ts"

/** What is read for the facts beside the conversations: all that a project tells, or only its commits. */
export type AlsoRead = {
  project?: string
  commits?: string
  /** Nothing but what was spent. */
  only?: "spending"
}

/** What a tool works with. Databases open on first use, so that a command pays only for what it touches. */
export type Dex = {
  home: Home
  machine: Machine
  version: string
  cwd: string
  /** The project that `cwd` belongs to. */
  project: string
  now(): number
  /** The agent that asks, as it calls itself. Absent on the command line. */
  caller?: string
  /** What dex says names the forms of `dex show`, not the commands that they were: see `formLine`. */
  hasForms?: boolean
  /** The history is a team's: it is pushed to, and nothing is read on this machine. */
  isTeam?: true
  /** False before anything was ever synced. */
  hasHistory(): boolean
  /** To ask. */
  store(): Promise<HistoryReader>
  /** To change. */
  storeToWrite(): Promise<HistoryWriter>
  /** To ask. Undefined when there is none, or a damaged one; a search then reads the history itself. */
  index(): Promise<SearchIndex | undefined>
  indexIsDamaged(): Promise<boolean>
  /** To change. Undefined when there is none. */
  indexToWrite(): Promise<SearchIndex | undefined>
  /** False before anybody asked for a fact: until then none is learned. */
  knows(): boolean
  /** The facts, as far as they were learned. Made where there are none yet. */
  knowledge(): Promise<Knowledge>
  /** What was spent, as far as syncs have written it. Made where there is none yet. */
  spending(): Promise<SpendingFile>
  /** False before anything was suggested or subscribed to. */
  hasSuggestions(): boolean
  /** What was suggested and what is subscribed to. Its file is made when the first is kept. */
  suggestions(): Promise<Suggestions>
  /** Brings the facts up to date somewhere else, and says what is not known yet. Absent: whoever asks for them does it. */
  learnBehind?: (also: AlsoRead) => Promise<string[]>
  /** What was found damaged since this was last asked: refs of conversations, and in words what else. */
  takeDamaged(): Promise<string[]>
  /** Learns in a process of its own, for who holds the lock. */
  learnApart(): Promise<{ complete: boolean }>
  /** Starts `dex sync` as a process of its own, which embeds all that is missing. False: it could not be started. */
  syncBehind?: () => Promise<boolean>
  /** Runs beside a server's answers: what takes memory is done in another process, little of it too. */
  staysSmall?: boolean
  /** With the connectors of those agents that are there, or were. */
  syncDeps(): Promise<SyncDeps>
  /** Of all agents, for who waits for them to come. */
  everyConnector(): Promise<readonly Connector[]>
  /** The agents that the user brings. */
  outside(): Promise<Outside>
  /** What to show while long work goes on. */
  onProgress?: (progress: SyncProgress) => void
  /** What to say when somebody else is waited for. */
  onWait?: (text: string) => void
  signal?: AbortSignal
  /** Takes what the output does not hold and the trace should: scores, candidates that lost. Absent when nobody records. */
  trace?: (facts: TraceFacts) => void
  lastListing(): Listing
  /** Forgotten conversations must not live on in the last listings, nor in answers that were made of them. */
  clearCopies(refs: Ref[], projects: string[]): Promise<void>
  /** Newer rules find more: what was kept beside the history under older ones is redacted again, or goes. */
  redactCopies(): Promise<void>
}

/** The last listing in this terminal: what the numbers 1, 2, 3 stand for, and the words that were found where it is a search's. */
export type Listing = { refs: string[]; words: string[] }
