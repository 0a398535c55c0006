import { setImmediate as immediate, setTimeout as pause } from "node:timers/promises"
import { messageOf } from "../../core/error.ts"
import type { StoredSuggestion, Suggestions } from "../../store/suggestions/suggestions.ts"
import { webhookBody } from "../../suggest/deliver/body.ts"

export type StreamParts = {
  /** Undefined if nothing was ever stored. */
  suggestions(): Suggestions | undefined
  /** False for a project whose data is shown only inside that project. */
  mayLeave(project: string): Promise<boolean>
  log(line: string): void
}

const LOOK_EVERY_MS = 250
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
  let open = 0
  return async (request: Request): Promise<Response> => {
    const headers = { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" }
    if (request.method === "HEAD") return new Response(null, { headers })
    const last = request.headers.get("last-event-id")
    if (last !== null && !/^\d{1,15}$/.test(last))
      return new Response("Last-Event-ID must be the id of an event.\n", { status: 400 })
    if (open >= MAX_STREAMS)
      return new Response("Too many streams are open.\n", { status: 503, headers: { "Retry-After": "5" } })
    const named = new URL(request.url).searchParams.get("subscription")?.split(",").filter(Boolean)
    const reader = createReader(parts, named, last === null ? undefined : Number(last))
    const closed = new AbortController()
    open++
    const end = () => {
      if (closed.signal.aborted) return
      open--
      closed.abort()
    }
    const say = (controller: ReadableStreamDefaultController<Uint8Array>, text: string) =>
      controller.enqueue(new TextEncoder().encode(text))
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => say(controller, `retry: ${RETRY_MS}\n\n`),
        pull: async (controller) => {
          try {
            // A request for the next event means that the previous one was passed on.
            reader.taken()
            const event = await nextEvent(reader, closed.signal)
            if (event !== undefined) say(controller, event)
          } catch (error) {
            if (closed.signal.aborted) return
            parts.log(`A stream of suggestions ended: ${messageOf(error)}`)
            controller.close()
            end()
          }
        },
        cancel: end,
      },
      { highWaterMark: 0 }, // no event is made before it is requested
    )
    return new Response(body, { headers })
  }
}

/** Waits for the next event. Sends an empty comment now and then, so that both sides notice a broken connection. */
async function nextEvent(reader: Reader, signal: AbortSignal): Promise<string | undefined> {
  const speakAt = performance.now() + KEEP_ALIVE_MS
  while (!signal.aborted) {
    const event = await reader.next()
    if (signal.aborted) break
    if (event !== undefined) return event
    if (performance.now() > speakAt) return ":\n\n"
    await pause(LOOK_EVERY_MS, undefined, { signal })
  }
  return undefined
}

type Reader = {
  /** The next event, if there already is one. */
  next(): Promise<string | undefined>
  /** Marks the last event as shown. */
  taken(): void
}

/** Finds what is new since the last call. Reads only if the file has changed. */
function createReader(
  { suggestions, mayLeave }: StreamParts,
  named: string[] | undefined,
  last: number | undefined,
): Reader {
  let after = last
  /** Up to this number, a new client gets only pending suggestions. */
  let newestAtStart = 0
  let version: number | undefined
  /** Only the ids, because suggestions may be forgotten before they are sent. */
  let found: string[] = []
  let given: string | undefined
  /** False if there is nothing new. */
  const look = (store: Suggestions): boolean => {
    const now = store.version()
    if (now === version) return false
    if (after === undefined) {
      newestAtStart = store.list({ limit: 1 })[0]?.seq ?? 0
      const [waiting] = store.list({ status: "pending", after: 0, limit: 1 })
      after = waiting ? waiting.seq - 1 : newestAtStart
    }
    const next = store.list({ after, limit: BATCH_SIZE })
    after = next.at(-1)?.seq ?? after
    if (next.length < BATCH_SIZE) version = now
    found = next.filter(isMeant).map(({ id }) => id)
    return next.length > 0
  }
  const isMeant = ({ subscription, seq, status }: StoredSuggestion) =>
    subscription !== undefined &&
    (named?.includes(subscription) ?? true) &&
    (seq > newestAtStart || status === "pending")
  const isStreamed = (store: Suggestions, { subscription }: StoredSuggestion) =>
    store.subscriptions().some(({ id, deliver, enabled }) => id === subscription && deliver === "sse" && enabled)
  return {
    taken: () => {
      const one = given === undefined ? undefined : suggestions()?.get(given)
      given = undefined
      if (one?.status === "pending") suggestions()?.setStatus(one.id, "shown")
    },
    next: async () => {
      const store = suggestions()
      while (store && (found.length > 0 || look(store))) {
        const one = store.get(found.shift() ?? "")
        if (one && isMeant(one) && isStreamed(store, one) && (await mayLeave(one.moment.project))) {
          given = one.id
          return `id: ${one.seq}\nevent: suggestion\ndata: ${webhookBody(one)}\n\n`
        }
        await immediate() // thousands of suggestions for other clients must not block the process
      }
      return undefined
    },
  }
}
