import { existsSync, renameSync } from "node:fs"
import { codeOf, DexError, isDexError, messageOf } from "../../core/error.ts"
import { formatRef } from "../../core/ref.ts"
import { copyReadable } from "../../store/history/rot/copy-readable.ts"
import { damageFile, noteDamage } from "../../store/history/rot/damage-list.ts"
import { repairFiles, setAside } from "../../store/history/rot/damaged-files.ts"
import { isIndexMismatch } from "../../store/history/rot/inspect.ts"
import { openStore } from "../../store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../store/history/store.ts"
import { removeDatabase } from "../../store/sqlite/database.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import type { Dex } from "../context.ts"

export type RepairResult = {
  /** The new name of the damaged file, if a new history was made from it. */
  kept_as?: string
  /** Rows that were copied to the new file. */
  rows?: number
  /** Refs of conversations that were restored completely. */
  restored: string[]
  /** Refs of conversations with lost parts. */
  damaged: string[]
}

/**
 * Restores as much as possible: first in place if SQLite can read the file, or else in a new file, and then from the agents'
 * files.
 */
export async function repair(dex: Dex): Promise<RepairResult> {
  if (!existsSync(dex.home.history)) return { restored: [], damaged: [] }
  const damagedAtStart = await findDamagedConversations(dex)
  const rebuilt = await whileNobodySyncs(dex, async () =>
    (await canBeRepairedInPlace(dex.home.history)) ? undefined : rebuildHistory(dex),
  )
  const damagedBefore = [...damagedAtStart, ...(await healAll(dex))]
  const { syncWithThreads } = await import("../../ingest/sync-thread.ts")
  const { restored, damaged } = await syncWithThreads(await dex.syncDeps(), dex.home.index, {
    onProgress: dex.onProgress,
    signal: dex.signal,
  })
  const { syncCollections } = await import("../docs/sync-collections.ts")
  await syncCollections(dex, { names: [] })
  const stillDamaged = new Set(damaged.map(formatRef))
  const complete = new Set([...restored.map(formatRef), ...damagedBefore].filter((ref) => !stillDamaged.has(ref)))
  return { ...rebuilt, restored: [...complete].sort(), damaged: [...stillDamaged].sort() }
}

/**
 * Restores the data that can be recomputed from other data in the history, and marks the rest for the next sync. Returns the refs
 * of all damaged conversations.
 */
async function healAll(dex: Dex): Promise<string[]> {
  const store = openStore(dex.home.history)
  try {
    const damagedRefs = await damagedIn(store)
    await store.heal([], { everywhere: true })
    noteDamage(damageFile(dex.home.dir), await damagedIn(store))
    return damagedRefs
  } finally {
    store.close()
  }
}

/** The damaged conversations that can still be found in the file. */
async function findDamagedConversations(dex: Dex): Promise<string[]> {
  try {
    const store = openStore(dex.home.history)
    return await damagedIn(store).finally(() => store.close())
  } catch {
    return [] // The file cannot be opened, so a new file will be made from it.
  }
}

async function damagedIn(store: HistoryWriter): Promise<string[]> {
  return (await store.inspect()).conversations.map(({ ref }) => formatRef(ref))
}

/** True if SQLite can read the file, so that no new file is needed. If only SQLite's indexes are damaged, rebuilds them. */
async function canBeRepairedInPlace(history: string): Promise<boolean> {
  try {
    const store = openStore(history)
    try {
      const problems = await store.check()
      if (problems.length === 0) return true
      if (!problems.every(isIndexMismatch)) return false
      await store.heal([], { everywhere: true })
      return (await store.check()).length === 0
    } finally {
      store.close()
    }
  } catch (error) {
    if (isDexError(error) && error.code === "corrupt") return false
    if (/^SQLITE_/.test(codeOf(error))) return false
    throw error
  }
}

/** Makes a new file from every readable row, and keeps the old one next to it. */
function rebuildHistory(dex: Dex): Pick<RepairResult, "kept_as" | "rows"> {
  const { history } = dex.home
  const [newFile] = repairFiles(history)
  removeDatabase(newFile)
  let rows: number
  try {
    rows = copyReadable(history, newFile)
  } catch (error) {
    removeDatabase(newFile)
    throw new DexError(
      "repair_failed",
      `history.db could not be repaired (${messageOf(error)}). It was not changed. If you have a backup: dex backup --restore FILE --replace. If not, docs/rot.md says what to do.`,
      { cause: error },
    )
  }
  const damagedFile = setAside(history, dex.now())
  renameSync(newFile, history)
  return { kept_as: damagedFile, rows }
}

async function whileNobodySyncs<T>(dex: Dex, work: () => Promise<T>): Promise<T> {
  const lock = tryLock(dex.home.lock)
  if (!lock) throw new DexError("busy", "Another dex process is syncing right now. Try again when it is done.")
  try {
    return await work()
  } finally {
    lock.release()
  }
}
