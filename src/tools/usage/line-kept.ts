import { existsSync } from "node:fs"
import type { Dex } from "../context.ts"

/** Whether syncs write what `dex usage --line` shows: from the first `dex usage` on, also after a forgetting removed the file. */
export async function isLineKept(dex: Dex): Promise<boolean> {
  if (existsSync(dex.home.usageLine)) return true
  return existsSync(dex.home.spending) && (await dex.spending()).isLineWanted()
}
