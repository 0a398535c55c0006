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
  outside?: readonly string[]
  /** The agents that could not be loaded. */
  unloaded?: readonly UnloadedAgent[]
  machine: Machine
  home: { dir: string; history: string; lock: string }
}

export type SyncOptions = {
  /** When to stop; the next sync reads the rest. */
  deadline?: number
  /** When to stop if much remains. A small remainder is finished, and everything read can be found. */
  pauseAt?: number
  /** If there are more bytes to read than this, nothing is done, and the size of the largest unit is returned. */
  mostBytes?: number
  /** True if somebody waits, or memory is limited: slow work other than reading is left to another sync. */
  quick?: boolean
  redactAgain?: boolean
  /** True to wait until another running sync ends, and then to sync too. */
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
  /** Tokens spent on a model so far. */
  tokens?: number
}

export type SyncReport = {
  /** True if another sync is running. Nothing was done here, and that sync's results are for everyone. */
  busy: boolean
  /** True if everything that was found was read. False after a deadline or an interruption. */
  complete: boolean
  found: number
  read: number
  changed: number
  added_messages: number
  archived: number
  /** How many units were read only because this dex stores more than the version that read them before. */
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

/** The result if there was too much to read. `archived` is set, because units were archived before that was known. */
export type TooMuchToRead = { largestUnitBytes: number; archived: number }
