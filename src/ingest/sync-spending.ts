import { join } from "node:path"
import { isDexError } from "../core/error.ts"
import { SPENDING_FILE } from "../core/formats.ts"
import { formatRef } from "../core/ref.ts"
import type { WriteResult } from "../store/history/store.ts"
import { openSpending, type SpendingFile } from "../store/spending/spending-file.ts"
import { spendingInMessages } from "../usage/spending.ts"
import { followSpending, learningProgress, type SpendingAtChange } from "./follow-spending.ts"
import type { SyncDeps, SyncOptions } from "./sync-types.ts"

/** The maximum number of older conversations to read for their spending in a quick sync, because somebody is waiting for it. */
const MAX_QUICK_READS = 16

/** Records spending for `dex usage` during a sync, because the sync parses the conversations anyway. */
export type SyncSpending = {
  add(paid: WriteResult["paid"]): void
  /** Writes the spending that was added, and completes what other syncs did not finish. */
  follow(): Promise<void>
  /**
   * Completes the spending. Call this last, before `close`. If `hasRead` is true, also writes the database's log back into its
   * file.
   */
  finish(hasRead: boolean): Promise<void>
  close(): void
}

export function spendingOfSync({ store, home }: SyncDeps, options: SyncOptions): SyncSpending {
  const addedSpending = new Map<string, SpendingAtChange>()
  let file: SpendingFile | undefined
  const isQuick = options.quick || options.deadline !== undefined || options.pauseAt !== undefined
  const ignoreDamage = async (work: (file: SpendingFile) => Promise<void>) => {
    try {
      file ??= openSpending(join(home.dir, SPENDING_FILE))
      await work(file)
    } catch (error) {
      // The file contains only derived data and is recreated when it is next opened.
      if (!isDexError(error) || error.code !== "corrupt") throw error
    } finally {
      addedSpending.clear()
    }
  }
  const follow = async (opened: SpendingFile) => {
    await followSpending(store, opened, {
      knownSpending: (ref) => addedSpending.get(formatRef(ref)),
      maxReads: isQuick ? MAX_QUICK_READS : undefined,
      signal: options.signal,
      onProgress: options.onProgress && learningProgress(store, options.onProgress),
    })
  }
  return {
    add(paid) {
      for (const { ref, change, ended_at, messages } of paid)
        addedSpending.set(formatRef(ref), { change, ...spendingInMessages(messages, ended_at) })
    },
    follow: () => ignoreDamage(follow),
    finish: (hasRead) =>
      ignoreDamage(async (opened) => {
        if (opened.followed() !== (await store.revision())) await follow(opened)
        if (options.redactAgain) opened.purge({ inAnyCase: true })
        if (hasRead) opened.checkpoint()
      }),
    close: () => file?.close(),
  }
}
