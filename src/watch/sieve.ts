import { posix } from "node:path"

export type Sieve = {
  /** A changed file, from the project's folder on. */
  take(name: string): void
  /** What is ignored may be other than it was. */
  forget(): void
  close(): void
}

/** More than this at once is a checkout or a build: it cannot be told what of it matters. */
const MOST_AT_ONCE = 10_000
/** Forgetting what is known costs one question more. */
const MOST_KNOWN = 20_000

/**
 * Lets through what git does not ignore. It is asked of git once for all names that came together, and remembered: a log
 * that a program writes all the time costs nothing. `ask` gives the ignored ones, or undefined where git cannot say: then
 * all of them pass. `pass` gets undefined where they were too many.
 */
export function createSieve(
  ask: (names: string[]) => Promise<ReadonlySet<string> | undefined>,
  pass: (names: string[] | undefined) => void,
): Sieve {
  let known = new Map<string, boolean>()
  let waiting = new Set<string>()
  let asking = false
  let closed = false
  const forget = () => {
    known = new Map() // another one, so that an answer on its way is not kept either
  }
  const askAll = async () => {
    if (asking || closed || waiting.size === 0) return
    const names = [...waiting]
    waiting = new Set()
    asking = true
    const memory = known
    const ignored = await ask(names)
    asking = false
    if (closed) return
    if (memory.size + names.length > MOST_KNOWN) memory.clear()
    if (ignored) for (const name of names) memory.set(name, ignored.has(name))
    const passed = names.filter((name) => !ignored?.has(name))
    if (passed.length > 0) pass(passed)
    void askAll()
  }
  return {
    forget,
    take: (name) => {
      if (posix.basename(name) === ".gitignore") forget()
      const isIgnored = known.get(name)
      if (isIgnored === true) return
      if (isIgnored === false) return pass([name])
      if (waiting.size >= MOST_AT_ONCE) {
        waiting.clear()
        return pass(undefined)
      }
      if (waiting.size === 0) setImmediate(() => void askAll()) // with what comes in the same moment
      waiting.add(name)
    },
    close: () => {
      closed = true
    },
  }
}
