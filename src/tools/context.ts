import type { Connector, Machine } from "../agents/kit/connector.ts"
import type { OutsideAgents } from "../agents/outside.ts"
import type { Home } from "../config/home.ts"
import type { Ref } from "../core/ref.ts"
import type { TraceFacts } from "../core/trace.ts"
import type { SyncDeps, SyncProgress } from "../ingest/sync-types.ts"
import type { ConversationRow, HistoryReader, HistoryWriter, StoredMessage } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import type { TopicFacts } from "../store/knowledge/topic-facts.ts"
import type { SpendingFile } from "../store/spending/spending-file.ts"
import type { Suggestions } from "../store/suggestions/suggestions.ts"

/** Changes which facts are updated. By default, these are only the facts from conversations. */
export type ExtraFacts = {
  /** A project about which to update everything. */
  project?: string
  /** A project whose commits to update. */
  commits?: string
  /** Updates only the spending, and no other facts. */
  only?: "spending"
}

/** The environment of a tool. Databases open on first use, so that a command pays only for what it touches. */
export type Dex = {
  home: Home
  machine: Machine
  version: string
  cwd: string
  /**
   * The main folder of the repository that contains `cwd`, or `cwd` itself. The project's files, settings and git data are read
   * from this folder.
   */
  place: string
  /** The project that `cwd` belongs to, by its own folder. In another clone, that is not `place`. */
  project: string
  /** The project of any folder. */
  projectOf(folder: string): string
  /** The project's own folder and its others. */
  foldersOf(project: string): string[]
  /** Finds out to which project a folder belongs that dex sees for the first time, such as a fresh clone. */
  locate(): Promise<void>
  now(): number
  /** The name of the calling agent, as it introduces itself. Absent on the command line. */
  caller?: string
  /**
   * True if suggested commands are forms of `dex show`, such as `dex show 2 --lines`, not older commands such as `dex scan 2`.
   */
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
  /** Of the facts learned so far, those that say whether something changed later. Undefined if nothing was learned yet. */
  topicFacts(): Promise<TopicFacts | undefined>
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
  learnInBackground?: (extra: ExtraFacts) => Promise<string[]>
  /** The damage found since the last call: refs of damaged conversations, and sentences about other damage. */
  takeDamaged(): Promise<string[]>
  /** Learns in a subprocess. The caller must hold the knowledge lock. */
  learnInSubprocess(): Promise<{ complete: boolean }>
  /** A model's summary of a conversation, from these messages. Undefined if no model is set up. Absent on a hub. */
  summarize?: (
    dex: Dex,
    row: ConversationRow,
    messages: StoredMessage[],
  ) => Promise<{ text: string; sources: { n: number; ref: string }[] } | undefined>
  /** Starts `dex sync` as a separate process, which embeds everything that is missing. False if it could not be started. */
  syncInBackground?: () => Promise<boolean>
  /** True in a server, which should not use much memory: another process then reads a project's code, even if it is small. */
  staysSmall?: boolean
  /** Everything that a sync needs, including the connectors of all agents that are or were on this machine. */
  syncDeps(): Promise<SyncDeps>
  /** The connectors of all agents, even of those that are not on this machine yet. */
  allConnectors(): Promise<readonly Connector[]>
  /** The agents that the user added. */
  outsideAgents(): Promise<OutsideAgents>
  /** Called repeatedly during long work. */
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
