import { type ChildProcess, spawn } from "node:child_process"
import { onTestFinished } from "vitest"
import type { WatchEvent } from "../../src/watch/report.ts"
import { DEX } from "../support/dex.ts"

type Kind<E extends WatchEvent["event"]> = Extract<WatchEvent, { event: E }>

export type RunningWatch = {
  child: ChildProcess
  events: WatchEvent[]
  /** All events of one kind so far. */
  all<E extends WatchEvent["event"]>(kind: E): Kind<E>[]
  /** The next matching event of this kind that was not returned yet. */
  next<E extends WatchEvent["event"]>(kind: E, fits?: (event: Kind<E>) => boolean): Promise<Kind<E>>
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  stderr(): string
}

/** Starts the built `dex watch --json`, and resolves when it is watching and, by default, has looked at everything once. */
export async function startWatch(
  home: string,
  {
    cwd = home,
    env = {},
    before = [],
    looked = true,
  }: { cwd?: string; env?: Record<string, string>; before?: string[]; looked?: boolean } = {},
): Promise<RunningWatch> {
  const [program = process.execPath, ...args] = [...before, process.execPath, DEX, "watch", "--json"]
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env.PATH ?? "", HOME: home, TZ: "UTC", NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const events: WatchEvent[] = []
  const taken = new Set<WatchEvent>()
  let heard = () => {}
  let rest = ""
  let stderr = ""
  child.stderr!.on("data", (chunk) => {
    stderr += String(chunk)
  })
  child.stdout!.on("data", (chunk) => {
    const lines = (rest + String(chunk)).split("\n")
    rest = lines.pop()!
    events.push(...lines.map((line) => JSON.parse(line) as WatchEvent))
    heard()
  })
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }))
  })
  onTestFinished(async () => {
    child.kill("SIGKILL")
    await exited
  })
  const all = <E extends WatchEvent["event"]>(kind: E) =>
    events.filter((event): event is Kind<E> => event.event === kind)
  const next = <E extends WatchEvent["event"]>(kind: E, fits: (event: Kind<E>) => boolean = () => true) =>
    new Promise<Kind<E>>((resolve, reject) => {
      heard = () => {
        const found = all(kind).find((event) => !taken.has(event) && fits(event))
        if (!found) return
        taken.add(found)
        resolve(found)
      }
      heard()
      void exited.then(() => reject(new Error(`dex watch ended: ${stderr}`)))
    })
  const running = { child, events, all, next, exited, stderr: () => stderr }
  await next("watching")
  if (looked) await next("looked", (event) => event.source === undefined)
  return running
}
