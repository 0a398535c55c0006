import { existsSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../../config/home.ts"
import { clearLogs } from "../../store/sqlite/replace-database.ts"

// Forgotten text stays in old pages of a database for as long as another program reads them. A small marker file records this, so
// that the next sync or gc removes the pages, even if the process that forgot the text was stopped.

const RETRY_INTERVAL_MS = 100

export function markForgetting(home: Home): void {
  writeFileSync(markerFile(home), "", { mode: 0o600 })
}

/**
 * Removes the old pages, and waits at most `maxWaitMs` for programs that read them. Returns the names of databases whose old
 * pages are still in use then. Calls `onWait` with the names before the first wait.
 */
export async function finishForgetting(
  home: Home,
  maxWaitMs: number,
  onWait: (names: string[]) => void = () => {},
): Promise<string[]> {
  if (!existsSync(markerFile(home))) return []
  const deadline = Date.now() + maxWaitMs
  const files = [home.history, home.index, home.knowledge, home.spending, home.suggest]
  for (let tries = 0; ; tries++) {
    const filesInUse = clearLogs(files).map((path) => basename(path))
    if (filesInUse.length === 0) rmSync(markerFile(home), { force: true })
    if (filesInUse.length === 0 || Date.now() >= deadline) return filesInUse
    if (tries === 0) onWait(filesInUse)
    await pause(RETRY_INTERVAL_MS)
  }
}

function markerFile(home: Home): string {
  return join(home.dir, "forgetting")
}
