import type { Connector, Machine } from "../agents/kit/connector.ts"
import type { Unloaded } from "../agents/outside.ts"
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
  /** The agents that the user brings, by name, and those of them that cannot be loaded. */
  outside?: readonly string[]
  unloaded?: readonly Unloaded[]
  machine: Machine
  home: { dir: string; history: string; lock: string }
}

export type SyncOptions = {
  /** Stop here; what is left is read by the next sync. */
  deadline?: number
  /** Stop here too, but only where much is left: what is little is read to its end, and all that was read can be found. */
  pauseAt?: number
  /** Do nothing, and say how large the largest unit is, when there is more than this to read. */
  mostBytes?: number
  /** Somebody waits, or little memory may be used: what takes long besides reading is left to another sync. */
  quick?: boolean
  redactAgain?: boolean
  /** Where another one is syncing, wait for its end and then read what it did not see. */
  wait?: boolean
  /** Set when messages are to get vectors at the end. Throws a DexError where the settings are not complete. */
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
  /** Spent on a model so far. */
  tokens?: number
}

export type SyncReport = {
  /** Somebody else is syncing: nothing was done here, and what they read is there for everyone. */
  busy: boolean
  /** All that was found is read. False after a deadline or an interruption. */
  complete: boolean
  found: number
  read: number
  changed: number
  added_messages: number
  archived: number
  /** Of those read, how many only because this dex keeps more of them than the one that read them before. */
  read_again: number
  bytes: number
  duration_ms: number
  unreadable: (UnreadableFile & { source: SourceId })[]
  /** Conversations that were damaged in the history and are whole again. */
  restored: Ref[]
  /** Conversations of which something is damaged and could not be restored. */
  damaged: Ref[]
  /** The state of the vectors, if an embedder is set. */
  embedding?: EmbedReport
}

/** `archived` was done already: it is part of looking at what there is. */
export type TooMuch = { largestUnitBytes: number; archived: number }
