import { join } from "node:path"
import { isDexError } from "../core/error.ts"
import { SPENDING_FILE } from "../core/formats.ts"
import { formatRef } from "../core/ref.ts"
import type { WriteResult } from "../store/history/store.ts"
import { openSpending, type SpendingFile } from "../store/spending/spending-file.ts"
import { spendingInMessages } from "../usage/spending.ts"
import { followSpending, learningProgress, type SpendingAtChange } from "./follow-spending.ts"
import type { SyncDeps, SyncOptions } from "./sync-types.ts"

/** The maximum number of older conversations to read for their spending while somebody waits. A full sync reads all. */
const MAX_QUICK_READS = 16

/** Records spending for `dex usage` during a sync, while every conversation is parsed anyway. */
export type SyncSpending = {
  add(paid: WriteResult["paid"]): void
  /** Writes what was added, and what other syncs did not finish. */
  follow(): Promise<void>
  /** Call it last. Pass true if something was stored: the database's log is then written back into its file. */
  finish(hasRead: boolean): Promise<void>
  close(): void
}

export function spendingOfSync({ store, home }: SyncDeps, options: SyncOptions): SyncSpending {
  const known = new Map<string, SpendingAtChange>()
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
      known.clear()
    }
  }
  const follow = async (opened: SpendingFile) => {
    await followSpending(store, opened, {
      knownSpending: (ref) => known.get(formatRef(ref)),
      maxReads: isQuick ? MAX_QUICK_READS : undefined,
      signal: options.signal,
      onProgress: options.onProgress && learningProgress(store, options.onProgress),
    })
  }
  return {
    add(paid) {
      for (const { ref, change, ended_at, messages } of paid)
        known.set(formatRef(ref), { change, ...spendingInMessages(messages, ended_at) })
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
