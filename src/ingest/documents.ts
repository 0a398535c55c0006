import { messageOf } from "../core/error.ts"
import { listDocuments } from "../documents/files.ts"
import { redactName } from "../redact/redact.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { Collection, HistoryWriter, UnitMark } from "../store/history/store.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startProcess } from "../subprocess/process.ts"
import {
  DOCUMENTS_VERSION,
  type DocumentRequest,
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
  // Remove documents before adding any. An older version of dex may have stored a document under a name that contains a secret:
  // it is removed here, and then stored under its redacted name.
  const present = new Set(files.map(({ path }) => documentKey(collection, path)))
  const prefix = `${collection.name}/`
  const missingKeys = [...knownUnits.keys()].filter((key) => key.startsWith(prefix) && !present.has(key))
  report.removed = await store.removeDocuments(missingKeys)
  const requests = files.flatMap((file) =>
    readRequestFor(collection, file, knownUnits.get(documentKey(collection, file.path))),
  )
  const reader = openDocumentReader(requests.reduce((sum, { file }) => sum + file.size, 0))
  const startReading = (request: DocumentRequest | undefined) => {
    const reading = request && reader.read(request)
    reading?.catch(() => {}) // the next round awaits the result
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

/** Reports that a collection's folder cannot be read. Removes nothing, because the folder may come back. */
async function reportMissing(
  store: HistoryWriter,
  { name, root }: Collection,
  reason: string,
): Promise<CollectionReport> {
  const { documents } = await store.documentsIn(name)
  return { name, documents, changed: 0, removed: 0, skipped: [{ path: redactName(root), reason }], complete: false }
}

/** Returns the request to read a file, or an empty list if the file has not changed since it was stored. */
function readRequestFor(
  collection: Collection,
  file: DocumentRequest["file"],
  before: UnitMark | undefined,
): DocumentRequest[] {
  if (before?.connector_version !== DOCUMENTS_VERSION || before.redaction_version !== REDACTION_VERSION)
    return [{ collection, file }]
  const [stamp, hash] = before.stamp.split(" ")
  return stamp === documentStampOf(file) ? [] : [{ collection, file, hash }]
}

/** Reads documents, either in this process or, if there is more to read, in a subprocess while this one stores. */
type DocumentReader = { read(request: DocumentRequest): Promise<ReadDocument>; close(): Promise<void> }

/** Documents are read in a subprocess if they total at least this many bytes: starting one takes about as long as reading them. */
const MIN_SUBPROCESS_BYTES = 256 << 10
/**
 * Heap limits. By default, V8 lets garbage grow to hundreds of megabytes before it collects. A document that needs more is read
 * again with the larger heap.
 */
const HEAP_FLAGS = ["--max-semi-space-size=16", "--max-old-space-size=96"]
const LARGE_HEAP_FLAGS = ["--max-semi-space-size=16", "--max-old-space-size=1024"]
/** A process that uses more than this many bytes of memory is replaced. */
const MAX_PROCESS_BYTES = 200e6

function openDocumentReader(bytes: number): DocumentReader {
  return bytes < MIN_SUBPROCESS_BYTES ? inlineReader() : processReader()
}

function inlineReader(): DocumentReader {
  return {
    read: async (request) => (await import("./read-document.ts")).readSections(request),
    close: async () => {},
  }
}

/** Reads in a subprocess. A document that breaks the process is retried once, with a larger heap. */
function processReader(): DocumentReader {
  let current: Subprocess<DocumentRequest, ReadDocument> | undefined
  const stop = async () => {
    const stopping = current
    current = undefined
    await stopping?.kill() // the process only reads, so it can be killed
  }
  const readIn = async (heap: string[], request: DocumentRequest) => {
    current ??= startProcess(subprocessFile("./document-process.ts", import.meta.url), { flags: heap })
    return current.ask(request)
  }
  return {
    read: async (request) => {
      if (current && current.memory() > MAX_PROCESS_BYTES) await stop()
      try {
        return await readIn(HEAP_FLAGS, request)
      } catch (error) {
        if (!isSubprocessEnded(error) || error.isNotStarted) throw error
        await stop()
        return await readIn(LARGE_HEAP_FLAGS, request).finally(stop)
      }
    },
    close: stop,
  }
}
