import { join } from "node:path"
import { onTestFinished } from "vitest"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { tempDir } from "./temp.ts"

/** An empty history and its index, for one test. */
export function newHistory() {
  const folder = tempDir()
  const store = openStore(join(folder, "history.db"))
  const index = openIndex(join(folder, INDEX_FILE))
  onTestFinished(() => {
    store.close()
    index.close()
  })
  return { store, index }
}
