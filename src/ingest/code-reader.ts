import { CODE_VERSION, isUnoptimized, languageOf } from "../code/languages.ts"
import type { CodeParser } from "../code/parse.ts"
import { redactName } from "../redact/name.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startProcess } from "../subprocess/process.ts"
import { type CodeOrder, type CodeReadResult, readCode } from "./read-code.ts"

/** Reads code files: in this process if there are few, otherwise in a subprocess while this process stores. */
export type CodeReader = {
  /** All files must have the same `CodeSort`; see `codeSortOf`. */
  read(files: CodeOrder[]): Promise<CodeReadResult[]>
  close(): Promise<void>
}

export type CodeReaderOptions = {
  /** The number of bytes to read; the sorts of files follow. */
  bytes: number
  sorts: ReadonlySet<CodeSort>
  /** Reads nothing in this process, to keep it small. */
  inSubprocess?: boolean
  /** A parser that is already open. */
  open?: CodeParser
}

/**
 * The number of bytes from which a subprocess pays off. Starting one costs as much as reading about this much, and its end frees
 * the parser's memory.
 */
const SUBPROCESS_FROM_BYTES = 128 << 10

export function openCodeReader(project: string, { bytes, sorts, inSubprocess, open }: CodeReaderOptions): CodeReader {
  const isLittle = bytes < SUBPROCESS_FROM_BYTES && !sorts.has("plain") && !inSubprocess
  return open || isLittle ? inlineReader(project, open) : processReader(project)
}

/** The kinds of files that need a process with different flags. */
export type CodeSort = "optimized" | "plain"
export const codeSortOf = (path: string): CodeSort => (isUnoptimized(languageOf(path)!) ? "plain" : "optimized")

/** The parser costs 40 ms and 50 MB, so it is loaded only when a file has changed. */
function inlineReader(project: string, open?: CodeParser): CodeReader {
  let opened: Promise<CodeParser> | undefined
  const parser = () => {
    opened ??= import("../code/parse.ts").then(({ openParser }) => openParser())
    return opened
  }
  return {
    read: async (files) => {
      const read: CodeReadResult[] = []
      for (const file of files) read.push(await readCode(project, file, open ? async () => open : parser))
      return read
    },
    close: async () => (await opened)?.close(),
  }
}

/** V8 flags that limit the heap. By default, V8 lets garbage grow to hundreds of megabytes before it collects. */
const HEAP = ["--max-semi-space-size=4", "--max-old-space-size=128"]
const FLAGS: Record<CodeSort, string[]> = { optimized: HEAP, plain: [...HEAP, "--liftoff-only"] }
const CODE_PROCESS = subprocessFile("./code-process.ts", import.meta.url)
/** The memory, in bytes, at which a process is replaced. The parser frees little of what a large file needed. */
const ENOUGH_MEMORY = 150e6

/**
 * A file can break the process by exhausting its memory or through a fault in a grammar. The process is then replaced, and the
 * current files are read one by one: only a file that breaks it again is skipped.
 */
function processReader(project: string): CodeReader {
  let current: { sort: CodeSort; reading: Subprocess<CodeOrder[], CodeReadResult[]> } | undefined
  let last: Promise<unknown> = Promise.resolve()
  let closed = false
  const stop = async () => {
    const stopping = current
    current = undefined
    await stopping?.reading.kill() // the process only reads, so killing it is safe
  }
  /** Whether the error was caused by something other than the files. */
  const isOurs = (error: unknown) => closed || (isSubprocessEnded(error) && error.isNotStarted)
  const readIn = async (sort: CodeSort, files: CodeOrder[]) => {
    if (closed) throw new Error("The code reader is closed")
    if (current && (current.sort !== sort || current.reading.memory() > ENOUGH_MEMORY)) await stop()
    current ??= { sort, reading: startProcess(CODE_PROCESS, { args: [project], flags: FLAGS[sort] }) }
    return current.reading.ask(files)
  }
  const readOne = async (sort: CodeSort, file: CodeOrder): Promise<CodeReadResult> => {
    try {
      return (await readIn(sort, [file]))[0]!
    } catch (error) {
      if (isOurs(error)) throw error
      await stop()
      return { type: "read", file: brokenFile(file.path) }
    }
  }
  const readAll = async (files: CodeOrder[]): Promise<CodeReadResult[]> => {
    const sort = codeSortOf(files[0]!.path)
    try {
      return await readIn(sort, files)
    } catch (error) {
      if (isOurs(error)) throw error
      await stop()
      const read: CodeReadResult[] = []
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
