import { startDetached } from "../../subprocess/process.ts"
import type { Dex } from "../context.ts"
import { openPushedStore } from "./sharing.ts"

/**
 * Starts `dex hub push` as a separate process that outlives this one, unless it is too early to retry. Does not wait for it and
 * never throws.
 */
export function startBackgroundPush(dex: Pick<Dex, "home" | "machine" | "now">): boolean {
  const [script] = process.argv.slice(1)
  if (script === undefined) return false
  try {
    const pushed = openPushedStore(dex)
    const { retry_at } = pushed.health()
    pushed.close()
    if (retry_at !== undefined && retry_at > dex.now()) return false
    // If the process does not start, the next sync retries.
    startDetached([script, "hub", "push", "--quiet"], { cwd: dex.home.dir, env: dex.machine.env })
    return true
  } catch {
    return false // `dex hub status` shows the problem.
  }
}
