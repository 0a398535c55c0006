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
      throw new DexError("busy", "Another dex process is syncing or embedding right now. Try again when it is done.")
    const bytesBefore = databaseBytes(dex.home.index)
    const derivedFiles = [dex.home.index, dex.home.knowledge, dex.home.spending]
    const otherFormatBytes = derivedFiles.reduce((bytes, file) => bytes + removeOtherFormats(file), 0)
    const vectors = await index.vectors()
    const { dropped, note } = dropUnusedVectors(dex, vectors)
    const compacted = vectors.compact()
    await index.purge(await dex.store())
    const pinned = await finishForgetting(dex.home, READER_TIMEOUT_MS)
    return {
      dropped,
      compacted,
      bytes_before: bytesBefore + otherFormatBytes,
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
 * Drops the vectors of all but the configured model. Drops none if no model is set, because embedding may be turned off only in
 * this project.
 */
function dropUnusedVectors(
  dex: Dex,
  vectors: VectorIndex,
): { dropped: { embedder: string; vectors: number }[]; note?: string } {
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.place })
  const provider = settings["embed.provider"]
  const model = settings["embed.model"]
  const dims = settings["embed.dims"]
  const spaces = vectors.stats()
  const embedders = spaces.map((space) => space.embedder)
  if (provider === "none" || (provider !== "local" && model === undefined))
    return {
      dropped: [],
      note:
        embedders.length > 0
          ? `Vectors of ${embedders.join(", ")} were kept: no embedding model is set here. \`dex doctor reindex\` rebuilds the index without them.`
          : undefined,
    }
  const currentEmbedder = matchingStoredId({ provider, dexDir: dex.home.dir, model, dims }, embedders)
  const dropped = spaces.filter((space) => space.embedder !== currentEmbedder)
  if (dropped.length > 0) vectors.drop(currentEmbedder)
  return { dropped: dropped.map(({ embedder, vectors }) => ({ embedder, vectors })) }
}
