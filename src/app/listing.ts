import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { isatty } from "node:tty"
import { record } from "../core/record.ts"
import type { Listing } from "../tools/context.ts"

// Stores the refs of a terminal's last listing, to which `dex show 2` refers. They are in a small file per terminal, not in the
// database, because a listing must never wait for a writer.

/** How long a listing is kept, in milliseconds. */
const LISTING_LIFETIME_MS = 7 * 86_400_000

/** True if row numbers can be used here. An agent's shell and a script have no terminal, so they get refs. */
export function hasListings(): boolean {
  // npm runs a new process between the shell and dex each time, so the parent process does not identify the shell.
  if (process.env.npm_command !== undefined && shellSession() === undefined) return false
  return [0, 1, 2].some((fd) => isatty(fd))
}

/** Saves the refs of the printed rows. `words` are the words that a search matched, as they appear in the rows. */
export function saveListing(dexDir: string, refs: string[], words: string[] = []): void {
  if (!hasListings()) return
  const folder = join(dexDir, "listings")
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder)) {
      const file = join(folder, name)
      if (Date.now() - statSync(file).mtimeMs > LISTING_LIFETIME_MS) rmSync(file, { force: true })
    }
    writeFileSync(join(folder, fileName()), JSON.stringify({ refs, words }), { mode: 0o600 })
  } catch {
    // The home is read-only, so row numbers do not work in this terminal, and `dex show 2` says so.
  }
}

export function readListing(dexDir: string): Listing {
  if (!hasListings()) return EMPTY_LISTING
  try {
    const content: unknown = JSON.parse(readFileSync(join(dexDir, "listings", fileName()), "utf8"))
    // Until 0.1.0 the file contained only the refs.
    if (Array.isArray(content)) return { refs: stringsIn(content), words: [] }
    const { refs, words } = record(content) ?? {}
    return { refs: stringsIn(refs), words: stringsIn(words) }
  } catch {
    return EMPTY_LISTING // nothing was listed here yet
  }
}

const EMPTY_LISTING: Listing = { refs: [], words: [] }

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : []
}

export function clearListings(dexDir: string): void {
  rmSync(join(dexDir, "listings"), { recursive: true, force: true })
}

function fileName(): string {
  return `${shellSession() ?? process.ppid}.json`
}

/**
 * The shell that opened the terminal, whatever program or script runs between it and dex. Identified by its process id and start
 * time, because ids are reused. Undefined if the system does not report it.
 */
function shellSession(): string | undefined {
  try {
    const leader = statOf("self")[3]!
    return `${leader}-${statOf(leader)[19]}`
  } catch {
    return undefined
  }
}

/** The fields of `/proc/<pid>/stat` on Linux, starting with the state. The name before it can contain anything; it is skipped. */
function statOf(pid: string): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8")
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}
