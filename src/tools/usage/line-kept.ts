import { existsSync } from "node:fs"
import type { Dex } from "../context.ts"

/** True if syncs update the status line: from the first `dex usage` on, even after a forget has removed the file. */
export async function isStatusLineUpdated(dex: Dex): Promise<boolean> {
  if (existsSync(dex.home.usageLine)) return true
  return existsSync(dex.home.spending) && (await dex.spending()).isLineWanted()
}
