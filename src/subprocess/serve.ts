import { parentPort } from "node:worker_threads"
import { isDexError, messageOf } from "../core/error.ts"
import type { FromSubprocess, ToSubprocess } from "./link.ts"

export type OrderContext<Event> = {
  emit(event: Event): void
  /** Aborted if the order was cancelled, or if this thread or process must end. */
  signal: AbortSignal
}

/**
 * Serves the other side of a link, in a thread or a process. Carries out one order after another until it receives `end` or its
 * parent is gone. After that, the current order of a process may take up to `endWithinMs`; a thread finishes its order.
 */
export function serveOrders<Order, Answer, Event = never>(
  answer: (order: Order, context: OrderContext<Event>) => Answer | Promise<Answer>,
  { endWithinMs = 0 }: { endWithinMs?: number } = {},
): void {
  const abortControllers = new Map<number, AbortController>()
  let lastOrder: Promise<void> = Promise.resolve()
  let isEnding = false
  const send = (message: FromSubprocess<Answer, Event>): Promise<void> =>
    new Promise((resolve) => {
      if (!parentPort && !process.connected) return resolve()
      if (!parentPort) return void process.send!(message, () => resolve())
      parentPort.postMessage(message)
      resolve()
    })
  const carryOut = async (id: number, order: Order, { signal }: AbortController) => {
    let result: { answer: Answer } | { error: string; code?: string }
    try {
      result = { answer: await answer(order, { signal, emit: (event) => void send({ id, event }) }) }
    } catch (error) {
      result = { error: messageOf(error), code: isDexError(error) ? error.code : undefined }
    }
    abortControllers.delete(id)
    await send({ id, memory: parentPort ? 0 : process.memoryUsage.rss(), ...result })
  }
  const end = () => {
    if (isEnding) return
    isEnding = true
    const isBusy = abortControllers.size > 0
    for (const abortController of abortControllers.values()) abortController.abort()
    // Exits only after the databases are closed: a thread that ends while it uses one crashes the process.
    lastOrder.then(() => setImmediate(() => process.exit(0)))
    if (!isBusy || parentPort) return
    // Killing this process and its threads is safe, because every write is a transaction.
    if (endWithinMs === 0) process.exit(0)
    setTimeout(() => process.kill(process.pid, "SIGKILL"), endWithinMs)
  }
  const receive = (message: ToSubprocess<Order>) => {
    if ("end" in message) return end()
    if ("cancel" in message) return abortControllers.get(message.cancel)?.abort()
    if (isEnding) return
    const abortController = new AbortController()
    abortControllers.set(message.id, abortController)
    lastOrder = lastOrder.then(() => carryOut(message.id, message.order, abortController))
  }
  if (parentPort) return void parentPort.on("message", receive)
  // Ctrl-C and the closing of a terminal signal this process too, but the parent process decides when it ends.
  process.on("SIGINT", () => {})
  process.on("SIGHUP", () => {})
  process.on("SIGTERM", end)
  process.on("disconnect", end)
  process.on("message", receive)
}
