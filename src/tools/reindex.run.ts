import { openIndex, removeDatabase } from "../store/search-index.ts"
import type { Dex } from "./context.ts"

export async function run(dex: Dex) {
  const started = Date.now()
  const store = await dex.store()
  const { conversations } = await store.stats()
  ;(await dex.index())?.close()
  removeDatabase(dex.home.index)
  const index = openIndex(dex.home.index)
  try {
    await index.follow(store, {
      onProgress: (done) =>
        dex.onProgress?.({ phase: "indexing", done, total: conversations, bytes: done, bytesTotal: conversations }),
    })
    index.checkpoint()
  } finally {
    index.close()
  }
  return { conversations, duration_ms: Date.now() - started }
}
