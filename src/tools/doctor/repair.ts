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
  /** The name of the damaged file, if a new one was made. */
  kept_as?: string
  /** Rows that were copied to the new file. */
  rows?: number
  /** Refs of conversations that were restored completely. */
  restored: string[]
  /** Refs of conversations with lost parts. */
  damaged: string[]
}

/** Restores as much as possible: in place if SQLite can read the file, otherwise in a new file; then from the agents' files. */
export async function repair(dex: Dex): Promise<RepairResult> {
  if (!existsSync(dex.home.history)) return { restored: [], damaged: [] }
  const before = await findDamagedConversations(dex)
  const made = await whileNobodySyncs(dex, async () =>
    (await isReadable(dex.home.history)) ? undefined : rebuildHistory(dex),
  )
  const injured = [...before, ...(await healAll(dex))]
  const { syncWithThreads } = await import("../../ingest/sync-thread.ts")
  const { restored, damaged } = await syncWithThreads(await dex.syncDeps(), dex.home.index, {
    onProgress: dex.onProgress,
    signal: dex.signal,
  })
  const { syncCollections } = await import("../docs/sync-collections.ts")
  await syncCollections(dex, { names: [] })
  const still = new Set(damaged.map(formatRef))
  const complete = new Set([...restored.map(formatRef), ...injured].filter((ref) => !still.has(ref)))
  return { ...made, restored: [...complete].sort(), damaged: [...still].sort() }
}

/**
 * Restores what indexes and messages duplicate, and marks the rest for the next sync. Returns the refs of all damaged
 * conversations.
 */
async function healAll(dex: Dex): Promise<string[]> {
  const store = openStore(dex.home.history)
  try {
    const before = await damagedIn(store)
    await store.heal([], { everywhere: true })
    noteDamage(damageFile(dex.home.dir), await damagedIn(store))
    return before
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
    return [] // a new file will be made from it
  }
}

async function damagedIn(store: HistoryWriter): Promise<string[]> {
  return (await store.inspect()).conversations.map(({ ref }) => formatRef(ref))
}

/** True if SQLite can read the file. Damaged indexes are rebuilt here and do not count. */
async function isReadable(history: string): Promise<boolean> {
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
  const [building] = repairFiles(history)
  removeDatabase(building)
  let rows: number
  try {
    rows = copyReadable(history, building)
  } catch (error) {
    removeDatabase(building)
    throw new DexError(
      "repair_failed",
      `history.db could not be repaired (${messageOf(error)}). It was not changed. If you have a backup: dex backup --restore FILE --replace. If not, docs/rot.md says what to do.`,
      { cause: error },
    )
  }
  const kept = setAside(history, dex.now())
  renameSync(building, history)
  return { kept_as: kept, rows }
}

async function whileNobodySyncs<T>(dex: Dex, work: () => Promise<T>): Promise<T> {
  const lock = tryLock(dex.home.lock)
  if (!lock) throw new DexError("busy", "Another dex is syncing right now. Try again when it is done.")
  try {
    return await work()
  } finally {
    lock.release()
  }
}
