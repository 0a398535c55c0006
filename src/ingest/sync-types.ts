import type { Connector, Machine } from "../agents/kit/connector.ts"
import type { UnloadedAgent } from "../agents/outside.ts"
import type { SourceId } from "../core/conversation.ts"
import type { Ref } from "../core/ref.ts"
import type { EmbedSettings } from "../embed/embedder.ts"
import type { HistoryWriter, UnreadableFile } from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { EmbedReport } from "./embed-messages.ts"

export type SyncDeps = {
  store: HistoryWriter
  index: SearchIndex
  connectors: readonly Connector[]
  /** The agents that the user added, by name, and those that could not be loaded. */
  outside?: readonly string[]
  unloaded?: readonly UnloadedAgent[]
  machine: Machine
  home: { dir: string; history: string; lock: string }
}

export type SyncOptions = {
  /** The time at which to stop. The next sync reads the rest. */
  deadline?: number
  /** A time at which to stop only if much remains. A small remainder is finished, and everything read can be found. */
  pauseAt?: number
  /** The most bytes to read. If there is more, the sync does nothing and returns the size of the largest unit. */
  mostBytes?: number
  /** True if somebody waits or memory is limited. Slow work other than reading is then left to another sync. */
  quick?: boolean
  redactAgain?: boolean
  /** If another sync is running, waits for it to end and then reads what it did not see. */
  wait?: boolean
  /** Set if messages should get vectors at the end. Throws a DexError if the settings are incomplete. */
  embed?: () => EmbedSettings
  signal?: AbortSignal
  onProgress?: (progress: SyncProgress) => void
}

export type SyncProgress = {
  phase: "waiting" | "reading" | "indexing" | "asking" | "embedding" | "mapping" | "learning" | "sending"
  done: number
  total: number
  bytes: number
  bytesTotal: number
  /** The tokens spent on a model so far. */
  tokens?: number
}

export type SyncReport = {
  /** True if another sync is running, so that this one did nothing. */
  busy: boolean
  /** True if everything found was read. False after a deadline or an interruption. */
  complete: boolean
  found: number
  read: number
  changed: number
  added_messages: number
  archived: number
  /** The number of units that were read only because this dex stores more than the version that read them before. */
  read_again: number
  bytes: number
  duration_ms: number
  unreadable: (UnreadableFile & { source: SourceId })[]
  /** Conversations that were damaged in the history and have been restored. */
  restored: Ref[]
  /** Conversations with damage that could not be restored. */
  damaged: Ref[]
  /** The state of the vectors, if an embedder is set. */
  embedding?: EmbedReport
}

/** `archived` is set because discovery has already archived these units. */
export type TooMuchToRead = { largestUnitBytes: number; archived: number }
