import { readdirSync } from "node:fs"
import { join } from "node:path"

// Traces are stored in numbered files, beginning with 000001.ndjson. New traces are appended to the file with the highest number.
// When it is full, the next file is created. Files are never renamed, so a line is always in exactly one file.

export const LIMITS: Limits = { lineBytes: 16_384, fileBytes: 4 << 20, files: 4 }
export type Limits = {
  /**
   * The maximum length of a line, in bytes. A line is appended in a single write, which must be short enough not to be mixed
   * with other writes.
   */
  lineBytes: number
  /** The size, in bytes, from which the next file is used. Each process that is writing may exceed it by one line. */
  fileBytes: number
  /** The number of files that are kept. */
  files: number
}

/** Returns the numbers of the existing trace files, in ascending order. */
export function fileNumbers(dir: string): number[] {
  let names: string[]
  try {
    names = readdirSync(dir)
  } catch {
    return [] // the folder is created with the first trace
  }
  return names
    .flatMap((name) => /^(\d{6,12})\.ndjson$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
}

export function filePath(dir: string, number: number): string {
  return join(dir, `${String(number).padStart(6, "0")}.ndjson`)
}
