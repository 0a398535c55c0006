import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** How long a text stays useful, in milliseconds. `dex-hook` does not print an older one either. */
const STALE_MS = 600_000

/** Writes the text atomically where `dex-hook` looks for it, and deletes texts that nobody collected. */
export function saveLateText(file: string, text: string, now: number): void {
  const folder = dirname(file)
  if (text !== "") {
    const unfinished = join(folder, `.${process.pid}`)
    writeFileSync(unfinished, text, { mode: 0o600 })
    renameSync(unfinished, file)
  }
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs
    if (written !== undefined && now - written > STALE_MS) rmSync(path, { force: true })
  }
}
