import { grouped } from "../../core/format.ts"
// How numbers, times and paths are said to a person.

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

/** 2026-11-03 09:12 in local time. */
export function when(iso: string | undefined): string {
  if (!iso) return "no date"
  const at = new Date(iso)
  const two = (n: number) => String(n).padStart(2, "0")
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`
}

/** ~/code/api instead of /home/somebody/code/api. */
export function shortPath(path: string, home: string): string {
  if (path === home) return "~"
  return path.startsWith(`${home}/`) || path.startsWith(`${home}\\`) ? `~${path.slice(home.length)}` : path
}

export function projectName(path: string): string {
  return path === "" ? "no project" : (path.split(/[\\/]/).filter(Boolean).at(-1) ?? path)
}
