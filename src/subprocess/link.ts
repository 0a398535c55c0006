import { DexError } from "../core/error.ts"

// The protocol between dex and its own threads and processes. An order gets one answer or one error, and before that any number
// of events. The other side (serve.ts) carries out the orders one after another.

export type ToSubprocess<Order> = { id: number; order: Order } | { cancel: number } | { end: true }

export type FromSubprocess<Answer, Event> = { id: number } & (
  | { event: Event }
  | { answer: Answer; memory: number }
  | { error: string; code?: string; memory: number }
)

export type Subprocess<Order, Answer, Event = never> = {
  /**
   * Sends an order. Rejects with the order's error, or with SubprocessEnded. Aborting the signal cancels the order, which then
   * resolves with the results that it has so far.
   */
  ask(order: Order, options?: { onEvent?: (event: Event) => void; signal?: AbortSignal | undefined }): Promise<Answer>
  /** Resolves when the subprocess has ended, or if it could not be started. Never rejects. */
  ended: Promise<SubprocessEnded>
  hasEnded(): boolean
  /** Returns the amount of memory that a process used when it last answered, in bytes. Returns 0 for a thread. */
  memory(): number
  /** Cancels all orders, and resolves when the subprocess has ended. */
  end(): Promise<void>
  /** Ends the subprocess immediately. Use this only for subprocesses that only read, or that write only in transactions. */
  kill(): Promise<void>
}

export class SubprocessEnded extends Error {
  override name = "SubprocessEnded"
  /**
   * True if the subprocess could not be started, because the system had no room for it or the program does not exist. The order
   * did not cause the error.
   */
  readonly isNotStarted: boolean
  /** The code of the error that ended a thread, such as ERR_WORKER_OUT_OF_MEMORY. */
  readonly code: string | undefined

  constructor(message: string, { isNotStarted = false, cause }: { isNotStarted?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isNotStarted = isNotStarted
    const { code } = (cause ?? {}) as { code?: unknown }
    this.code = typeof code === "string" ? code : undefined
  }
}

/** Checks the error's name, because `instanceof` fails if the bundle contains this class in more than one file. */
export function isSubprocessEnded(error: unknown): error is SubprocessEnded {
  return error instanceof Error && error.name === "SubprocessEnded"
}

/** The connection to a thread or a process. */
type Channel = { post(message: object): void; kill(): void }

type WaitingOrder<Answer, Event> = {
  onEvent: ((event: Event) => void) | undefined
  resolve(answer: Answer): void
  reject(error: Error): void
}

export function createLink<Order, Answer, Event>(
  open: (on: { message(message: FromSubprocess<Answer, Event>): void; ended(error: SubprocessEnded): void }) => Channel,
): Subprocess<Order, Answer, Event> {
  const waitingOrders = new Map<number, WaitingOrder<Answer, Event>>()
  const { promise: ended, resolve: resolveEnded } = Promise.withResolvers<SubprocessEnded>()
  let endError: SubprocessEnded | undefined
  let nextId = 0
  let memory = 0
  const channel = open({
    message: (message) => {
      const waitingOrder = waitingOrders.get(message.id)
      if ("event" in message) return waitingOrder?.onEvent?.(message.event)
      memory = message.memory
      waitingOrders.delete(message.id)
      if ("answer" in message) waitingOrder?.resolve(message.answer)
      else
        waitingOrder?.reject(
          message.code === undefined ? new Error(message.error) : new DexError(message.code, message.error),
        )
    },
    ended: (error) => {
      endError ??= error
      const unanswered = [...waitingOrders.values()]
      waitingOrders.clear()
      for (const { reject } of unanswered) reject(endError)
      resolveEnded(endError)
    },
  })
  const post = (message: ToSubprocess<Order>) => {
    if (!endError) channel.post(message)
  }
  return {
    ended,
    hasEnded: () => endError !== undefined,
    memory: () => memory,
    ask: (order, { onEvent, signal } = {}) => {
      if (endError) return Promise.reject(endError)
      const id = nextId++
      const cancel = () => post({ cancel: id })
      const { promise, resolve, reject } = Promise.withResolvers<Answer>()
      try {
        post({ id, order })
      } catch (error) {
        return Promise.reject(error) // Something in the order, such as a function, cannot be sent.
      }
      waitingOrders.set(id, { onEvent, resolve, reject })
      if (signal?.aborted) cancel()
      signal?.addEventListener("abort", cancel)
      return promise.finally(() => signal?.removeEventListener("abort", cancel))
    },
    end: async () => {
      post({ end: true })
      await ended
    },
    kill: async () => {
      if (!endError) channel.kill()
      await ended
    },
  }
}

/**
 * Returns the URL of a thread's or process's entry file. `path` is relative to the caller's source file. In the bundle, all
 * entry files are in the main folder, and callers are there or in cold/.
 */
export function subprocessFile(path: `./${string}.ts`, callerUrl: string): URL {
  if (callerUrl.endsWith(".ts")) return new URL(path, callerUrl)
  const folder = /\/cold\/[^/]+$/.test(callerUrl) ? "../" : "./"
  return new URL(folder + path.slice("./".length, -".ts".length).concat(".js"), callerUrl)
}
