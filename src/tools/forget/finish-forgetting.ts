import { existsSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../../config/home.ts"
import { clearLogs } from "../../store/sqlite/replace-database.ts"

// What was forgotten stays in old pages of a database for as long as somebody reads them. A small file says that this is
// not over, so that the next sync or gc ends it, also where whoever forgot was stopped.

const TRY_EVERY_MS = 100

export function noteForgetting(home: Home): void {
  writeFileSync(marker(home), "", { mode: 0o600 })
}

/** Names the databases whose old pages are still read after so long; `onWait` is told of them when it begins to wait. */
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
