import { hasSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startProcess } from "../subprocess/process.ts"
import type { DocumentOrder, ReadDocument } from "./read-document.ts"

/** Reads documents: in this process if there are few, otherwise in a subprocess while this one stores. */
export type DocumentReader = { read(order: DocumentOrder): Promise<ReadDocument>; close(): Promise<void> }

/** Starting a process costs as much as reading about this many bytes. */
const SUBPROCESS_FROM_BYTES = 256 << 10
/** By default, V8 lets garbage grow to hundreds of megabytes before it collects. A document that needs more gets more. */
const HEAP = ["--max-semi-space-size=16", "--max-old-space-size=96"]
const LARGE_HEAP = ["--max-semi-space-size=16", "--max-old-space-size=1024"]
/** A process that has grown to this is replaced. */
const ENOUGH_MEMORY = 200e6

export function openDocumentReader(bytes: number): DocumentReader {
  return bytes < SUBPROCESS_FROM_BYTES ? inlineReader() : processReader()
}

function inlineReader(): DocumentReader {
  return {
    read: async (order) => (await import("./read-document.ts")).readSections(order),
    close: async () => {},
  }
}

/** A document that breaks the process is tried once more, with a larger heap. */
function processReader(): DocumentReader {
  let current: Subprocess<DocumentOrder, ReadDocument> | undefined
  const stop = async () => {
    const stopping = current
    current = undefined
    await stopping?.kill() // it only reads
  }
  const readIn = async (heap: string[], order: DocumentOrder) => {
    current ??= startProcess(subprocessFile("./document-process.ts", import.meta.url), { flags: heap })
    return current.ask(order)
  }
  return {
    read: async (order) => {
      if (current && current.memory() > ENOUGH_MEMORY) await stop()
      try {
        return await readIn(HEAP, order)
      } catch (error) {
        if (!hasSubprocessEnded(error) || error.isNotStarted) throw error
        await stop()
        return await readIn(LARGE_HEAP, order).finally(stop)
      }
    },
    close: stop,
  }
}
