import { existsSync, type FSWatcher, realpathSync, statSync, watch } from "node:fs"
import { basename, dirname, relative, sep } from "node:path"
import { type Area, entryAt, type FolderWatch, listFolder, type WatchProblem, watchFolders } from "./folders.ts"

export type AreaSpec = {
  folder: string
  depth: number
  /** Selects files by their path relative to the folder, with forward slashes. If omitted, every file matches. */
  files?: RegExp
  /** Returns true for folders to skip. The path has its links resolved. */
  skips(path: string): boolean
  /** Whether to watch for the folder to be created if it does not exist yet. If false, only `recheck` notices a new folder. */
  awaits?: boolean
  /** How often to poll if the system cannot watch the folder, in milliseconds. Undefined if it is not polled. */
  pollEveryMs?: number
}

export type AreaEvents = {
  /**
   * Something changed. The path is relative to the folder, with forward slashes. It is undefined if it is not known which file
   * changed.
   */
  changed(path: string | undefined): void
  problem(problem: WatchProblem): void
}

export type AreaWatch = {
  state(): AreaState
  /** Checks whether the folder exists now. */
  recheck(): void
  /** Starts watching again. Call this when the set of skipped folders has changed. */
  restart(): void
  close(): void
}
export type AreaState = { how: "watching" | "polling" | "waiting" | "nothing"; folders: number }

/** The maximum number of files whose last change is remembered. Forgetting one costs at most an unnecessary read. */
const MAX_STAMPS = 2_000
/** After each scan of a polled folder, dex pauses for at least this many times as long as the scan took. */
const POLL_PAUSE_FACTOR = 100

/** Reports changes in a folder until closed, even if the folder is created later, disappears, or has to be polled. */
export function watchArea(spec: AreaSpec, events: AreaEvents): AreaWatch {
  let activeWatch: FolderWatch | undefined
  let parentWatcher: FSWatcher | undefined
  let pollTimer: NodeJS.Timeout | undefined
  let closed = false

  const stamps = new Map<string, string>()
  /**
   * Returns true if the file's size or time changed since its last event. Reading a file can cause an event: if dex runs as root,
   * SQLite sets the owner of another program's files again when it reads them.
   */
  const hasChanged = (path: string) => {
    const file = entryAt(path)
    const stamp = file?.isFile() ? `${file.size}:${file.mtimeMs}` : ""
    if (stamp !== "" && stamps.get(path) === stamp) return false
    if (stamps.size >= MAX_STAMPS) stamps.clear()
    stamps.set(path, stamp)
    return true
  }
  /** Starts to watch the folder. If `isNew`, the folder was not watched until now, so a change is reported at once. */
  const open = (isNew: boolean) => {
    if (closed) return
    stopWatching()
    const folder = realFolder(spec.folder)
    if (folder === undefined) return wait()
    const changed = (path: string) => {
      const relativePath = relative(folder, path).split(sep).join("/")
      if (spec.files !== undefined && relativePath !== "" && !spec.files.test(relativePath)) return
      if (hasChanged(path)) events.changed(relativePath || undefined)
    }
    let failed = false
    const folderWatch = watchFolders(
      { folder, depth: spec.depth, skips: spec.skips },
      {
        changed,
        gone: () => {
          open(true)
          events.changed(undefined)
        },
        failed: (problem) => {
          failed = true
          activeWatch = undefined
          events.problem(problem)
          if (spec.pollEveryMs !== undefined) poll({ folder, depth: spec.depth, skips: spec.skips }, undefined)
        },
      },
    )
    if (failed) return
    activeWatch = folderWatch
    if (isNew) events.changed(undefined)
  }
  /** Watches only the nearest existing parent until the folder exists. */
  const wait = () => {
    if (spec.awaits === false) return
    const parent = nearestExistingParent(spec.folder)
    const childName = spec.folder.slice(parent.length).split(sep).find(Boolean)
    try {
      const watcher = watch(parent, (_, name) => {
        if (name === null || name === childName || name === basename(parent)) open(true)
      })
      watcher.on("error", () => watcher.close())
      parentWatcher = watcher
    } catch {
      return // the parent cannot be watched; `recheck` looks for the folder from time to time
    }
    // The folder may have appeared before the watch began.
    if (realFolder(spec.folder) !== undefined || nearestExistingParent(spec.folder) !== parent) open(true)
  }
  const poll = (area: Area, previousSignature: number | undefined) => {
    const started = performance.now()
    const signature = signatureOf(area, area.folder, 0)
    if (previousSignature !== undefined && signature !== previousSignature) events.changed(undefined)
    const intervalMs = Math.max(spec.pollEveryMs!, (performance.now() - started) * POLL_PAUSE_FACTOR)
    pollTimer = setTimeout(() => poll(area, signature), intervalMs)
  }
  const stopWatching = () => {
    activeWatch?.close()
    parentWatcher?.close()
    clearTimeout(pollTimer)
    activeWatch = parentWatcher = pollTimer = undefined
  }
  open(false)
  return {
    state: () => ({
      how: activeWatch ? "watching" : pollTimer ? "polling" : parentWatcher ? "waiting" : "nothing",
      folders: activeWatch?.folders() ?? 0,
    }),
    recheck: () => {
      if (!activeWatch && !pollTimer && realFolder(spec.folder) !== undefined) open(true)
    },
    restart: () => open(false),
    close: () => {
      closed = true
      stopWatching()
    },
  }
}

function realFolder(path: string): string | undefined {
  try {
    const realPath = realpathSync(path)
    return statSync(realPath).isDirectory() ? realPath : undefined
  } catch {
    return undefined // the folder does not exist yet
  }
}

function nearestExistingParent(path: string): string {
  const parent = dirname(path)
  return parent === path || existsSync(parent) ? parent : nearestExistingParent(parent)
}

/** Returns a number that changes if the name, size or time of a file in the folder or its subfolders changes. */
function signatureOf(area: Area, folder: string, level: number): number {
  let sum = 0
  for (const entry of listFolder(folder)) {
    const path = folder + sep + entry.name
    if (entry.isDirectory()) {
      if (level < area.depth && !area.skips(path))
        sum = (sum + hash(path) + signatureOf(area, path, level + 1)) % 2 ** 48
      continue
    }
    const file = entryAt(path)
    if (file) sum = (sum + hash(`${path}:${file.size}:${file.mtimeMs}`)) % 2 ** 48
  }
  return sum
}

function hash(text: string): number {
  let value = 2166136261
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619)
  return value >>> 0
}
