import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { isatty } from "node:tty"
import { record } from "../core/record.ts"
import type { Listing } from "../tools/context.ts"

// Stores the refs of a terminal's last listing, to which `dex show 2` refers. They are in a small file per terminal, not in the
// database, because a listing must never wait for a writer.

/** How long a listing is kept, in milliseconds. */
const LISTING_LIFETIME_MS = 7 * 86_400_000

/** Returns true if row numbers can be used here. An agent's shell or a script has no terminal, so its output has refs instead. */
export function canUseRowNumbers(): boolean {
  // npm runs a new process between the shell and dex each time, so the parent process does not identify the shell.
  if (process.env.npm_command !== undefined && shellSession() === undefined) return false
  return [0, 1, 2].some((fd) => isatty(fd))
}

/** Saves the refs of the printed rows. `words` are the words that a search matched, as they appear in the rows. */
export function saveListing(dexDir: string, refs: string[], words: string[] = []): void {
  if (!canUseRowNumbers()) return
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
  if (!canUseRowNumbers()) return EMPTY_LISTING
  try {
    const content: unknown = JSON.parse(readFileSync(join(dexDir, "listings", fileName()), "utf8"))
    // Until 0.1.0 the file contained only the refs.
    if (Array.isArray(content)) return { refs: stringsIn(content), words: [] }
    const { refs, words } = record(content) ?? {}
    return { refs: stringsIn(refs), words: stringsIn(words) }
  } catch {
    return EMPTY_LISTING // Nothing has been listed in this terminal yet.
  }
}

const EMPTY_LISTING: Listing = { refs: [], words: [] }

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : []
}

export function clearListings(dexDir: string): void {
  rmSync(join(dexDir, "listings"), { recursive: true, force: true })
}

const PICKER_FILE = "picker.json"

/** The scope of the picker's list that the person chose last, for all terminals. */
export function readPickerScope(dexDir: string): string | undefined {
  try {
    const { scope } = record(JSON.parse(readFileSync(join(dexDir, PICKER_FILE), "utf8"))) ?? {}
    return typeof scope === "string" ? scope : undefined
  } catch {
    return undefined // none was chosen yet
  }
}

export function savePickerScope(dexDir: string, scope: string): void {
  if (scope === readPickerScope(dexDir)) return
  try {
    writeFileSync(join(dexDir, PICKER_FILE), JSON.stringify({ scope }), { mode: 0o600 })
  } catch {
    // The home is read-only, so the next picker begins with all projects.
  }
}

function fileName(): string {
  return `${shellSession() ?? process.ppid}.json`
}

/**
 * Identifies the shell that opened the terminal, whatever program or script runs between it and dex, by its process id and its
 * start time, because ids are reused. Returns undefined if the system does not report them.
 */
function shellSession(): string | undefined {
  try {
    const leader = statOf("self")[3]!
    return `${leader}-${statOf(leader)[19]}`
  } catch {
    return undefined
  }
}

/**
 * Returns the fields of `/proc/<pid>/stat` on Linux, starting with the state. The process's name before it is skipped, because it
 * can contain anything.
 */
function statOf(pid: string): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8")
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}
