import { loadSettings } from "../../config/load.ts"
import { DexError } from "../../core/error.ts"
import { matchingStoredId } from "../../embed/open-embedder.ts"
import type { VectorIndex } from "../../store/index/vector-index.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import { removeOtherFormats } from "../../store/sqlite/older-files.ts"
import type { Dex } from "../context.ts"
import { finishForgetting } from "../forget/finish-forgetting.ts"
import { databaseBytes } from "../stats/run.ts"

const READER_TIMEOUT_MS = 1_000

export async function run(dex: Dex) {
  const started = Date.now()
  const index = await dex.indexToWrite()
  if (!index) throw new DexError("no_index", "There is no search index to clean up. `dex sync` builds one.")
  const locks = [tryLock(dex.home.lock), tryLock(`${dex.home.dir}/embed.lock`)]
  try {
    if (locks.includes(undefined))
      throw new DexError("busy", "Another dex is syncing or embedding right now. Try again when it is done.")
    const before = databaseBytes(dex.home.index)
    const derived = [dex.home.index, dex.home.knowledge, dex.home.spending]
    const others = derived.reduce((bytes, file) => bytes + removeOtherFormats(file), 0)
    const vectors = await index.vectors()
    const { dropped, note } = dropUnusedVectors(dex, vectors)
    const compacted = vectors.compact()
    await index.purge(await dex.store())
    const pinned = await finishForgetting(dex.home, READER_TIMEOUT_MS)
    return {
      dropped,
      compacted,
      bytes_before: before + others,
      bytes_after: databaseBytes(dex.home.index),
      duration_ms: Date.now() - started,
      pinned: pinned.length > 0 ? pinned : undefined,
      note,
    }
  } finally {
    for (const lock of locks) lock?.release()
  }
}

/**
 * Drops the vectors of all but the configured model. Drops none if no model is set, because embedding may be off in this project
 * only.
 */
function dropUnusedVectors(
  dex: Dex,
  vectors: VectorIndex,
): { dropped: { embedder: string; vectors: number }[]; note?: string } {
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.project })
  const provider = settings["embed.provider"]
  const model = settings["embed.model"]
  const dims = settings["embed.dims"]
  const spaces = vectors.stats()
  const known = spaces.map((space) => space.embedder)
  if (provider === "none" || (provider !== "local" && model === undefined))
    return {
      dropped: [],
      note:
        known.length > 0
          ? `Vectors of ${known.join(", ")} were kept: no embedding model is set here. \`dex doctor reindex\` rebuilds the index without them.`
          : undefined,
    }
  const keep = matchingStoredId({ provider, dexDir: dex.home.dir, model, dims }, known)
  const dropped = spaces.filter((space) => space.embedder !== keep)
  if (dropped.length > 0) vectors.drop(keep)
  return { dropped: dropped.map(({ embedder, vectors }) => ({ embedder, vectors })) }
}
