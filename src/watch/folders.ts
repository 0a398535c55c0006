import { type Dirent, type FSWatcher, lstatSync, readdirSync, type Stats, watch } from "node:fs"
import { basename, join, relative, sep } from "node:path"
import { codeOf, messageOf } from "../core/error.ts"

export type Area = {
  /** The folder, with links resolved. */
  folder: string
  /** How many levels of subfolders to watch. */
  depth: number
  /** Returns true for folders that are not watched. */
  skips(path: string): boolean
}

export type FolderEvents = {
  /** Something changed at this path. */
  changed(path: string): void
  /** The folder itself is gone. */
  gone(): void
  /** The system no longer watches the folder, so there will be no more events. */
  failed(problem: WatchProblem): void
}

/** `limit` is true if the user may not watch any more files, because the system's limit is reached. */
export type WatchProblem = { limit: boolean; message: string }

export type FolderWatch = { folders(): number; close(): void }

/**
 * The maximum number of folders in an area. An area with more is neither an agent's history nor a project, and every watched
 * folder takes some of the system's memory.
 */
const MAX_FOLDERS = 50_000

/**
 * Reports changes in a folder and its subfolders. On Linux this watches folder by folder: Node's own recursive watch uses one
 * watch for every file, cannot exclude folders and takes six times the memory. The other systems can watch complete trees.
 */
export function watchFolders(area: Area, events: FolderEvents, platform = process.platform): FolderWatch {
  return platform === "linux" ? watchEachFolder(area, events) : watchTree(area, events)
}

function watchEachFolder(area: Area, events: FolderEvents): FolderWatch {
  const watchers = new Map<string, FSWatcher>()
  let closed = false
  const close = () => {
    closed = true
    for (const watcher of watchers.values()) watcher.close()
    watchers.clear()
  }
  const fail = (error: unknown) => {
    if (closed) return
    close()
    events.failed(problemOf(error))
  }
  const unwatch = (path: string) => {
    for (const [folder, watcher] of watchers) {
      if (folder !== path && !folder.startsWith(path + sep)) continue
      watcher.close()
      watchers.delete(folder)
    }
  }
  /**
   * Watches a folder and its subfolders. If `isNew`, the folder was just created. Its contents may be older than the watcher, so
   * they are reported as changes.
   */
  const watchFolder = (folder: string, level: number, isNew: boolean) => {
    if (closed || watchers.has(folder)) return
    if (watchers.size >= MAX_FOLDERS) throw new TooManyFoldersError()
    try {
      const watcher = watch(folder, (event, name) => handleEvent(folder, level, event, name))
      watcher.on("error", () => unwatch(folder)) // the folder was removed; the watcher of its parent reports that
      watchers.set(folder, watcher)
    } catch (error) {
      if (isLocalError(error)) return
      throw error
    }
    if (level >= area.depth && !isNew) return
    for (const entry of listFolder(folder)) {
      const path = folder + sep + entry.name
      if (!entry.isDirectory()) {
        if (isNew) events.changed(path)
      } else if (level < area.depth && !area.skips(path)) watchFolder(path, level + 1, isNew)
    }
  }
  const handleEvent = (folder: string, level: number, event: string, name: string | null) => {
    if (closed) return
    try {
      if (name === null) return events.changed(folder)
      const path = folder + sep + name
      if (event === "rename") {
        const entry = entryAt(path)
        // When a folder is removed, its own watcher reports this under the folder's name.
        if (!entry && name === basename(folder)) return rewatch(folder, level)
        if (!entry) unwatch(path)
        else if (entry.isDirectory()) {
          if (level < area.depth && !area.skips(path)) watchFolder(path, level + 1, true)
          return
        }
      }
      events.changed(path)
    } catch (error) {
      fail(error)
    }
  }
  /**
   * Watches a folder again, because it may have been removed and recreated immediately; the old watcher is on the removed
   * folder.
   */
  const rewatch = (folder: string, level: number) => {
    unwatch(folder)
    if (entryAt(folder)?.isDirectory()) return watchFolder(folder, level, true)
    if (folder !== area.folder) return
    close()
    events.gone()
  }
  try {
    watchFolder(area.folder, 0, false)
  } catch (error) {
    fail(error)
  }
  return { folders: () => watchers.size, close }
}

function watchTree(area: Area, events: FolderEvents): FolderWatch {
  let watcher: FSWatcher | undefined
  const isOutside = (path: string) => {
    const folders = relative(area.folder, path).split(sep).slice(0, -1)
    return (
      folders.length > area.depth || folders.some((_, i) => area.skips(join(area.folder, ...folders.slice(0, i + 1))))
    )
  }
  try {
    watcher = watch(area.folder, { recursive: area.depth > 0 }, (_, name) => {
      if (!entryAt(area.folder)) {
        watcher?.close()
        return events.gone()
      }
      const path = name === null ? area.folder : join(area.folder, name)
      if (!isOutside(path)) events.changed(path)
    })
    watcher.on("error", (error) => {
      watcher?.close()
      if (entryAt(area.folder)) events.failed(problemOf(error))
      else events.gone()
    })
  } catch (error) {
    events.failed(problemOf(error))
  }
  return { folders: () => 1, close: () => watcher?.close() }
}

class TooManyFoldersError extends Error {
  override message = `it has more than ${MAX_FOLDERS} folders`
}

function problemOf(error: unknown): WatchProblem {
  const code = codeOf(error)
  return { limit: code === "ENOSPC" || code === "EMFILE", message: messageOf(error) }
}

/**
 * Returns true if the error concerns only this folder, because it no longer exists or is not readable. The other folders are
 * still watched.
 */
function isLocalError(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes(codeOf(error))
}

/** Returns undefined if nothing exists at the path, if a parent is a file, or if there is no permission. */
export function entryAt(path: string): Stats | undefined {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}

export function listFolder(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // it was removed meanwhile, or it cannot be read
  }
}
