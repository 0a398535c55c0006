import { setImmediate } from "node:timers/promises"
import type { Ref } from "../core/ref.ts"
import type { Change, HistoryReader } from "../store/history/store.ts"
import type { ConversationSpending, SpendingFile } from "../store/spending/spending-file.ts"
import { type MadeThing, type SpentPart, spendingInMessages } from "../usage/spending.ts"
import type { SyncProgress } from "./sync-types.ts"

const BATCH_SIZE = 64

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

/** Updates the spending file from the history. `read` counts the conversations whose messages had to be read. */
export async function followSpending(
  store: HistoryReader,
  file: SpendingFile,
  { knownSpending, maxReads = Number.POSITIVE_INFINITY, signal, onProgress }: FollowSpendingOptions = {},
): Promise<{ read: number; complete: boolean }> {
  let readCount = 0
  for (;;) {
    const from = file.followed()
    const feed = await store.changes(from, BATCH_SIZE)
    if (feed.rebuild) {
      file.clear()
      continue
    }
    const unknown = feed.changes.filter((change) => mayHaveCosts(change) && !hasKnownSpending(change, knownSpending))
    if (readCount + unknown.length > maxReads) return { read: readCount, complete: false }
    const spending: ConversationSpending[] = []
    for (const change of feed.changes) {
      spending.push(await spendingIn(store, change, knownSpending))
      if (unknown.includes(change)) await setImmediate() // gives an abort signal a chance to arrive
    }
    if (feed.token !== from && !file.save(spending, from, feed.token)) continue
    readCount += unknown.length
    if (unknown.length > 0) await onProgress?.(readCount)
    if (!feed.more) break
    if (signal?.aborted) return { read: readCount, complete: false }
  }
  file.purge()
  return { read: readCount, complete: true }
}

/** True if the history has changes that the spending file does not include yet. */
export async function isSpendingOutdated(store: HistoryReader, file: SpendingFile): Promise<boolean> {
  const { changes, rebuild } = await store.changes(file.followed(), 1)
  return rebuild || changes.length > 0
}

/**
 * Returns a function that shows how many conversations were read. They need to be read only if an older version of dex filled the
 * history.
 */
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
  const conversation = mayHaveCosts(changed) ? await store.conversation(ref!) : undefined
  if (!conversation || conversation.kind === "dex" || conversation.kind === "document") return { name, ref }
  const { spent, made } = hasKnownSpending(changed, knownSpending)
    ? knownSpending!(conversation.ref)!
    : spendingInMessages(await store.messages(conversation.ref), conversation.ended_at ?? conversation.started_at)
  const spender = {
    kind: conversation.kind,
    project: conversation.project,
    branch: conversation.git_branch,
    title: conversation.title?.text,
    parent: conversation.parent?.id,
  }
  return { name, ref: conversation.ref, spender, spent, made }
}
