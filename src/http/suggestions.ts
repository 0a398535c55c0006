import { messageOf as bodyOf } from "../deliver/body.ts"
import type { Suggestions } from "../store/suggestions.ts"

export type StreamParts = {
  /** Undefined while nothing was ever kept. */
  suggestions(): Suggestions | undefined
  /** False for a project that is answered only inside itself. */
  mayLeave(project: string): Promise<boolean>
  log(line: string): void
}

const LOOK_EVERY_MS = 250
const ALIVE_EVERY_MS = 15_000
const AGAIN_AFTER_MS = 2_000
const MOST_STREAMS = 32
const AT_ONCE = 100

/**
 * Streams what subscriptions with `deliver: sse` are told, as server-sent events. Every event has the suggestion's number
 * as its id: a client that comes back with Last-Event-ID gets all after it, one that comes without gets what waits.
 * `?subscription=a,b` names some of them.
 */
export function createStreams(parts: StreamParts) {
  let open = 0
  return async (request: Request): Promise<Response> => {
    const headers = { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" }
    if (request.method === "HEAD") return new Response(null, { headers })
    const last = request.headers.get("last-event-id")
    if (last !== null && !/^\d{1,15}$/.test(last))
      return new Response("Last-Event-ID must be the id of an event.\n", { status: 400 })
    if (open >= MOST_STREAMS)
      return new Response("Too many streams are open.\n", { status: 503, headers: { "Retry-After": "5" } })
    const named = new URL(request.url).searchParams.get("subscription")?.split(",").filter(Boolean)
    open++
    let timer: NodeJS.Timeout | undefined
    let ended = false
    const end = () => {
      if (ended) return
      ended = true
      open--
      clearTimeout(timer)
    }
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const say = (text: string) => controller.enqueue(new TextEncoder().encode(text))
        const reader = createReader(parts, named, last === null ? undefined : Number(last))
        let spoke = performance.now()
        say(`retry: ${AGAIN_AFTER_MS}\n\n`)
        const look = async () => {
          try {
            // Whoever does not read is not written to; it all waits in the database.
            const found = (controller.desiredSize ?? 0) > -64 ? await reader.next() : []
            if (ended) return
            for (const { event, sent } of found) {
              say(event)
              sent()
              spoke = performance.now()
            }
            if (performance.now() - spoke > ALIVE_EVERY_MS) {
              say(":\n\n")
              spoke = performance.now()
            }
          } catch (error) {
            parts.log(`A stream of suggestions ended: ${error instanceof Error ? error.message : String(error)}`)
            if (!ended) controller.close()
            return end()
          }
          if (!ended) timer = setTimeout(look, LOOK_EVERY_MS)
        }
        void look()
      },
      cancel: end,
    })
    return new Response(body, { headers })
  }
}

type Event = { event: string; sent(): void }

/** Finds what is new since it last looked; looks only where the file has changed. */
function createReader({ suggestions, mayLeave }: StreamParts, named: string[] | undefined, last: number | undefined) {
  let after = last
  /** Up to here, a client that comes for the first time gets only what waits. */
  let known = 0
  let version: number | undefined
  return {
    next: async (): Promise<Event[]> => {
      const kept = suggestions()
      const now = kept?.version()
      if (!kept || now === version) return []
      const wanted = new Set(
        kept
          .subscriptions()
          .filter(({ id, deliver, enabled }) => deliver === "sse" && enabled && (named?.includes(id) ?? true))
          .map(({ id }) => id),
      )
      if (after === undefined) {
        known = kept.list({ limit: 1 })[0]?.seq ?? 0
        const [waiting] = kept.list({ status: "pending", after: 0, limit: 1 })
        after = waiting ? waiting.seq - 1 : known
      }
      const next = kept.list({ after, limit: AT_ONCE })
      after = next.at(-1)?.seq ?? after
      if (next.length < AT_ONCE) version = now
      const events: Event[] = []
      for (const one of next) {
        if (one.subscription === undefined || !wanted.has(one.subscription)) continue
        if (one.seq <= known && one.status !== "pending") continue
        if (!(await mayLeave(one.moment.project))) continue
        events.push({
          event: `id: ${one.seq}\nevent: suggestion\ndata: ${bodyOf(one)}\n\n`,
          sent: () => void (one.status === "pending" && kept.setStatus(one.id, "shown")),
        })
      }
      return events
    },
  }
}
