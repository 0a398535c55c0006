import { readFileSync, writeSync } from "node:fs"
import { dexHome } from "../config/home.ts"
import { type LineState, usageLine } from "../usage/line.ts"

/** Runs `dex usage --line`. A status line calls it every few seconds, so it opens only one small file. Returns the exit code. */
export function printUsageLine(env: Record<string, string | undefined>): number {
  const state = readState(dexHome(env).usageLine)
  if (!state) {
    process.stderr.write("dex: No usage is recorded yet. Run `dex usage` once; after that every sync updates it.\n")
    return 1
  }
  try {
    writeSync(1, `${usageLine(state, Date.now())}\n`) // creating process.stdout takes a millisecond
  } catch {
    // the reader has closed the pipe
  }
  return 0
}

function readState(file: string): LineState | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as LineState
  } catch {
    return undefined // the file is missing or damaged; the next sync writes it
  }
}
