import { Worker } from "node:worker_threads"
import { CODE_VERSION, languageOf } from "../code/languages.ts"
import type { CodeParser } from "../code/parse.ts"
import { type ReadCode, type ReadOrder, readCode } from "./read-code.ts"
import { redactName } from "./redact-name.ts"
import { THREADS_PAY_FROM_BYTES, threadFile } from "./threads.ts"

/** Reads code files: in this thread when there are few, in a worker while this thread stores when there are many. */
export type CodeReader = { read(files: ReadOrder[]): Promise<ReadCode[]>; close(): Promise<void> }

export function openCodeReader(project: string, bytes: number, open?: CodeParser): CodeReader {
  return bytes < THREADS_PAY_FROM_BYTES ? inlineReader(project, open) : threadReader(project)
}

/** The parser weighs 40 ms and 50 MB: nobody pays for it while no file has changed. */
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

export type CodeOrder = { id: number; files: ReadOrder[] }
export type CodeAnswer = { id: number; read: ReadCode[] } | { id: number; error: string }

const HEAP = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 160 }

/**
 * A thread that a file breaks, by using up its memory or by a fault in a grammar, is replaced by another one, and the
 * files under way are read one by one: only the one that breaks it again is passed over.
 */
function threadReader(project: string): CodeReader {
  let thread = startThread(project)
  const readOne = async (file: ReadOrder): Promise<ReadCode> => {
    try {
      return (await thread.read([file]))[0]!
    } catch {
      await thread.stop()
      thread = startThread(project)
      return { type: "read", file: brokenFile(file.path) }
    }
  }
  return {
    read: async (files) => {
      const asked = thread
      try {
        return await asked.read(files)
      } catch {
        if (asked === thread) {
          await thread.stop()
          thread = startThread(project)
        }
        const read: ReadCode[] = []
        for (const file of files) read.push(await readOne(file))
        return read
      }
    },
    close: () => thread.stop(),
  }
}

function brokenFile(path: string) {
  const nothing = { size: 0, modified_at: 0, lines: 0, definitions: [], imports: [], uses: [] }
  return { ...nothing, path: redactName(path), language: languageOf(path)!, version: CODE_VERSION, skipped: "broken" }
}

function startThread(project: string): { read(files: ReadOrder[]): Promise<ReadCode[]>; stop(): Promise<void> } {
  const worker = new Worker(threadFile("code"), { workerData: { project }, resourceLimits: HEAP })
  const waiting = new Map<number, { resolve: (read: ReadCode[]) => void; reject: (error: Error) => void }>()
  let next = 0
  let ended: Error | undefined
  worker.on("message", (answer: CodeAnswer) => {
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if ("read" in answer) asked?.resolve(answer.read)
    else asked?.reject(new Error(answer.error))
  })
  const fail = (error: Error) => {
    ended ??= error
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  worker.on("error", fail)
  worker.on("exit", () => fail(new Error("The thread that reads code ended early")))
  return {
    read: (files) =>
      new Promise((resolve, reject) => {
        if (ended) return reject(ended)
        const id = next++
        waiting.set(id, { resolve, reject })
        worker.postMessage({ id, files } satisfies CodeOrder)
      }),
    stop: async () => {
      await worker.terminate()
    },
  }
}
