import { isOwn } from "../agents/registry.ts"
import { grouped } from "../core/format.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import type { Dex } from "./context.ts"

/** How much of what the agents have on disk was read so far, and who reads the rest. Undefined: all of it is read. */
export async function unreadNote(dex: Dex): Promise<string | undefined> {
  const progress = dex.hasHistory() ? await (await dex.store()).progress() : undefined
  if (!progress || progress.done >= progress.total) return undefined
  const rest = isSyncing(dex) ? "A sync is reading the rest." : "`dex sync` reads the rest."
  return `${grouped(progress.done)} of ${grouped(progress.total)} transcripts read so far. ${rest}`
}

const NO_HISTORY =
  "There is no history yet. `dex sync` reads what your agents have written; `dex doctor sources` shows where dex looks."

const NOTHING_SHARED = "Nothing is shared with you on the hub yet. `dex hub status` shows your projects there."

/** What is to be said below an answer from all that is read: that it is not all; and below none, that there is nothing yet. */
export async function historyNote(dex: Dex, { found }: { found: boolean }): Promise<string | undefined> {
  const isEmpty = !found && !(dex.hasHistory() && (await (await dex.store()).sourceReport()).some(isKept))
  if (!isEmpty) return unreadNote(dex)
  return dex.isTeam ? NOTHING_SHARED : NO_HISTORY
}

/** dex's own chats and notes are no history. */
function isKept({ source, conversations }: { source: string; conversations: number }): boolean {
  return !isOwn(source) && conversations > 0
}

/** Where the count is shown anyway, it is not said a second time. */
export function isUnreadNote(note: string): boolean {
  return / transcripts read so far\. /.test(note)
}

/** Whether a sync is running, in whichever process. */
export function isSyncing({ home }: Pick<Dex, "home">): boolean {
  try {
    const lock = tryLock(home.lock)
    lock?.release()
    return lock === undefined
  } catch {
    return false // where nobody can write, nobody syncs
  }
}
