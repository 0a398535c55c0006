import { spawn } from "node:child_process"
import type { Dex } from "../context.ts"
import { pushedOf } from "./sharing.ts"

/**
 * For who shares something: starts `dex hub push` as a process of its own, which goes on when this one has ended, unless it
 * is too early to try again. Whoever synced does not wait for it. Never throws.
 */
export function pushBehind(dex: Pick<Dex, "home" | "machine" | "now">): boolean {
  const [script] = process.argv.slice(1)
  if (script === undefined) return false
  try {
    const pushed = pushedOf(dex)
    const { retry_at } = pushed.health()
    pushed.close()
    if (retry_at !== undefined && retry_at > dex.now()) return false
    const options = {
      cwd: dex.home.dir,
      env: dex.machine.env,
      detached: true,
      stdio: "ignore",
      windowsHide: true,
    } as const
    const child = spawn(process.execPath, [script, "hub", "push", "--quiet"], options)
    child.on("error", () => {}) // the next sync tries again
    child.unref()
    return true
  } catch {
    return false // `dex hub status` says what is wrong
  }
}
