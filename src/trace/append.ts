import { closeSync, constants, fstatSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs"
import { codeOf } from "../core/error.ts"
import type { Trace } from "../core/trace.ts"
import { fileNumbers, filePath, LIMITS, type Limits } from "./files.ts"
import { traceLine } from "./line.ts"

/** Others may begin or remove files at any moment; every one that does moves on, so few tries are needed. */
const TRIES = 100

/**
 * Adds one trace, whole and once, however many processes do the same. Throws when it cannot be written; whoever records
 * decides what that is worth.
 */
export function appendTrace(dir: string, trace: Trace, limits: Limits = LIMITS): void {
  const line = traceLine(trace, limits.lineBytes)
  for (let i = 0; i < TRIES; i++) if (appendLine(dir, line, limits)) return
  throw new Error(`${dir} changes too quickly to write a trace`)
}

function appendLine(dir: string, line: Buffer, limits: Limits): boolean {
  const numbers = fileNumbers(dir)
  const newest = numbers.at(-1)
  if (newest === undefined) {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    begin(dir, 1)
    return false
  }
  const fd = openExisting(filePath(dir, newest))
  if (fd === undefined) return false
  try {
    const { size } = fstatSync(fd)
    if (size > 0 && size + line.length > limits.fileBytes) {
      begin(dir, newest + 1)
      for (const number of numbers)
        if (number <= newest + 1 - limits.files) rmSync(filePath(dir, number), { force: true })
      return false
    }
    writeSync(fd, line)
    return fstatSync(fd).nlink > 0 // others may have filled all the files and removed this one since it was opened
  } finally {
    closeSync(fd)
  }
}

/** Several may begin the same file: it is then one file all the same. */
function begin(dir: string, number: number): void {
  closeSync(openSync(filePath(dir, number), "a", 0o600))
}

/** Never makes the file: one that has just been removed must not come back. */
function openExisting(path: string): number | undefined {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_APPEND)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}
