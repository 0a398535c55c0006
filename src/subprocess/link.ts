import { DexError } from "../core/error.ts"

// The protocol between dex and its own threads and processes. An order gets one answer or error, and any number of events before
// it. The other side (serve.ts) carries out one order after another.

export type ToSubprocess<Order> = { id: number; order: Order } | { cancel: number } | { end: true }

export type FromSubprocess<Answer, Event> = { id: number } & (
  | { event: Event }
  | { answer: Answer; memory: number }
  | { error: string; code?: string; memory: number }
)

export type Subprocess<Order, Answer, Event = never> = {
  /**
   * Rejects with the order's error, or with SubprocessEnded. Aborting the signal cancels the order, which then answers with what
   * it has so far.
   */
  ask(order: Order, options?: { onEvent?: (event: Event) => void; signal?: AbortSignal | undefined }): Promise<Answer>
  /** Never rejects. Also resolves if the subprocess could not be started. */
  ended: Promise<SubprocessEnded>
  hasEnded(): boolean
  /** The memory of a process when it last answered, in bytes; 0 for a thread. */
  memory(): number
  /** Cancels the current order, and resolves when the subprocess has ended. */
  end(): Promise<void>
  /** Ends the subprocess immediately. For subprocesses that only read, or whose every write is a transaction. */
  kill(): Promise<void>
}

export class SubprocessEnded extends Error {
  override name = "SubprocessEnded"
  /**
   * True if the subprocess could not be started: the system had no room for it, or there is no such program. The order is not to
   * blame.
   */
  readonly isNotStarted: boolean
  /** The code of the error that ended a thread, such as ERR_WORKER_OUT_OF_MEMORY. */
  readonly code: string | undefined

  constructor(how: string, { isNotStarted = false, cause }: { isNotStarted?: boolean; cause?: unknown } = {}) {
    super(how, { cause })
    this.isNotStarted = isNotStarted
    const { code } = (cause ?? {}) as { code?: unknown }
    this.code = typeof code === "string" ? code : undefined
  }
}

/** Checks the name, because the bundle may contain this class in more than one file. */
export function isSubprocessEnded(error: unknown): error is SubprocessEnded {
  return error instanceof Error && error.name === "SubprocessEnded"
}

/** A thread or a process, as this side sees it. */
type Channel = { post(message: object): void; kill(): void }

type Waiting<Answer, Event> = {
  onEvent: ((event: Event) => void) | undefined
  resolve(answer: Answer): void
  reject(error: Error): void
}

export function createLink<Order, Answer, Event>(
  open: (on: { message(message: FromSubprocess<Answer, Event>): void; ended(error: SubprocessEnded): void }) => Channel,
): Subprocess<Order, Answer, Event> {
  const waiting = new Map<number, Waiting<Answer, Event>>()
  const { promise: ended, resolve: end } = Promise.withResolvers<SubprocessEnded>()
  let over: SubprocessEnded | undefined
  let next = 0
  let memory = 0
  const channel = open({
    message: (message) => {
      const one = waiting.get(message.id)
      if ("event" in message) return one?.onEvent?.(message.event)
      memory = message.memory
      waiting.delete(message.id)
      if ("answer" in message) one?.resolve(message.answer)
      else
        one?.reject(message.code === undefined ? new Error(message.error) : new DexError(message.code, message.error))
    },
    ended: (error) => {
      over ??= error
      const left = [...waiting.values()]
      waiting.clear()
      for (const { reject } of left) reject(over)
      end(over)
    },
  })
  const post = (message: ToSubprocess<Order>) => {
    if (!over) channel.post(message)
  }
  return {
    ended,
    hasEnded: () => over !== undefined,
    memory: () => memory,
    ask: (order, { onEvent, signal } = {}) => {
      if (over) return Promise.reject(over)
      const id = next++
      const cancel = () => post({ cancel: id })
      const { promise, resolve, reject } = Promise.withResolvers<Answer>()
      try {
        post({ id, order })
      } catch (error) {
        return Promise.reject(error) // something in the order cannot be sent, such as a function
      }
      waiting.set(id, { onEvent, resolve, reject })
      if (signal?.aborted) cancel()
      signal?.addEventListener("abort", cancel)
      return promise.finally(() => signal?.removeEventListener("abort", cancel))
    },
    end: async () => {
      post({ end: true })
      await ended
    },
    kill: async () => {
      if (!over) channel.kill()
      await ended
    },
  }
}

/**
 * The entry file of a thread or process. `path` is relative to the caller's source file. In the bundle, all entry files are next
 * to the first file, and callers are there or in cold/.
 */
export function subprocessFile(path: `./${string}.ts`, callerUrl: string): URL {
  if (callerUrl.endsWith(".ts")) return new URL(path, callerUrl)
  const folder = /\/cold\/[^/]+$/.test(callerUrl) ? "../" : "./"
  return new URL(folder + path.slice("./".length, -".ts".length).concat(".js"), callerUrl)
}
