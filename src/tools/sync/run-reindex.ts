import { DexError } from "../../core/error.ts"
import { embedMessages } from "../../ingest/embed-messages.ts"
import type { HistoryReader } from "../../store/history/store.ts"
import { openIndex, rebuildIndex } from "../../store/index/search-index.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import type { Dex } from "../context.ts"
import { embedderOf } from "../embedder.ts"
import { countPersonConversations } from "../kinds.ts"
import type { ReindexInput } from "./sync.ts"

export async function run(dex: Dex, input: ReindexInput) {
  const started = Date.now()
  const settings = embedderOf(dex)
  if (input.vectors && !settings)
    throw new DexError(
      "no_embedder",
      "No embedder is set, so there are no vectors to rebuild. docs/embeddings.md explains how to set one.",
    )
  const store = await dex.store()
  const { conversations, kinds } = await store.stats()
  // `conversations` does not include documents, which are also indexed.
  const total = conversations + (await documentCount(store))
  const reportProgress = (phase: "indexing" | "embedding", done: number, total: number) =>
    dex.onProgress?.({ phase, done, total, bytes: done, bytesTotal: total })
  await whileNobodySyncs(dex, async () => {
    ;(await dex.index())?.close()
    await rebuildIndex(dex.home.index, store, { onProgress: (done) => reportProgress("indexing", done, total) })
  })
  const index = openIndex(dex.home.index)
  try {
    const embedding =
      settings &&
      input.vectors &&
      (await embedMessages(
        { store, index, home: dex.home },
        {
          settings,
          recreate: true,
          signal: dex.signal,
          onProgress: (done, total) => reportProgress("embedding", done, total),
        },
      ))
    return {
      conversations: countPersonConversations(kinds),
      kinds,
      duration_ms: Date.now() - started,
      embedding: embedding || undefined,
    }
  } finally {
    index.close()
  }
}

async function documentCount(store: HistoryReader): Promise<number> {
  let count = 0
  for (const { name } of await store.collections()) count += (await store.documentsIn(name)).documents
  return count
}

/**
 * Runs `work` while no other process syncs. The new index is built next to the old one and then replaces it, so anything that is
 * written to the old one meanwhile would be lost.
 */
async function whileNobodySyncs(dex: Dex, work: () => Promise<void>): Promise<void> {
  const locks = [tryLock(dex.home.lock), tryLock(`${dex.home.dir}/embed.lock`)]
  try {
    if (locks.includes(undefined))
      throw new DexError("busy", "Another dex process is syncing or embedding right now. Try again when it is done.")
    await work()
  } finally {
    for (const lock of locks) lock?.release()
  }
}
