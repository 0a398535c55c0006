import { appendFileSync, existsSync, renameSync, statSync } from "node:fs"
import { join } from "node:path"
import { safeLine } from "../render/terminal.ts"

/** Twice this is the most that both files take. */
const MOST_BYTES = 64 << 10
const LONGEST = 300

/** A hook says nothing when it fails, so that an agent's work goes on; here it says why. Never throws. */
export function logFailure(dexHome: string, about: string, problem: string, now: number): void {
  try {
    if (!existsSync(dexHome)) return
    const file = join(dexHome, "hook.log")
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MOST_BYTES) renameSync(file, `${file}.old`)
    const line = `${new Date(now).toISOString()} ${safeLine(about).slice(0, 100)}: ${safeLine(problem).slice(0, LONGEST)}\n`
    appendFileSync(file, line, { mode: 0o600 })
  } catch {
    // Nobody is there to be told.
  }
}
