import { existsSync, type FSWatcher, realpathSync, statSync, watch } from "node:fs"
import { basename, dirname, relative, sep } from "node:path"
import { type Area, entryAt, listFolder, type Watching, type WatchProblem, watchFolders } from "./folders.ts"

export type AreaSpec = {
  folder: string
  depth: number
  /** Matched against the path from the folder on, with slashes; every file where absent. */
  files?: RegExp
  /** Of the path with its links followed. */
  skips(path: string): boolean
  /** False: while it is not there, only `recheck` looks for it. */
  awaits?: boolean
  /** What stands in where the system watches no more. Undefined: nothing does. */
  pollEveryMs?: number
}

export type AreaEvents = {
  /** Paths from the folder on, with slashes; undefined: it cannot be told which. */
  changed(path: string | undefined): void
  problem(problem: WatchProblem): void
}

export type AreaWatch = {
  state(): AreaState
  /** Looks whether it is there now. */
  recheck(): void
  /** Watches anew, where other folders are skipped than before. */
  renew(): void
  close(): void
}
export type AreaState = { how: "watching" | "polling" | "waiting" | "nothing"; folders: number }

/** Of files that changed; forgetting them costs a look too many. */
const MOST_STAMPS = 2_000
/** A walk takes at most this part of the time. */
const POLL_SHARE = 100

/** Watches a folder for as long as asked: also when it comes later, goes, or cannot be watched. */
export function watchArea(spec: AreaSpec, events: AreaEvents): AreaWatch {
  let watching: Watching | undefined
  let waiting: FSWatcher | undefined
  let polling: NodeJS.Timeout | undefined
  let closed = false

  const stamps = new Map<string, string>()
  /** Reading can look like a change: as root, SQLite sets the owner of another program's files anew when it reads them. */
  const isOther = (path: string) => {
    const file = entryAt(path)
    const stamp = file?.isFile() ? `${file.size}:${file.mtimeMs}` : ""
    if (stamp !== "" && stamps.get(path) === stamp) return false
    if (stamps.size >= MOST_STAMPS) stamps.clear()
    stamps.set(path, stamp)
    return true
  }
  const open = (isNew: boolean) => {
    if (closed) return
    release()
    const folder = realFolder(spec.folder)
    if (folder === undefined) return wait()
    const changed = (path: string) => {
      const below = relative(folder, path).split(sep).join("/")
      if (spec.files !== undefined && below !== "" && !spec.files.test(below)) return
      if (isOther(path)) events.changed(below || undefined)
    }
    let failed = false
    const made = watchFolders(
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
    watching = made
    if (isNew) events.changed(undefined)
  }
  /** Until the folder is there, the nearest one above it is watched, which is one watch. */
  const wait = () => {
    if (spec.awaits === false) return
    const above = nearestAbove(spec.folder)
    const next = spec.folder.slice(above.length).split(sep).find(Boolean)
    try {
      const watcher = watch(above, (_, name) => {
        if (name === null || name === next || name === basename(above)) open(true)
      })
      watcher.on("error", () => watcher.close())
      waiting = watcher
    } catch {
      return // cannot be watched: `recheck` looks now and then
    }
    // It may have come while nobody watched yet.
    if (realFolder(spec.folder) !== undefined || nearestAbove(spec.folder) !== above) open(true)
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
    renew: () => open(false),
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

function nearestAbove(path: string): string {
  const above = dirname(path)
  return above === path || existsSync(above) ? above : nearestAbove(above)
}

/** A number that is another one when a name, a size or a time in the folder is. */
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
