import { existsSync } from "node:fs"
import type { Dex } from "../context.ts"

/** True if syncs write the status line: from the first `dex usage` on, even after a forget removed the file. */
export async function isLineKept(dex: Dex): Promise<boolean> {
  if (existsSync(dex.home.usageLine)) return true
  return existsSync(dex.home.spending) && (await dex.spending()).isLineWanted()
}
