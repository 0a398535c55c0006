import { CODE_VERSION, isUnoptimized, languageOf } from "../code/languages.ts"
import type { CodeParser } from "../code/parse.ts"
import { redactName } from "../redact/redact.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startProcess } from "../subprocess/process.ts"
import { type CodeRequest, type ReadCode, readCode } from "./read-code.ts"

/** Reads code files, either in this process or, if there is more to read, in a subprocess while this one stores. */
export type CodeReader = {
  /** Reads files, which must all be of the same sort; see `codeSortOf`. */
  read(files: CodeRequest[]): Promise<ReadCode[]>
  close(): Promise<void>
}

export type CodeReaderOptions = {
  /** The number of bytes to read, and the sorts of the files. */
  bytes: number
  sorts: ReadonlySet<CodeSort>
  /** True to read all files in a subprocess, so that this process stays small. */
  inSubprocess?: boolean
  /** A parser that is already open. */
  parser?: CodeParser
}

/**
 * If there are at least this many bytes, a subprocess reads them. Starting it takes as long as reading this much, and its end
 * frees the parser's memory.
 */
const MIN_SUBPROCESS_BYTES = 128 << 10

export function openCodeReader(project: string, { bytes, sorts, inSubprocess, parser }: CodeReaderOptions): CodeReader {
  const isLittle = bytes < MIN_SUBPROCESS_BYTES && !sorts.has("plain") && !inSubprocess
  return parser || isLittle ? inlineReader(project, parser) : processReader(project)
}

/** The sort of a file. Each sort needs a process with different flags. */
export type CodeSort = "optimized" | "plain"
export const codeSortOf = (path: string): CodeSort => (isUnoptimized(languageOf(path)!) ? "plain" : "optimized")

/** Reads in this process. The parser costs 40 ms and 50 MB, so it is loaded only when a file has changed. */
function inlineReader(project: string, sharedParser?: CodeParser): CodeReader {
  let loading: Promise<CodeParser> | undefined
  const loadParser = () => {
    loading ??= import("../code/parse.ts").then((module) => module.openParser())
    return loading
  }
  return {
    read: async (files) => {
      const results: ReadCode[] = []
      const parser = sharedParser ? async () => sharedParser : loadParser
      for (const file of files) results.push(await readCode(project, file, parser))
      return results
    },
    close: async () => (await loading)?.close(),
  }
}

/** Heap limits. By default, V8 lets garbage grow to hundreds of megabytes before it collects. */
const HEAP_FLAGS = ["--max-semi-space-size=4", "--max-old-space-size=128"]
const FLAGS: Record<CodeSort, string[]> = { optimized: HEAP_FLAGS, plain: [...HEAP_FLAGS, "--liftoff-only"] }
const CODE_PROCESS = subprocessFile("./code-process.ts", import.meta.url)
/**
 * A process that uses more than this many bytes of memory is replaced, because the parser frees little of the memory that a large
 * file needed.
 */
const MAX_PROCESS_BYTES = 150e6

/**
 * Reads in a subprocess. A file can break it by exhausting its memory or through a fault in a grammar. The process is then
 * replaced, and the current files are read one by one: only a file that breaks it again is skipped.
 */
function processReader(project: string): CodeReader {
  let current: { sort: CodeSort; process: Subprocess<CodeRequest[], ReadCode[]> } | undefined
  let previous: Promise<unknown> = Promise.resolve()
  let isClosed = false
  const stop = async () => {
    const stopping = current
    current = undefined
    await stopping?.process.kill() // the process only reads, so it can be killed
  }
  const isUnrelatedToFiles = (error: unknown) => isClosed || (isSubprocessEnded(error) && error.isNotStarted)
  const readIn = async (sort: CodeSort, files: CodeRequest[]) => {
    if (isClosed) throw new Error("The code reader is closed")
    if (current && (current.sort !== sort || current.process.memory() > MAX_PROCESS_BYTES)) await stop()
    current ??= { sort, process: startProcess(CODE_PROCESS, { args: [project], flags: FLAGS[sort] }) }
    return current.process.ask(files)
  }
  const readOne = async (sort: CodeSort, file: CodeRequest): Promise<ReadCode> => {
    try {
      return (await readIn(sort, [file]))[0]!
    } catch (error) {
      if (isUnrelatedToFiles(error)) throw error
      await stop()
      return { type: "read", file: brokenFile(file.path) }
    }
  }
  const readAll = async (files: CodeRequest[]): Promise<ReadCode[]> => {
    const sort = codeSortOf(files[0]!.path)
    try {
      return await readIn(sort, files)
    } catch (error) {
      if (isUnrelatedToFiles(error)) throw error
      await stop()
      const results: ReadCode[] = []
      for (const file of files) results.push(await readOne(sort, file))
      return results
    }
  }
  return {
    read: (files) => {
      const result = previous.then(() => readAll(files))
      previous = result.catch(() => {}) // the caller of `read` receives the error
      return result
    },
    close: () => {
      isClosed = true
      return stop()
    },
  }
}

function brokenFile(path: string) {
  const noFacts = { size: 0, modified_at: 0, lines: 0, definitions: [], imports: [], uses: [] }
  return { ...noFacts, path: redactName(path), language: languageOf(path)!, version: CODE_VERSION, skipped: "broken" }
}
