import { writeSync } from "node:fs"
import { dexHome } from "../config/home.ts"
import { messageOf } from "../core/error.ts"
import { logFailure } from "./hook-log.ts"
import { answerHook } from "./run.ts"

/** From the start of the process. Longer than this no agent waits for dex, unless its user gives it more. */
const HARD_STOP_MS = 250
/** Agents end a hook after a second. */
const MOST_MS = 900
/** Where nobody waits for it. */
const LATE_MS = 10_000
/** What an agent sends is small, but for a file that it is about to write. */
const MOST_INPUT = 4 << 20

/** `dex hook <source> <event>`: ends the process, always with 0. Whatever goes wrong, the agent's work goes on. */
export async function hookCommand([source = "", event = ""]: string[]): Promise<never> {
  const started = Date.now() - performance.now()
  const fail = (problem: string) => {
    try {
      logFailure(dexHome(process.env).dir, `${source} ${event}`, problem, Date.now())
    } catch {
      // No home is known: there is no place to say so.
    }
    process.exit(0)
  }
  const late = process.env.DEX_HOOK_LATE
  const limit = late === undefined ? limitOf(process.env.DEX_HOOK_MS) : LATE_MS
  const stop = () => fail(`stopped after ${limit} ms`)
  setTimeout(stop, Math.max(0, limit - performance.now()))
  process.on("uncaughtException", (error) => fail(messageOf(error)))
  try {
    const stdin = await readAll()
    if (stdin === undefined) return fail(`more than ${MOST_INPUT >> 20} MB were sent`)
    const said = await answerHook({
      source,
      event,
      stdin,
      env: process.env,
      now: Date.now(),
      started,
      left: () => limit - performance.now(),
      ...(late !== undefined && { late }),
    })
    // Work that cannot be interrupted may have taken longer than the timer was set to.
    if (performance.now() > limit) return stop()
    if (late !== undefined) (await import("./late.ts")).leave(late, said, Date.now())
    // Node's own stream for it takes longer to make than the text to write.
    else if (said !== "") writeSync(1, said)
    process.exit(0)
  } catch (error) {
    return fail(messageOf(error))
  }
}

function limitOf(asked: string | undefined): number {
  const ms = asked !== undefined && /^\d{1,4}$/.test(asked) ? Number(asked) : HARD_STOP_MS
  return Math.min(ms, MOST_MS)
}

/** Undefined where it is too much. It is read to its end all the same: an agent must not find its pipe broken. */
async function readAll(): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    bytes += (chunk as Buffer).length
    if (bytes <= MOST_INPUT) chunks.push(chunk as Buffer)
  }
  return bytes > MOST_INPUT ? undefined : Buffer.concat(chunks).toString("utf8")
}
