import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** How long a late text is kept, in milliseconds. `dex-hook` does not print older texts either. */
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
    const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs
    if (writtenAt !== undefined && now - writtenAt > STALE_MS) rmSync(path, { force: true })
  }
}
