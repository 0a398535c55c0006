import { type FSWatcher, watch } from "node:fs"

/** A small file that is replaced, never written into. Watched itself: its folder is where the databases are written. */
export function watchFile(path: string, changed: () => void): { close(): void } {
  let watcher: FSWatcher | undefined
  let closed = false
  const open = () => {
    watcher?.close()
    if (closed) return
    try {
      watcher = watch(path, () => {
        open()
        changed()
      })
      watcher.on("error", () => watcher?.close())
    } catch {
      // It is there from the start on; where it cannot be watched, a restart reads it.
    }
  }
  open()
  return {
    close: () => {
      closed = true
      watcher?.close()
    },
  }
}
