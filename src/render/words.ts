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

/** How long ago a time was: `5m`, `3h`, `2d`, `9w` or `14mo`. */
export function age(iso: string, now: number): string {
  const minutes = Math.max(0, (now - Date.parse(iso)) / 60_000)
  if (Number.isNaN(minutes)) return "no date"
  if (minutes < 60) return `${Math.floor(minutes)}m`
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h`
  const days = Math.floor(minutes / 1_440)
  if (days < 14) return `${days}d`
  return days < 70 ? `${Math.floor(days / 7)}w` : `${Math.floor(days / 30.44)}mo`
}

/** A path with `~` for the home folder: `~/code/api` for `/home/somebody/code/api`. */
export function shortPath(path: string, home: string): string {
  if (path === home) return "~"
  return path.startsWith(`${home}/`) || path.startsWith(`${home}\\`) ? `~${path.slice(home.length)}` : path
}

export function projectName(path: string): string {
  return path === "" ? "no project" : (path.split(/[\\/]/).filter(Boolean).at(-1) ?? path)
}
