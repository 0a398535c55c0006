import { setImmediate } from "node:timers/promises"
import type { Ref } from "../core/ref.ts"
import type { Change, HistoryReader } from "../store/history/store.ts"
import type { ConversationSpending, SpendingFile } from "../store/spending/spending-file.ts"
import { type MadeThing, type SpentPart, spendingInMessages } from "../usage/spending.ts"
import type { SyncProgress } from "./sync-types.ts"

const BATCH = 64

/** A conversation's spending as of one change in the history. It may be outdated after the next change. */
export type SpendingAtChange = { change: number; spent: SpentPart[]; made: MadeThing[] }

export type FollowSpendingOptions = {
  /** Looks up known spending, so that the conversation need not be read. */
  knownSpending?: (ref: Ref) => SpendingAtChange | undefined
  /** The maximum number of conversations to read. If there are more, the update stops. */
  maxReads?: number
  signal?: AbortSignal
  onProgress?: (read: number) => Promise<void>
}

/** Updates the spending from the history. `read` counts the conversations whose messages had to be read. */
export async function followSpending(
  store: HistoryReader,
  file: SpendingFile,
  { knownSpending, maxReads = Number.POSITIVE_INFINITY, signal, onProgress }: FollowSpendingOptions = {},
): Promise<{ read: number; complete: boolean }> {
  let read = 0
  for (;;) {
    const from = file.followed()
    const feed = await store.changes(from, BATCH)
    if (feed.rebuild) {
      file.clear()
      continue
    }
    const unknown = feed.changes.filter((change) => mayHaveCosts(change) && !hasKnownSpending(change, knownSpending))
    if (read + unknown.length > maxReads) return { read, complete: false }
    const spending: ConversationSpending[] = []
    for (const change of feed.changes) {
      spending.push(await spendingIn(store, change, knownSpending))
      if (unknown.includes(change)) await setImmediate() // so that an abort signal is noticed
    }
    if (feed.token !== from && !file.save(spending, from, feed.token)) continue
    read += unknown.length
    if (unknown.length > 0) await onProgress?.(read)
    if (!feed.more) break
    if (signal?.aborted) return { read, complete: false }
  }
  file.purge()
  return { read, complete: true }
}

/** True if the history has changes that are not counted yet. */
export async function isSpendingOutdated(store: HistoryReader, file: SpendingFile): Promise<boolean> {
  const { changes, rebuild } = await store.changes(file.followed(), 1)
  return rebuild || changes.length > 0
}

/** Reports the progress to a person. Only a history that was filled by an older dex has anything to read. */
export function learningProgress(
  store: HistoryReader,
  show: (progress: SyncProgress) => void,
): (read: number) => Promise<void> {
  let conversations: number | undefined
  return async (done) => {
    conversations ??= (await store.stats()).conversations
    const total = Math.max(done, conversations)
    show({ phase: "learning", done, total, bytes: done, bytesTotal: total })
  }
}

/** False for documents and notes, which cost nothing, and for deleted conversations. */
function mayHaveCosts({ ref, deleted }: Change): boolean {
  return !deleted && ref !== undefined && ref.source !== "docs" && ref.source !== "dex_note"
}

function hasKnownSpending({ ref, change }: Change, knownSpending: FollowSpendingOptions["knownSpending"]): boolean {
  const known = ref && knownSpending?.(ref)
  return known !== undefined && known.change === change
}

async function spendingIn(
  store: HistoryReader,
  changed: Change,
  knownSpending: FollowSpendingOptions["knownSpending"],
): Promise<ConversationSpending> {
  const { conversation: name, ref } = changed
  const row = mayHaveCosts(changed) ? await store.conversation(ref!) : undefined
  if (!row || row.kind === "dex" || row.kind === "document") return { name, ref }
  const { spent, made } = hasKnownSpending(changed, knownSpending)
    ? knownSpending!(row.ref)!
    : spendingInMessages(await store.messages(row.ref), row.ended_at ?? row.started_at)
  const spender = {
    kind: row.kind,
    project: row.project,
    branch: row.git_branch,
    title: row.title?.text,
    parent: row.parent?.id,
  }
  return { name, ref: row.ref, spender, spent, made }
}
