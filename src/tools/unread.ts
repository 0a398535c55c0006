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
