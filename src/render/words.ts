import { STAR_TAG } from "../core/conversation.ts"
import { localMinute } from "../core/dates.ts"
import { grouped } from "../core/format.ts"

/** A count with its noun: `1 message`, `2 messages`. */
export function many(count: number, one: string, more = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : more}`
}

export function megabytes(bytes: number): string {
  if (bytes < 1e6) return `${Math.ceil(bytes / 1e3)} kB`
  return bytes < 1e10 ? `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`
}

export function seconds(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  return ms < 60_000
    ? `${(ms / 1000).toFixed(1)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
}

/** A time in local time: `2026-11-03 09:12`. */
export function when(iso: string | undefined): string {
  if (!iso) return "no date"
  return localMinute(Date.parse(iso))
}

/**
 * A time as lists show it: `now`, `5m`, `3h` or `2d` ago; after two weeks the day, `Feb 4`; after ten months, if that was
 * in another year, the month, `Nov 2025`.
 */
export function shortDate(iso: string | undefined, now: number): string {
  const at = Date.parse(iso ?? "")
  if (Number.isNaN(at)) return "no date"
  const minutes = Math.floor((now - at) / 60_000)
  if (minutes < 1) return "now"
  if (minutes < 60) return `${minutes}m`
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h`
  const days = Math.floor(minutes / 1_440)
  if (days < 14) return `${days}d`
  const [, month, day, year] = new Date(at).toDateString().split(" ")
  return days < 300 || Number(year) === new Date(now).getFullYear() ? `${month} ${Number(day)}` : `${month} ${year}`
}

/** A path with `~` for the home folder: `~/code/api` for `/home/somebody/code/api`. */
export function shortPath(path: string, home: string): string {
  if (path === home) return "~"
  return path.startsWith(`${home}/`) || path.startsWith(`${home}\\`) ? `~${path.slice(home.length)}` : path
}

/** A project's last folder. */
export function projectName(path: string): string {
  return foldersOf(path).at(-1) ?? (path === "" ? "no project" : path)
}

/**
 * The names of the projects in a list, each as short as it can be without being another's: `cli`, or `devenv/cli` and
 * `workspace/cli` if both are listed, or `old/…/cli` if more folders are the same.
 */
export function projectNames(paths: Iterable<string>): (path: string) => string {
  const names = new Map<string, string>()
  const addNames = (same: string[], depth: number) => {
    for (const [name, sharing] of Map.groupBy(same, (path) => foldersOf(path).slice(-depth).join("/"))) {
      const isComplete = new Set(sharing.map((path) => foldersOf(path).join("/"))).size === 1
      if (!isComplete) addNames(sharing, depth + 1)
      else for (const path of sharing) names.set(path, name.replace(/(?<=\/).*(?=\/)/, "…") || projectName(path))
    }
  }
  addNames([...new Set(paths)], 1)
  return (path) => names.get(path) ?? projectName(path)
}

function foldersOf(path: string): string[] {
  return path.split(/[\\/]/).filter(Boolean)
}

/** A title as lists show it, after its star and its tags: `★ #auth The title`. */
export function markedTitle({ title, tags = [] }: { title: string; tags?: readonly string[] }): string {
  const others = tags.filter((tag) => tag !== STAR_TAG).map((tag) => `#${tag} `)
  return `${tags.includes(STAR_TAG) ? "★ " : ""}${others.join("")}${title}`
}
