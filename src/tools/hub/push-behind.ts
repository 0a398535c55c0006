import { startDetached } from "../../subprocess/process.ts"
import type { Dex } from "../context.ts"
import { pushedOf } from "./sharing.ts"

/**
 * Starts `dex hub push` as a separate process that continues after this one ends, unless it is too early to try again. The caller
 * does not wait for it. Never throws.
 */
export function pushBehind(dex: Pick<Dex, "home" | "machine" | "now">): boolean {
  const [script] = process.argv.slice(1)
  if (script === undefined) return false
  try {
    const pushed = pushedOf(dex)
    const { retry_at } = pushed.health()
    pushed.close()
    if (retry_at !== undefined && retry_at > dex.now()) return false
    // If it does not start, the next sync tries again.
    startDetached([script, "hub", "push", "--quiet"], { cwd: dex.home.dir, env: dex.machine.env })
    return true
  } catch {
    return false // `dex hub status` shows the problem
  }
}
