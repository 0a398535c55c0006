import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { messageOf } from "../core/error.ts"

/** Another process that answers orders, one after the other: what it takes in memory is given back when it is stopped. */
export type Apart<Order, Answer> = {
  /** Rejects with what the order threw, or when the process ended. */
  ask(order: Order): Promise<Answer>
  hasEnded(): boolean
  /** What it took in memory when it last answered, in bytes. */
  memory(): number
  /** It has nothing to lose: such a process reads, and never writes. */
  stop(): Promise<void>
}

/** The system had no room for the process: that says nothing of what it was to read. */
export class NotStarted extends Error {}

type Sent<Order> = { id: number; order: Order }
type Answered<Answer> = { id: number; memory: number } & ({ answer: Answer } | { error: string })

/** Source files run as they are in development; the bundle has its processes beside its first file. */
export function startApart<Order, Answer>(
  name: "code-process" | "document-process",
  args: string[],
  flags: string[],
): Apart<Order, Answer> {
  const development = import.meta.url.endsWith(".ts")
  const file = fileURLToPath(new URL(development ? `./${name}.ts` : `../${name}.js`, import.meta.url))
  const child = fork(file, args, {
    execArgv: flags,
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  })
  const waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>()
  let next = 0
  let memory = 0
  let ended: Error | undefined
  child.on("message", (answered: Answered<Answer>) => {
    const asked = waiting.get(answered.id)
    waiting.delete(answered.id)
    memory = answered.memory
    if ("error" in answered) asked?.reject(new Error(answered.error))
    else asked?.resolve(answered.answer)
  })
  const fail = (error: Error) => {
    ended ??= error
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  child.on("error", (error) =>
    fail(child.pid === undefined ? new NotStarted(`No process could be started: ${error.message}`) : error),
  )
  child.on("exit", () => fail(new Error("The process that reads ended early")))
  return {
    hasEnded: () => ended !== undefined,
    memory: () => memory,
    ask: (order) =>
      new Promise((resolve, reject) => {
        if (ended) return reject(ended)
        const id = next++
        waiting.set(id, { resolve, reject })
        child.send({ id, order } satisfies Sent<Order>, (error) => error && fail(error))
      }),
    stop: () => stopped(child),
  }
}

function stopped(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once("exit", () => resolve())
    child.kill("SIGKILL")
  })
}

/** The other side: answers orders until whoever started this process is gone. */
export function answerOrders<Order, Answer>(answer: (order: Order) => Promise<Answer>): void {
  process.on("disconnect", () => process.exit(0))
  process.on("message", async ({ id, order }: Sent<Order>) => {
    const said = await answer(order).then(
      (answer) => ({ answer }),
      (error: unknown) => ({ error: messageOf(error) }),
    )
    const answered: Answered<Answer> = { id, memory: process.memoryUsage.rss(), ...said }
    if (process.connected) process.send!(answered)
  })
}
