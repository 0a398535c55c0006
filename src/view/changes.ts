import { type FSWatcher, watch } from "node:fs"
import { basename, dirname } from "node:path"
import { formatRef } from "../core/ref.ts"
import type { Dex } from "../tools/context.ts"
import { learningOf } from "./learning.ts"

type UseDex = <T>(work: (dex: Dex) => Promise<T>) => Promise<T>

/** Changes within this many milliseconds are reported together. */
const COALESCED_MS = 250
const MAX_REPORTED_CHANGES = 200
const MAX_STREAMS = 24

/**
 * Reports to every open page which conversations changed and how much dex has learned, even if another process made the changes.
 * While a page is open, it watches the files of the history, the knowledge and the spending. A timer runs only after one of these
 * files has changed.
 */
export function createChanges(parts: {
  history: string
  knowledge: string
  spending: string
  use: UseDex
  log(line: string): void
  onOpen(isOpen: boolean): void
}) {
  const streams = new Set<ReadableStreamDefaultController<Uint8Array>>()
  let watcher: FSWatcher | undefined
  let timer: NodeJS.Timeout | undefined
  let learningTimer: NodeJS.Timeout | undefined
  let lastToken: string | undefined
  const send = (text: string) => {
    const bytes = new TextEncoder().encode(text)
    for (const stream of streams) {
      // Closes the stream of a page that does not read. When the page becomes active, it reconnects.
      if ((stream.desiredSize ?? 0) < -MAX_REPORTED_CHANGES) close(stream)
      else stream.enqueue(bytes)
    }
  }
  const reportChanges = async () => {
    timer = undefined
    try {
      const { refs, token } = await parts.use((dex) => changedSince(dex, lastToken))
      lastToken = token
      if (refs.length > 0) send(`data: ${JSON.stringify(refs)}\n\n`)
    } catch (error) {
      parts.log(`The changes could not be read: ${String(error)}`)
    }
  }
  const reportLearning = async () => {
    clearTimeout(learningTimer)
    learningTimer = undefined
    if (streams.size === 0) return
    try {
      send(`event: learning\ndata: ${JSON.stringify(await parts.use(learningOf))}\n\n`)
    } catch (error) {
      parts.log(`The progress of learning could not be read: ${String(error)}`)
    }
  }
  const startWatching = async () => {
    lastToken = await parts.use(async (dex) => (dex.hasHistory() ? (await dex.store()).revision() : undefined))
    const history = basename(parts.history)
    const learnedFiles = [basename(parts.knowledge), basename(parts.spending)]
    watcher = watch(dirname(parts.history), (_, file) => {
      if (file?.startsWith(history)) timer ??= setTimeout(reportChanges, COALESCED_MS)
      if (learnedFiles.some((name) => file?.startsWith(name)))
        learningTimer ??= setTimeout(reportLearning, COALESCED_MS)
    })
    watcher.on("error", (error) => parts.log(`Changes are no longer detected: ${error.message}`))
  }
  const close = (stream: ReadableStreamDefaultController<Uint8Array>) => {
    if (!streams.delete(stream)) return
    try {
      stream.close()
    } catch {
      // The page has already closed it.
    }
    if (streams.size > 0) return
    watcher?.close()
    watcher = undefined
    clearTimeout(timer)
    clearTimeout(learningTimer)
    timer = undefined
    learningTimer = undefined
    parts.onOpen(false)
  }
  return {
    open: (): Response => {
      if (streams.size >= MAX_STREAMS) return new Response(null, { status: 503, headers: { "Retry-After": "5" } })
      let ownController: ReadableStreamDefaultController<Uint8Array>
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          ownController = controller
          streams.add(controller)
          controller.enqueue(new TextEncoder().encode("retry: 2000\n\n"))
          if (streams.size > 1) return void reportLearning()
          parts.onOpen(true)
          // The watcher does not see what was learned before it started.
          void startWatching().then(reportLearning)
        },
        cancel: () => close(ownController),
      })
      return new Response(body, { headers: { "Content-Type": "text/event-stream; charset=utf-8" } })
    },
    reportLearning: () => void reportLearning(),
    stop: () => {
      for (const stream of streams) close(stream)
    },
  }
}

async function changedSince(
  dex: Dex,
  lastToken: string | undefined,
): Promise<{ refs: string[]; token: string | undefined }> {
  if (!dex.hasHistory()) return { refs: [], token: lastToken }
  const { changes, token } = await (await dex.store()).changes(lastToken, MAX_REPORTED_CHANGES)
  const refs = new Set(changes.flatMap(({ ref }) => (ref ? [formatRef(ref)] : [])))
  return { refs: [...refs], token }
}
