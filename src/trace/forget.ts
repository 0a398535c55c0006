import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs"
import { codeOf } from "../core/error.ts"
import { formatRef, parseRef, type Ref } from "../core/ref.ts"
import { fileNumbers, filePath } from "./files.ts"

const NEWLINE = 10
const SPACE = 32
/** The shortest prefix of an id that identifies a conversation. */
const MIN_PREFIX_LENGTH = 4

/**
 * Deletes every trace that names one of these conversations; returns how many there were. The line is overwritten in place and
 * the file is not replaced, so that processes that append or forget at the same time are not disturbed.
 */
export function forgetTraces(dir: string, refs: Ref[]): number {
  const names = refs.map((ref) => JSON.stringify(formatRef(ref)).slice(1, -1))
  return dropTraces(dir, (line) => mentions(line, names, refs))
}

/** Deletes every matching trace; returns how many there were. */
export function dropTraces(dir: string, isMeant: (line: string) => boolean): number {
  return fileNumbers(dir).reduce((dropped, number) => dropped + blankLines(filePath(dir, number), isMeant), 0)
}

function blankLines(path: string, isMeant: (line: string) => boolean): number {
  const fd = openIfThere(path)
  if (fd === undefined) return 0
  try {
    const bytes = readFileSync(fd)
    let blanked = 0
    for (let start = 0; start < bytes.length; ) {
      const newline = bytes.indexOf(NEWLINE, start)
      const end = newline === -1 ? bytes.length : newline
      if (end > start && isMeant(bytes.toString("utf8", start, end))) {
        // A write may be partial; if it fails, this throws.
        for (let at = start; at < end; ) at += writeSync(fd, Buffer.alloc(end - at, SPACE), 0, end - at, at)
        blanked++
      }
      start = end + 1
    }
    if (blanked > 0) fsyncSync(fd)
    return blanked
  } finally {
    closeSync(fd)
  }
}

/**
 * True if a line names a conversation: it contains the complete ref, even if the line is incomplete, or a prefix of the id in the
 * arguments.
 */
function mentions(line: string, names: string[], refs: Ref[]): boolean {
  if (names.some((name) => line.includes(name))) return true
  let args: unknown
  try {
    args = (JSON.parse(line) as { args?: unknown } | null)?.args
  } catch {
    return false // blank or incomplete: it names nobody
  }
  return textsIn(args).some((text) => {
    const typed = parseRef(text)
    return (
      typed !== undefined &&
      typed.prefix.length >= MIN_PREFIX_LENGTH &&
      refs.some(
        (ref) =>
          ref.id.startsWith(typed.prefix) &&
          (typed.source ?? ref.source) === ref.source &&
          (typed.owner ?? ref.owner) === ref.owner,
      )
    )
  })
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : []
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r+")
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}
