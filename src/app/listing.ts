import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"

// What `dex show 2` means: the refs of the last listing in this terminal, in a small file of the terminal's own. Not in
// the database: a listing must never wait for a writer.

const KEEP_MS = 7 * 86_400_000

export function saveListing(dexDir: string, refs: string[]): void {
  const folder = join(dexDir, "listings")
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder)) {
      const file = join(folder, name)
      if (Date.now() - statSync(file).mtimeMs > KEEP_MS) rmSync(file, { force: true })
    }
    writeFileSync(join(folder, terminal()), JSON.stringify(refs), { mode: 0o600 })
  } catch {
    // A read-only home: numbers then do not work in this terminal, and `dex show 2` says so.
  }
}

export function readListing(dexDir: string): string[] {
  try {
    const refs: unknown = JSON.parse(readFileSync(join(dexDir, "listings", terminal()), "utf8"))
    return Array.isArray(refs) ? refs.filter((ref) => typeof ref === "string") : []
  } catch {
    return [] // nothing was listed here yet
  }
}

export function clearListings(dexDir: string): void {
  rmSync(join(dexDir, "listings"), { recursive: true, force: true })
}

/** The shell that started us stands for the terminal. */
function terminal(): string {
  return `${process.ppid}.json`
}
