import { setImmediate as immediate, setTimeout as pause } from "node:timers/promises"
import { messageOf } from "../../core/error.ts"
import type { StoredSuggestion, Suggestions } from "../../store/suggestions/suggestions.ts"
import { webhookBody } from "../../suggest/deliver/body.ts"

export type StreamParts = {
  /** Undefined if nothing was ever stored. */
  suggestions(): Suggestions | undefined
  /** False for a project whose data is shown only inside that project. */
  mayBeSent(project: string): Promise<boolean>
  log(line: string): void
}

const CHECK_INTERVAL_MS = 250
const KEEP_ALIVE_MS = 15_000
const RETRY_MS = 2_000
const MAX_STREAMS = 32
const BATCH_SIZE = 10

/**
 * Streams the suggestions of subscriptions with `deliver: sse`, as server-sent events. The id of each event is the suggestion's
 * number: a client that returns with Last-Event-ID gets everything after it; one without gets what is pending.
 * `?subscription=a,b` selects some subscriptions. Nothing is read ahead for a slow client: its suggestions wait in the database.
 */
export function createStreams(parts: StreamParts) {
  let openStreams = 0
  return async (request: Request): Promise<Response> => {
    const headers = { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" }
    if (request.method === "HEAD") return new Response(null, { headers })
    const lastEventId = request.headers.get("last-event-id")
    if (lastEventId !== null && !/^\d{1,15}$/.test(lastEventId))
      return new Response("Last-Event-ID must be the id of an event.\n", { status: 400 })
    if (openStreams >= MAX_STREAMS)
      return new Response("Too many streams are open. Close one, or try again in a few seconds.\n", {
        status: 503,
        headers: { "Retry-After": "5" },
      })
    const subscriptions = new URL(request.url).searchParams.get("subscription")?.split(",").filter(Boolean)
    const reader = createReader(parts, subscriptions, lastEventId === null ? undefined : Number(lastEventId))
    const abort = new AbortController()
    openStreams++
    const end = () => {
      if (abort.signal.aborted) return
      openStreams--
      abort.abort()
    }
    const write = (controller: ReadableStreamDefaultController<Uint8Array>, text: string) =>
      controller.enqueue(new TextEncoder().encode(text))
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => write(controller, `retry: ${RETRY_MS}\n\n`),
        pull: async (controller) => {
          try {
            // A request for the next event means that the previous one was passed on.
            reader.markShown()
            const event = await nextEvent(reader, abort.signal)
            if (event !== undefined) write(controller, event)
          } catch (error) {
            if (abort.signal.aborted) return
            parts.log(`A stream of suggestions ended: ${messageOf(error)}`)
            controller.close()
            end()
          }
        },
        cancel: end,
      },
      { highWaterMark: 0 }, // no event is created before it is requested
    )
    return new Response(body, { headers })
  }
}

/** Waits for the next event. Sends an empty comment now and then, so that both sides notice a broken connection. */
async function nextEvent(reader: Reader, signal: AbortSignal): Promise<string | undefined> {
  const keepAliveAt = performance.now() + KEEP_ALIVE_MS
  while (!signal.aborted) {
    const event = await reader.next()
    if (signal.aborted) break
    if (event !== undefined) return event
    if (performance.now() > keepAliveAt) return ":\n\n"
    await pause(CHECK_INTERVAL_MS, undefined, { signal })
  }
  return undefined
}

type Reader = {
  /** The next event, if there already is one. */
  next(): Promise<string | undefined>
  /** Marks the suggestion of the last event as shown. */
  markShown(): void
}

/** Finds what is new since the last call. Reads only if the file has changed. */
function createReader(
  { suggestions, mayBeSent }: StreamParts,
  subscriptions: string[] | undefined,
  lastEventId: number | undefined,
): Reader {
  let after = lastEventId
  /** Of the suggestions up to this number, a new client gets only those that are pending. */
  let newestAtStart = 0
  let version: number | undefined
  /** Only ids are kept, because suggestions may be forgotten before they are sent. */
  let nextIds: string[] = []
  let lastSentId: string | undefined
  /** Reads the next suggestions from the database. Returns false if there is nothing new. */
  const readNew = (store: Suggestions): boolean => {
    const currentVersion = store.version()
    if (currentVersion === version) return false
    if (after === undefined) {
      newestAtStart = store.list({ limit: 1 })[0]?.seq ?? 0
      const [firstPending] = store.list({ status: "pending", after: 0, limit: 1 })
      after = firstPending ? firstPending.seq - 1 : newestAtStart
    }
    const batch = store.list({ after, limit: BATCH_SIZE })
    after = batch.at(-1)?.seq ?? after
    if (batch.length < BATCH_SIZE) version = currentVersion
    nextIds = batch.filter(isSelected).map(({ id }) => id)
    return batch.length > 0
  }
  const isSelected = ({ subscription, seq, status }: StoredSuggestion) =>
    subscription !== undefined &&
    (subscriptions?.includes(subscription) ?? true) &&
    (seq > newestAtStart || status === "pending")
  const isStreamed = (store: Suggestions, { subscription }: StoredSuggestion) =>
    store.subscriptions().some(({ id, deliver, enabled }) => id === subscription && deliver === "sse" && enabled)
  return {
    markShown: () => {
      const suggestion = lastSentId === undefined ? undefined : suggestions()?.get(lastSentId)
      lastSentId = undefined
      if (suggestion?.status === "pending") suggestions()?.setStatus(suggestion.id, "shown")
    },
    next: async () => {
      const store = suggestions()
      while (store && (nextIds.length > 0 || readNew(store))) {
        const suggestion = store.get(nextIds.shift() ?? "")
        if (
          suggestion &&
          isSelected(suggestion) &&
          isStreamed(store, suggestion) &&
          (await mayBeSent(suggestion.moment.project))
        ) {
          lastSentId = suggestion.id
          return `id: ${suggestion.seq}\nevent: suggestion\ndata: ${webhookBody(suggestion)}\n\n`
        }
        await immediate() // thousands of suggestions for other clients must not block the process
      }
      return undefined
    },
  }
}
