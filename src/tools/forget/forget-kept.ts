import { readdirSync } from "node:fs"
import { basename, join } from "node:path"
import type { Home } from "../../config/home.ts"
import { hubState } from "../../config/hub.ts"
import { isDexError, messageOf } from "../../core/error.ts"
import type { Ref } from "../../core/ref.ts"
import { endRestore, isSameFile, keptHistories } from "../../store/history/kept-histories.ts"
import { openStore } from "../../store/history/sqlite-history.ts"
import type { HistoryWriter, OwnerOf } from "../../store/history/store.ts"
import { removeDatabase } from "../../store/sqlite/database.ts"
import { tryLock } from "../../store/sqlite/lock.ts"

/** A file in dex's folder that may still contain what was deleted, and why. */
export type StillThere = { file: string; why: string }

/**
 * Deletes conversations from the histories that `dex restore --replace` kept, and removes what a restore, an import or a
 * repair that was stopped left behind. Returns the files that it could not change.
 */
export async function forgetInKept(
  home: Home,
  refs: Ref[],
  { copies, ownerOf }: { copies: boolean; ownerOf: OwnerOf },
): Promise<StillThere[]> {
  removeUnfinished(home)
  const still: StillThere[] = []
  for (const file of keptHistories(home.history)) {
    if (isSameFile(home.history, file)) continue // a restore under way gives it this name too, and it was just changed
    try {
      const store = openStore(file)
      await forgetIn(store, refs, copies, ownerOf).finally(() => store.close())
    } catch (error) {
      still.push({ file, why: whyNot(error) })
    }
  }
  return [...still, ...unknownDatabases(home)]
}

async function forgetIn(store: HistoryWriter, refs: Ref[], copies: boolean, ownerOf: OwnerOf): Promise<void> {
  const there = await (copies ? store.family(refs) : store.withSubagents(refs))
  await store.forget(there, ownerOf)
}

/** Whoever is at work on one of them holds the lock, and removes it. */
function removeUnfinished(home: Home): void {
  const lock = tryLock(home.lock)
  if (!lock) return
  try {
    endRestore(home.history)
    removeDatabase(`${home.history}.repairing`)
    for (const file of [home.suggest, hubState(home)]) removeDatabase(`${file}.restored`)
  } finally {
    lock.release()
  }
}

function whyNot(error: unknown): string {
  if (!isDexError(error)) return messageOf(error)
  const short: Record<string, string> = { corrupt: "it is damaged", newer_schema: "a newer dex wrote it" }
  return short[error.code] ?? error.message
}

/** Databases in dex's folder that are none of its own: a backup that somebody put there, most likely. */
function unknownDatabases(home: Home): StillThere[] {
  const own = [
    home.history,
    home.index,
    home.knowledge,
    home.spending,
    home.suggest,
    hubState(home),
    ...keptHistories(home.history),
  ]
  const known = new Set(own.map((path) => basename(path)))
  return readdirSync(home.dir)
    .filter((name) => name.endsWith(".db") && !known.has(name))
    .map((name) => ({ file: join(home.dir, name), why: "dex does not know this file" }))
}
