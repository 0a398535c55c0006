import { type Dirent, type FSWatcher, lstatSync, readdirSync, type Stats, watch } from "node:fs"
import { basename, join, relative, sep } from "node:path"
import { codeOf, messageOf } from "../core/error.ts"

export type Area = {
  /** The folder, with links resolved. */
  folder: string
  /** How many levels of subfolders to watch. */
  depth: number
  /** Folders that are not entered. */
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

/** `limit`: the system's limit for one user was reached. */
export type WatchProblem = { limit: boolean; message: string }

export type FolderWatch = { folders(): number; close(): void }

/**
 * The most folders in an area. An area with more is neither an agent's history nor a project, and every folder takes some of the
 * system's memory.
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
  const open = new Map<string, FSWatcher>()
  let closed = false
  const close = () => {
    closed = true
    for (const watcher of open.values()) watcher.close()
    open.clear()
  }
  const fail = (error: unknown) => {
    if (closed) return
    close()
    events.failed(problemOf(error))
  }
  const drop = (path: string) => {
    for (const [folder, watcher] of open) {
      if (folder !== path && !folder.startsWith(path + sep)) continue
      watcher.close()
      open.delete(folder)
    }
  }
  /** `isNew`: the folder was just created. Its contents may be older than the watch, so they are reported as changes. */
  const add = (folder: string, level: number, isNew: boolean) => {
    if (closed || open.has(folder)) return
    if (open.size >= MAX_FOLDERS) throw new TooManyFoldersError()
    try {
      const watcher = watch(folder, (event, name) => handleEvent(folder, level, event, name))
      watcher.on("error", () => drop(folder)) // it was removed; its parent reports that
      open.set(folder, watcher)
    } catch (error) {
      if (isLocalError(error)) return
      throw error
    }
    if (level >= area.depth && !isNew) return
    for (const entry of listFolder(folder)) {
      const path = folder + sep + entry.name
      if (!entry.isDirectory()) {
        if (isNew) events.changed(path)
      } else if (level < area.depth && !area.skips(path)) add(path, level + 1, isNew)
    }
  }
  const handleEvent = (folder: string, level: number, event: string, name: string | null) => {
    if (closed) return
    try {
      if (name === null) return events.changed(folder)
      const path = folder + sep + name
      if (event === "rename") {
        const entry = entryAt(path)
        // A folder that is removed reports this under its own name.
        if (!entry && name === basename(folder)) return renew(folder, level)
        if (!entry) drop(path)
        else if (entry.isDirectory()) {
          if (level < area.depth && !area.skips(path)) add(path, level + 1, true)
          return
        }
      }
      events.changed(path)
    } catch (error) {
      fail(error)
    }
  }
  /** Watches a folder again. It may have been recreated immediately, and the old watch is on the removed folder. */
  const renew = (folder: string, level: number) => {
    drop(folder)
    if (entryAt(folder)?.isDirectory()) return add(folder, level, true)
    if (folder !== area.folder) return
    close()
    events.gone()
  }
  try {
    add(area.folder, 0, false)
  } catch (error) {
    fail(error)
  }
  return { folders: () => open.size, close }
}

function watchTree(area: Area, events: FolderEvents): FolderWatch {
  let watcher: FSWatcher | undefined
  const isOutside = (path: string) => {
    const steps = relative(area.folder, path).split(sep).slice(0, -1)
    return steps.length > area.depth || steps.some((_, i) => area.skips(join(area.folder, ...steps.slice(0, i + 1))))
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

/** True if the error concerns only this folder, which no longer exists or is not readable: the others are still watched. */
function isLocalError(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes(codeOf(error))
}

/** Undefined if nothing exists at the path, a parent is a file, or there is no permission. */
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
