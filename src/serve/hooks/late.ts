import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DAY_MS } from "../../core/dates.ts"

/** How long to keep a text that came too late for its hook, in milliseconds. `dex-hook` does not print older texts either. */
const STALE_MS = 600_000
/** The same for a text to give back after a compaction, because the person may take a break before the next prompt. */
const COMPACTION_STALE_MS = DAY_MS

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
    const staleMs = name.endsWith(".compaction") ? COMPACTION_STALE_MS : STALE_MS
    if (writtenAt !== undefined && now - writtenAt > staleMs) rmSync(path, { force: true })
  }
}
