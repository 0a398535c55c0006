import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { isatty } from "node:tty"
import { record } from "../core/record.ts"
import type { Listing } from "../tools/context.ts"

// `dex show 2` refers to the last listing in this terminal. Its refs are in a small file per terminal, not in the database,
// because a listing must never wait for a writer.

const KEEP_MS = 7 * 86_400_000

/** Whether row numbers can be used here. An agent's shell and a script have no terminal: they get refs. */
export function keepsListings(): boolean {
  // npm runs between the shell and us, a new process each time, and nothing tells which shell it is.
  if (process.env.npm_command !== undefined && shellSession() === undefined) return false
  return [0, 1, 2].some((fd) => isatty(fd))
}

/** `words`: the words that a search matched, as they appear in its rows. */
export function saveListing(dexDir: string, refs: string[], words: string[] = []): void {
  if (!keepsListings()) return
  const folder = join(dexDir, "listings")
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder)) {
      const file = join(folder, name)
      if (Date.now() - statSync(file).mtimeMs > KEEP_MS) rmSync(file, { force: true })
    }
    writeFileSync(join(folder, fileName()), JSON.stringify({ refs, words }), { mode: 0o600 })
  } catch {
    // A read-only home: row numbers do not work in this terminal then, and `dex show 2` says so.
  }
}

export function readListing(dexDir: string): Listing {
  if (!keepsListings()) return NONE
  try {
    const stored: unknown = JSON.parse(readFileSync(join(dexDir, "listings", fileName()), "utf8"))
    // Until 0.1.0 the file contained only the refs.
    if (Array.isArray(stored)) return { refs: textsIn(stored), words: [] }
    const { refs, words } = record(stored) ?? {}
    return { refs: textsIn(refs), words: textsIn(words) }
  } catch {
    return NONE // nothing was listed here yet
  }
}

const NONE: Listing = { refs: [], words: [] }

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : []
}

export function clearListings(dexDir: string): void {
  rmSync(join(dexDir, "listings"), { recursive: true, force: true })
}

function fileName(): string {
  return `${shellSession() ?? process.ppid}.json`
}

/**
 * The shell that opened the terminal, whatever program or script runs between it and us. Identified by its process id and start
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

/** Linux's description of a process, beginning with its state. The name before that may contain anything. */
function statOf(process: string): string[] {
  const text = readFileSync(`/proc/${process}/stat`, "utf8")
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}
