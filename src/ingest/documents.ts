import { messageOf } from "../core/error.ts"
import { listDocuments } from "../documents/files.ts"
import { redactName } from "../redact/name.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { Collection, HistoryWriter, UnitMark } from "../store/history/store.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startProcess } from "../subprocess/process.ts"
import {
  DOCUMENTS_VERSION,
  type DocumentOrder,
  documentKey,
  documentStampOf,
  type ReadDocument,
  storedName,
} from "./read-document.ts"

export type CollectionReport = {
  name: string
  documents: number
  /** The number of documents that are new, or whose content has changed since the last sync. */
  changed: number
  removed: number
  skipped: { path: string; reason: string }[]
  complete: boolean
}

type DocumentOptions = {
  signal?: AbortSignal
  onProgress?: (done: number, total: number) => void
}

/**
 * Updates a collection's documents in the history: writes those whose content changed, and removes those that no longer exist.
 */
export async function syncCollection(
  store: HistoryWriter,
  collection: Collection,
  { signal, onProgress }: DocumentOptions = {},
): Promise<CollectionReport> {
  const listing = await listDocuments(collection.root, signal ? { signal } : {}).catch((error: unknown) =>
    messageOf(error),
  )
  if (typeof listing === "string") return reportMissing(store, collection, listing)
  const { only } = collection
  const files = listing.files.filter(({ path }) => only === undefined || path === only || storedName(path) === only)
  const skipped = listing.skipped.map(({ path, reason }) => ({ path: storedName(path), reason }))
  if (only !== undefined) skipped.length = 0
  const knownUnits = await store.knownUnits("docs")
  const report: CollectionReport = {
    name: collection.name,
    documents: files.length,
    changed: 0,
    removed: 0,
    skipped,
    complete: true,
  }
  // Removes documents before it adds any, because an older version may have stored a document under a name that contains a
  // secret. That document is then stored again.
  const present = new Set(files.map(({ path }) => documentKey(collection, path)))
  const prefix = `${collection.name}/`
  const missingKeys = [...knownUnits.keys()].filter((key) => key.startsWith(prefix) && !present.has(key))
  report.removed = await store.removeDocuments(missingKeys)
  const requests = files.flatMap((file) =>
    readRequestFor(collection, file, knownUnits.get(documentKey(collection, file.path))),
  )
  const reader = openDocumentReader(requests.reduce((sum, { file }) => sum + file.size, 0))
  const startReading = (order: DocumentOrder | undefined) => {
    const reading = order && reader.read(order)
    reading?.catch(() => {}) // awaited in the next round
    return reading
  }
  try {
    // One document is read while the previous one is stored.
    let next = startReading(requests[0])
    for (let i = 0; next; i++) {
      if (signal?.aborted) {
        report.complete = false
        break
      }
      const [outcome] = await Promise.allSettled([next])
      next = startReading(requests[i + 1])
      try {
        if (outcome.status === "rejected") throw outcome.reason
        if (outcome.value) report.changed += (await store.writeUnit(outcome.value)).changed
      } catch (error) {
        skipped.push({ path: storedName(requests[i]!.file.path), reason: messageOf(error) })
      }
      onProgress?.(files.length - requests.length + i + 1, files.length)
    }
  } finally {
    await reader.close()
  }
  return report
}

/** Reports a collection's folder that cannot be read. It may come back, so nothing is removed. */
async function reportMissing(
  store: HistoryWriter,
  { name, root }: Collection,
  reason: string,
): Promise<CollectionReport> {
  const { documents } = await store.documentsIn(name)
  return { name, documents, changed: 0, removed: 0, skipped: [{ path: redactName(root), reason }], complete: false }
}

/** Returns the order to read a file, or nothing if the file cannot have changed. */
function readRequestFor(
  collection: Collection,
  file: DocumentOrder["file"],
  before: UnitMark | undefined,
): DocumentOrder[] {
  if (before?.connector_version !== DOCUMENTS_VERSION || before.redaction_version !== REDACTION_VERSION)
    return [{ collection, file }]
  const [stamp, hash] = before.stamp.split(" ")
  return stamp === documentStampOf(file) ? [] : [{ collection, file, hash }]
}

/** Reads documents: in this process if there are few, otherwise in a subprocess while this one stores. */
type DocumentReader = { read(order: DocumentOrder): Promise<ReadDocument>; close(): Promise<void> }

/** From this many bytes on, a subprocess reads: starting it costs as much as reading this much. */
const SUBPROCESS_FROM_BYTES = 256 << 10
/**
 * Heap limits. By default, V8 lets garbage grow to hundreds of megabytes before it collects. A document that needs more is read
 * again with the larger heap.
 */
const HEAP_FLAGS = ["--max-semi-space-size=16", "--max-old-space-size=96"]
const LARGE_HEAP_FLAGS = ["--max-semi-space-size=16", "--max-old-space-size=1024"]
/** The memory at which a process is replaced, in bytes. */
const MAX_PROCESS_BYTES = 200e6

function openDocumentReader(bytes: number): DocumentReader {
  return bytes < SUBPROCESS_FROM_BYTES ? inlineReader() : processReader()
}

function inlineReader(): DocumentReader {
  return {
    read: async (order) => (await import("./read-document.ts")).readSections(order),
    close: async () => {},
  }
}

/** Reads in a subprocess. A document that breaks the process is retried once, with a larger heap. */
function processReader(): DocumentReader {
  let current: Subprocess<DocumentOrder, ReadDocument> | undefined
  const stop = async () => {
    const stopping = current
    current = undefined
    await stopping?.kill() // it only reads, so it can be killed
  }
  const readIn = async (heap: string[], order: DocumentOrder) => {
    current ??= startProcess(subprocessFile("./document-process.ts", import.meta.url), { flags: heap })
    return current.ask(order)
  }
  return {
    read: async (order) => {
      if (current && current.memory() > MAX_PROCESS_BYTES) await stop()
      try {
        return await readIn(HEAP_FLAGS, order)
      } catch (error) {
        if (!isSubprocessEnded(error) || error.isNotStarted) throw error
        await stop()
        return await readIn(LARGE_HEAP_FLAGS, order).finally(stop)
      }
    },
    close: stop,
  }
}
