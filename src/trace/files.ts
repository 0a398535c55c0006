import { readdirSync } from "node:fs"
import { join } from "node:path"

// Traces are stored in numbered files, from 000001.ndjson. The highest number is written to. When it is full, the next number is
// begun; nothing is ever renamed, so a line is never in two files or between them.

export const LIMITS: Limits = { lineBytes: 16_384, fileBytes: 4 << 20, files: 4 }
export type Limits = {
  /** One append is one write of at most this many bytes: short enough not to be interleaved with others. */
  lineBytes: number
  /** The size at which the next file is begun. With several writers, each may exceed it by one line. */
  fileBytes: number
  files: number
}

/** The numbers of the files in ascending order. Empty if there is no folder yet. */
export function fileNumbers(dir: string): number[] {
  let names: string[]
  try {
    names = readdirSync(dir)
  } catch {
    return [] // nothing was ever traced here
  }
  return names
    .flatMap((name) => /^(\d{6,12})\.ndjson$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
}

export function filePath(dir: string, number: number): string {
  return join(dir, `${String(number).padStart(6, "0")}.ndjson`)
}
