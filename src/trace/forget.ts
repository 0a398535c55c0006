import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs"
import { codeOf } from "../core/error.ts"
import { formatRef, parseRef, type Ref } from "../core/ref.ts"
import { fileNumbers, filePath } from "./files.ts"

const NEWLINE = 10
const SPACE = 32
/** A shorter prefix of an id does not count as a mention of the conversation. */
const MIN_PREFIX_LENGTH = 4

/**
 * Deletes every trace that mentions one of these conversations, and returns their number. Lines are overwritten with spaces and
 * the file is not replaced, because other processes may be appending to it or deleting from it.
 */
export function forgetTraces(dir: string, refs: Ref[]): number {
  const fullRefs = refs.map((ref) => JSON.stringify(formatRef(ref)).slice(1, -1))
  return dropTraces(dir, (line) => mentions(line, fullRefs, refs))
}

/** Deletes every trace whose line matches, and returns their number. */
export function dropTraces(dir: string, matches: (line: string) => boolean): number {
  return fileNumbers(dir).reduce((dropped, number) => dropped + overwriteLines(filePath(dir, number), matches), 0)
}

function overwriteLines(path: string, matches: (line: string) => boolean): number {
  const fd = openIfExists(path)
  if (fd === undefined) return 0
  try {
    const bytes = readFileSync(fd)
    let count = 0
    for (let start = 0; start < bytes.length; ) {
      const newline = bytes.indexOf(NEWLINE, start)
      const end = newline === -1 ? bytes.length : newline
      if (end > start && matches(bytes.toString("utf8", start, end))) {
        // A single writeSync may write only a part of the spaces.
        for (let position = start; position < end; )
          position += writeSync(fd, Buffer.alloc(end - position, SPACE), 0, end - position, position)
        count++
      }
      start = end + 1
    }
    if (count > 0) fsyncSync(fd)
    return count
  } finally {
    closeSync(fd)
  }
}

/**
 * Returns true if a line contains the complete ref of one of the conversations, or if its arguments contain a ref with a prefix
 * of the id. An incomplete line has no arguments, but may contain the complete ref.
 */
function mentions(line: string, fullRefs: string[], refs: Ref[]): boolean {
  if (fullRefs.some((fullRef) => line.includes(fullRef))) return true
  let args: unknown
  try {
    args = (JSON.parse(line) as { args?: unknown } | null)?.args
  } catch {
    return false // the line is blank or incomplete
  }
  return textsIn(args).some((text) => {
    const parsedRef = parseRef(text)
    return (
      parsedRef !== undefined &&
      parsedRef.prefix.length >= MIN_PREFIX_LENGTH &&
      refs.some(
        (ref) =>
          ref.id.startsWith(parsedRef.prefix) &&
          (parsedRef.source ?? ref.source) === ref.source &&
          (parsedRef.owner ?? ref.owner) === ref.owner,
      )
    )
  })
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : []
}

function openIfExists(path: string): number | undefined {
  try {
    return openSync(path, "r+")
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}
