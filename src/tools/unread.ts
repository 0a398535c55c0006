import { isDexSource } from "../agents/registry.ts"
import { grouped } from "../core/format.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import type { Dex } from "./context.ts"
import { projectsHiddenFromCaller } from "./resolve.ts"

/** A note on how many transcripts have been read so far, and what reads the rest. Undefined if all are read. */
export async function unreadNote(dex: Dex): Promise<string | undefined> {
  const progress = dex.hasHistory() ? await (await dex.store()).progress() : undefined
  if (!progress || progress.done >= progress.total) return undefined
  const rest = isSyncing(dex) ? "A sync is reading the rest." : "`dex sync` reads the rest."
  return `${grouped(progress.done)} of ${grouped(progress.total)} transcripts read so far. ${rest}`
}

const NO_HISTORY =
  "There is no history yet. `dex sync` reads your agents' conversations; `dex doctor sources` shows where dex looks."

const NOTHING_SHARED = "Nothing is shared with you on the hub yet. `dex hub status` shows your projects there."

/** The note to show with an answer if not everything has been read yet, or if the answer is empty and there is no history. */
export async function historyNote(dex: Dex, { found }: { found: boolean }): Promise<string | undefined> {
  const isEmpty = !found && !(dex.hasHistory() && (await hasVisibleHistory(dex)))
  if (!isEmpty) return unreadNote(dex)
  return dex.isTeam ? NOTHING_SHARED : NO_HISTORY
}

/** dex's own chats and notes do not count as history, and for an agent neither do private projects elsewhere. */
async function hasVisibleHistory(dex: Dex): Promise<boolean> {
  const { sources } = await (await dex.store()).stats(await projectsHiddenFromCaller(dex))
  return Object.keys(sources).some((source) => !isDexSource(source))
}

/** Recognises the note of `unreadNote`, so that a view that already shows the counts can leave it out. */
export function isUnreadNote(note: string): boolean {
  return / transcripts read so far\. /.test(note)
}

/** True if a sync is running in any process. */
export function isSyncing({ home }: Pick<Dex, "home">): boolean {
  try {
    const lock = tryLock(home.lock)
    lock?.release()
    return lock === undefined
  } catch {
    return false // The lock file cannot be written, so no process can sync.
  }
}
