import { readdirSync } from "node:fs"
import { join } from "node:path"
import { lookAt } from "../files/look-at.ts"
import { agents } from "./index.ts"
import type { Machine } from "./kit/connector.ts"
import { UNREAD_STORES, type UnreadStore } from "./unread-stores.ts"

/** Conversations that are on this machine and that dex does not read. `files` stops at `MOST_FILES`. */
export type UnreadFound = { name: string; path: string; files: number; why?: string }

export const MOST_FILES = 10_000
const DEEPEST = 8

/** What is there of what dex knows of and does not read. One look at each place where there is nothing. */
export function unreadOn({ home, env, otherHomes = [] }: Machine): UnreadFound[] {
  const read = new Set(agents.flatMap(({ source, connector }) => (connector ? source : [])))
  return UNREAD_STORES.filter(({ source }) => !read.has(source)).flatMap((store) =>
    placesOf(store, [home, ...otherHomes], env).flatMap((path) => {
      const files = filesAt(path, store.files)
      return files === 0 ? [] : [{ name: store.name, path, files, why: store.why }]
    }),
  )
}

function placesOf({ at, variable }: UnreadStore, homes: readonly string[], env: Machine["env"]): string[] {
  const named = variable && env[variable.name]
  const places = homes.flatMap((home) => at.map((place) => join(home, place)))
  return [...new Set(named ? [join(named, variable.below ?? ""), ...places] : places)]
}

/** Neither links nor what nobody may look at. */
function filesAt(path: string, counted: RegExp | undefined): number {
  const found = lookAt(path, { follow: false })
  if (found === undefined || found === "unknown") return 0
  return found.isFile() ? 1 : found.isDirectory() ? filesIn(path, counted) : 0
}

function filesIn(folder: string, counted = /(?:)/): number {
  let files = 0
  const open = [{ folder, depth: 0 }]
  for (let next = open.pop(); next && files < MOST_FILES; next = open.pop()) {
    for (const entry of entriesIn(next.folder)) {
      if (entry.isFile()) files += counted.test(entry.name) ? 1 : 0
      else if (entry.isDirectory() && next.depth < DEEPEST)
        open.push({ folder: join(next.folder, entry.name), depth: next.depth + 1 })
    }
  }
  return Math.min(files, MOST_FILES)
}

function entriesIn(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // nobody reads it: how many files there are is not known then
  }
}
