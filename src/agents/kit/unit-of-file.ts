import type { Stats } from "node:fs"
import type { Unit } from "./connector.ts"

/** A unit that is one file: its size and its time say whether it may have changed. */
export function unitOfFile(path: string, key: string, stat: Stats): Unit {
  return {
    key,
    path,
    stamp: `${stat.size}:${stat.mtimeMs}`,
    bytes: stat.size,
    modifiedAt: stat.mtimeMs,
    bornAt: stat.birthtimeMs || stat.mtimeMs,
  }
}
