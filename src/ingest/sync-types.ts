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
  /** The names of the agents that the user added. */
  outsideAgents?: readonly string[]
  /** The agents that could not be loaded. */
  unloaded?: readonly UnloadedAgent[]
  machine: Machine
  home: { dir: string; history: string; lock: string }
}

export type SyncOptions = {
  /** The time at which to stop; the next sync reads the rest. */
  deadline?: number
  /**
   * The time at which to stop if much remains to be read. A small remainder is still read, and everything that was read becomes
   * searchable.
   */
  pauseAt?: number
  /** If there are more bytes to read than this, nothing is read, and the size of the largest unit is returned. */
  maxBytes?: number
  /** True if somebody is waiting or memory is limited. Slow work other than reading is then left to a later sync. */
  quick?: boolean
  /**
   * True if a list on the screen waits for the first conversations. They are then read before the index is updated, which costs
   * more, because the index reads them again from the history.
   */
  fillsList?: boolean
  redactAgain?: boolean
  /** True to wait for a sync that is already running, and then sync too. */
  wait?: boolean
  /**
   * Returns the settings of the embedder. If set, messages get vectors at the end of the sync. Throws a DexError if the settings
   * are incomplete.
   */
  embed?: () => EmbedSettings
  signal?: AbortSignal
  onProgress?: (progress: SyncProgress) => void
}

export type SyncProgress = {
  phase: "waiting" | "reading" | "importing" | "indexing" | "asking" | "embedding" | "mapping" | "learning" | "sending"
  done: number
  total: number
  bytes: number
  bytesTotal: number
  /** Tokens spent on a model so far. */
  tokens?: number
}

export type SyncReport = {
  /** True if another sync is running, so this one did nothing. */
  busy: boolean
  /** True if everything that was found was read. False after a deadline or an interruption. */
  complete: boolean
  found: number
  read: number
  changed: number
  added_messages: number
  archived: number
  /**
   * The number of units that were read again only because this version of dex reads them differently from the version that stored
   * them.
   */
  read_again: number
  bytes: number
  duration_ms: number
  unreadable: (UnreadableFile & { source: SourceId })[]
  /** Conversations that were damaged in the history and have been restored. */
  restored: Ref[]
  /** Damaged conversations that could not be restored. */
  damaged: Ref[]
  /** The state of the vectors, if an embedder is configured. */
  embedding?: EmbedReport
}

/** The result if there was too much to read. `archived` counts the units that were archived before dex knew the size. */
export type TooMuchToRead = { largestUnitBytes: number; archived: number }
