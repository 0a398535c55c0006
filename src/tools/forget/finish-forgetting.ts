import { existsSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../../config/home.ts"
import { clearLogs } from "../../store/sqlite/replace-database.ts"

// Forgotten text stays in old pages of a database as long as another program reads them. A small file marks this, so that the
// next sync or gc removes them, even if the process that forgot was stopped.

const TRY_EVERY_MS = 100

export function noteForgetting(home: Home): void {
  writeFileSync(marker(home), "", { mode: 0o600 })
}

/**
 * Returns the names of databases whose old pages are still in use after this time. Calls `onWait` with them before the first
 * wait.
 */
export async function finishForgetting(
  home: Home,
  withinMs: number,
  onWait: (names: string[]) => void = () => {},
): Promise<string[]> {
  if (!existsSync(marker(home))) return []
  const deadline = Date.now() + withinMs
  const files = [home.history, home.index, home.knowledge, home.spending, home.suggest]
  for (let tries = 0; ; tries++) {
    const pinned = clearLogs(files).map((path) => basename(path))
    if (pinned.length === 0) rmSync(marker(home), { force: true })
    if (pinned.length === 0 || Date.now() >= deadline) return pinned
    if (tries === 0) onWait(pinned)
    await pause(TRY_EVERY_MS)
  }
}

function marker(home: Home): string {
  return join(home.dir, "forgetting")
}
