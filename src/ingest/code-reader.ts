import { CODE_VERSION, isUnoptimized, languageOf } from "../code/languages.ts"
import type { CodeParser } from "../code/parse.ts"
import { redactName } from "../redact/name.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startProcess } from "../subprocess/process.ts"
import { type CodeOrder, type ReadCode, readCode } from "./read-code.ts"

/** Reads code files: in this process if there are few, otherwise in a subprocess while this one stores. */
export type CodeReader = {
  /** Reads files, all of which must be of one sort; see `sortOf`. */
  read(files: CodeOrder[]): Promise<ReadCode[]>
  close(): Promise<void>
}

export type CodeReaderOptions = {
  /** The number of bytes to read, and the sorts of the files. */
  bytes: number
  sorts: ReadonlySet<CodeSort>
  /** Reads nothing in this process, so that it stays small. */
  inSubprocess?: boolean
  /** A parser that is already open. */
  open?: CodeParser
}

/**
 * From this many bytes on, a subprocess reads: starting it costs as much as reading this much, and its end frees the parser's
 * memory.
 */
const SUBPROCESS_FROM_BYTES = 128 << 10

export function openCodeReader(project: string, { bytes, sorts, inSubprocess, open }: CodeReaderOptions): CodeReader {
  const isLittle = bytes < SUBPROCESS_FROM_BYTES && !sorts.has("plain") && !inSubprocess
  return open || isLittle ? inlineReader(project, open) : processReader(project)
}

/** The sort of a file. Each sort needs a process with different flags. */
export type CodeSort = "optimized" | "plain"
export const codeSortOf = (path: string): CodeSort => (isUnoptimized(languageOf(path)!) ? "plain" : "optimized")

/** Reads in this process. The parser costs 40 ms and 50 MB, so it is loaded only when a file has changed. */
function inlineReader(project: string, open?: CodeParser): CodeReader {
  let opened: Promise<CodeParser> | undefined
  const parser = () => {
    opened ??= import("../code/parse.ts").then(({ openParser }) => openParser())
    return opened
  }
  return {
    read: async (files) => {
      const read: ReadCode[] = []
      for (const file of files) read.push(await readCode(project, file, open ? async () => open : parser))
      return read
    },
    close: async () => (await opened)?.close(),
  }
}

/** Heap limits. By default, V8 lets garbage grow to hundreds of megabytes before it collects. */
const HEAP_FLAGS = ["--max-semi-space-size=4", "--max-old-space-size=128"]
const FLAGS: Record<CodeSort, string[]> = { optimized: HEAP_FLAGS, plain: [...HEAP_FLAGS, "--liftoff-only"] }
const CODE_PROCESS = subprocessFile("./code-process.ts", import.meta.url)
/** The memory at which a process is replaced, in bytes, because the parser frees little of what a large file needed. */
const MAX_PROCESS_BYTES = 150e6

/**
 * Reads in a subprocess. A file can break it by exhausting its memory or through a fault in a grammar. The process is then
 * replaced, and the current files are read one by one: only a file that breaks it again is skipped.
 */
function processReader(project: string): CodeReader {
  let current: { sort: CodeSort; reading: Subprocess<CodeOrder[], ReadCode[]> } | undefined
  let last: Promise<unknown> = Promise.resolve()
  let closed = false
  const stop = async () => {
    const stopping = current
    current = undefined
    await stopping?.reading.kill() // it only reads, so it can be killed
  }
  /** True if the error was not caused by the files. */
  const isOurs = (error: unknown) => closed || (isSubprocessEnded(error) && error.isNotStarted)
  const readIn = async (sort: CodeSort, files: CodeOrder[]) => {
    if (closed) throw new Error("The code reader is closed")
    if (current && (current.sort !== sort || current.reading.memory() > MAX_PROCESS_BYTES)) await stop()
    current ??= { sort, reading: startProcess(CODE_PROCESS, { args: [project], flags: FLAGS[sort] }) }
    return current.reading.ask(files)
  }
  const readOne = async (sort: CodeSort, file: CodeOrder): Promise<ReadCode> => {
    try {
      return (await readIn(sort, [file]))[0]!
    } catch (error) {
      if (isOurs(error)) throw error
      await stop()
      return { type: "read", file: brokenFile(file.path) }
    }
  }
  const readAll = async (files: CodeOrder[]): Promise<ReadCode[]> => {
    const sort = codeSortOf(files[0]!.path)
    try {
      return await readIn(sort, files)
    } catch (error) {
      if (isOurs(error)) throw error
      await stop()
      const read: ReadCode[] = []
      for (const file of files) read.push(await readOne(sort, file))
      return read
    }
  }
  return {
    read: (files) => {
      const read = last.then(() => readAll(files))
      last = read.catch(() => {}) // the caller gets the error
      return read
    },
    close: () => {
      closed = true
      return stop()
    },
  }
}

function brokenFile(path: string) {
  const nothing = { size: 0, modified_at: 0, lines: 0, definitions: [], imports: [], uses: [] }
  return { ...nothing, path: redactName(path), language: languageOf(path)!, version: CODE_VERSION, skipped: "broken" }
}
