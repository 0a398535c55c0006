import { existsSync, type FSWatcher, realpathSync, statSync, watch } from "node:fs"
import { basename, dirname, relative, sep } from "node:path"
import { type Area, entryAt, type FolderWatch, listFolder, type WatchProblem, watchFolders } from "./folders.ts"

export type AreaSpec = {
  folder: string
  depth: number
  /** Matched against the path relative to the folder, with slashes. If absent, every file matches. */
  files?: RegExp
  /** Returns true for folders to skip. The path has its links resolved. */
  skips(path: string): boolean
  /** Whether to watch for the folder to be created if it does not exist yet. If false, only `recheck` notices a new folder. */
  awaits?: boolean
  /** How often to poll if the system cannot watch the folder, in milliseconds. Undefined if it is not polled. */
  pollEveryMs?: number
}

export type AreaEvents = {
  /** The path is relative to the folder, with slashes. Undefined if it is not known which file changed. */
  changed(path: string | undefined): void
  problem(problem: WatchProblem): void
}

export type AreaWatch = {
  state(): AreaState
  /** Checks whether the folder exists now. */
  recheck(): void
  /** Starts watching again, for when the set of skipped folders has changed. */
  restart(): void
  close(): void
}
export type AreaState = { how: "watching" | "polling" | "waiting" | "nothing"; folders: number }

/** How many changed files to remember. Forgetting one costs one unnecessary look. */
const MAX_STAMPS = 2_000
/** After a walk through a polled folder, the next one waits at least this many times as long as the walk took. */
const POLL_SHARE = 100

/** Watches a folder until closed, even if it is created later, disappears, or cannot be watched. */
export function watchArea(spec: AreaSpec, events: AreaEvents): AreaWatch {
  let watching: FolderWatch | undefined
  let waiting: FSWatcher | undefined
  let polling: NodeJS.Timeout | undefined
  let closed = false

  const stamps = new Map<string, string>()
  /**
   * True if the file really changed. Reading can look like a change: as root, SQLite sets the owner of another program's files
   * again when it reads them.
   */
  const hasChanged = (path: string) => {
    const file = entryAt(path)
    const stamp = file?.isFile() ? `${file.size}:${file.mtimeMs}` : ""
    if (stamp !== "" && stamps.get(path) === stamp) return false
    if (stamps.size >= MAX_STAMPS) stamps.clear()
    stamps.set(path, stamp)
    return true
  }
  /** `isNew`: the folder was not watched until now, so a change is reported at once. */
  const open = (isNew: boolean) => {
    if (closed) return
    release()
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
          watching = undefined
          events.problem(problem)
          if (spec.pollEveryMs !== undefined) poll({ folder, depth: spec.depth, skips: spec.skips }, undefined)
        },
      },
    )
    if (failed) return
    watching = folderWatch
    if (isNew) events.changed(undefined)
  }
  /** Watches the nearest existing parent until the folder exists, which needs a single watch. */
  const wait = () => {
    if (spec.awaits === false) return
    const above = nearestExistingParent(spec.folder)
    const next = spec.folder.slice(above.length).split(sep).find(Boolean)
    try {
      const watcher = watch(above, (_, name) => {
        if (name === null || name === next || name === basename(above)) open(true)
      })
      watcher.on("error", () => watcher.close())
      waiting = watcher
    } catch {
      return // cannot be watched; `recheck` looks for the folder from time to time
    }
    // The folder may have appeared before the watch began.
    if (realFolder(spec.folder) !== undefined || nearestExistingParent(spec.folder) !== above) open(true)
  }
  const poll = (area: Area, before: number | undefined) => {
    const started = performance.now()
    const now = signatureOf(area, area.folder, 0)
    if (before !== undefined && now !== before) events.changed(undefined)
    const every = Math.max(spec.pollEveryMs!, (performance.now() - started) * POLL_SHARE)
    polling = setTimeout(() => poll(area, now), every)
  }
  const release = () => {
    watching?.close()
    waiting?.close()
    clearTimeout(polling)
    watching = waiting = polling = undefined
  }
  open(false)
  return {
    state: () => ({
      how: watching ? "watching" : polling ? "polling" : waiting ? "waiting" : "nothing",
      folders: watching?.folders() ?? 0,
    }),
    recheck: () => {
      if (!watching && !polling && realFolder(spec.folder) !== undefined) open(true)
    },
    restart: () => open(false),
    close: () => {
      closed = true
      release()
    },
  }
}

function realFolder(path: string): string | undefined {
  try {
    const real = realpathSync(path)
    return statSync(real).isDirectory() ? real : undefined
  } catch {
    return undefined // not there yet
  }
}

function nearestExistingParent(path: string): string {
  const above = dirname(path)
  return above === path || existsSync(above) ? above : nearestExistingParent(above)
}

/** A number that changes if a name, a size or a time in the folder changes. */
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
