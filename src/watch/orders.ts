import type { SourceId } from "../core/conversation.ts"
import { messageOf } from "../core/error.ts"
import type { Ref } from "../core/ref.ts"
import { syncWithThreads } from "../ingest/sync-thread.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import type { Listeners, ProjectChange } from "./listeners.ts"

/**
 * An order from the process that waits for changes to the process that reads them. `after` is the revision of the history when
 * the listeners were last called.
 */
export type Order = { type: "sync"; source?: SourceId; after?: string } | ({ type: "project" } & ProjectChange)

export type OrderReport = {
  /** True if another process is doing the work. */
  busy: boolean
  conversations: number
  messages: number
  duration_ms: number
  /** The number of agents' files that could not be read. */
  unreadable: number
  /** The current revision of the history. */
  seen?: string
  /** The errors of steps that failed. The other steps were carried out. */
  problems: string[]
}

const PAGE_SIZE = 500

/** Carries out one order. Throws if it fails completely; errors of single steps are reported in `problems`. */
export async function carryOutOrder(order: Order, dex: Dex, listeners: Listeners): Promise<OrderReport> {
  const started = performance.now()
  const orderReport: OrderReport = {
    busy: false,
    conversations: 0,
    messages: 0,
    duration_ms: 0,
    unreadable: 0,
    problems: [],
  }
  const runListener = async (work: () => Promise<unknown>) => {
    try {
      if ((await work()) === "busy") orderReport.busy = true
    } catch (error) {
      orderReport.problems.push(messageOf(error))
    }
  }
  if (order.type === "project") {
    const { type: _, ...change } = order
    for (const listener of listeners.project) await runListener(() => listener(dex, change))
  } else {
    const store = await dex.store()
    const before = order.after ?? (await store.revision())
    const syncReport = await syncSource(dex, order.source)
    const { refs, token } = await changedSince(store, before)
    if (refs.length > 0) for (const listener of listeners.messages) await runListener(() => listener(dex, refs))
    orderReport.busy ||= syncReport.busy
    orderReport.conversations = syncReport.changed
    orderReport.messages = syncReport.added_messages
    orderReport.unreadable = syncReport.unreadable.length
    orderReport.seen = token
  }
  orderReport.duration_ms = Math.round(performance.now() - started)
  return orderReport
}

/** Syncs one agent's sessions or, without a source, everything that `dex sync` reads. */
async function syncSource(dex: Dex, source: SourceId | undefined) {
  if (source === undefined) {
    const { sync } = await import("../tools/sync/sync.ts")
    return sync.run(dex, {})
  }
  const deps = await dex.syncDeps()
  const connectors = deps.connectors.filter((connector) => connector.source === source)
  return syncWithThreads({ ...deps, connectors }, dex.home.index, {
    signal: dex.signal,
    onProgress: dex.onProgress,
  })
}

/**
 * Returns the conversations that changed, whichever process read them, and the history's new revision. Returns no conversations
 * if the history can no longer list its changes since `before`.
 */
async function changedSince(store: HistoryReader, before: string): Promise<{ refs: Ref[]; token: string }> {
  const refs: Ref[] = []
  let token = before
  for (;;) {
    const page = await store.changes(token, PAGE_SIZE)
    if (page.rebuild) return { refs: [], token: await store.revision() }
    for (const { ref } of page.changes) if (ref) refs.push(ref)
    token = page.token
    if (!page.more) return { refs, token }
  }
}
