import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { isatty } from "node:tty"
import { record } from "../core/record.ts"
import type { Listing } from "../tools/context.ts"

// What `dex show 2` means: the refs of the last listing in this terminal, in a small file of the terminal's own. Not in
// the database: a listing must never wait for a writer.

const KEEP_MS = 7 * 86_400_000

/** Whether numbers stand for rows here. An agent's shell and a script have no terminal: they are given refs. */
export function keepsListings(): boolean {
  // npm stands between the shell and us then, another one each time, and nothing tells which shell it is.
  if (process.env.npm_command !== undefined && shellSession() === undefined) return false
  return [0, 1, 2].some((fd) => isatty(fd))
}

/** `words`: what a search matched, as it stands in its rows. */
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
    // A read-only home: numbers then do not work in this terminal, and `dex show 2` says so.
  }
}

export function readListing(dexDir: string): Listing {
  if (!keepsListings()) return NONE
  try {
    const kept: unknown = JSON.parse(readFileSync(join(dexDir, "listings", fileName()), "utf8"))
    // Until 0.1.0 it was the refs alone.
    if (Array.isArray(kept)) return { refs: textsIn(kept), words: [] }
    const { refs, words } = record(kept) ?? {}
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
 * The shell that the terminal was opened with, whatever program or script stands between it and us; by its number and when
 * it started, because numbers are given again. Undefined where the system does not tell.
 */
function shellSession(): string | undefined {
  try {
    const leader = statOf("self")[3]!
    return `${leader}-${statOf(leader)[19]}`
  } catch {
    return undefined
  }
}

/** What Linux tells of a process, from its state on: before that stands its name, which may hold anything. */
function statOf(process: string): string[] {
  const text = readFileSync(`/proc/${process}/stat`, "utf8")
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}
