import { createDex } from "../app/dex.ts"
import { takeInstance } from "../watch/instance.ts"
import { watchAll } from "../watch/watch.ts"

type Start = { env: Record<string, string | undefined>; cwd: string; version: string }

/** While a page is open, what agents write is read as `dex watch` does; where one runs, it does it. */
export function createWatching(start: Start, log: (line: string) => void) {
  let stopping: AbortController | undefined
  let last: Promise<void> = Promise.resolve()
  const watchUntil = async (signal: AbortSignal) => {
    const dex = createDex(start)
    try {
      const instance = await takeInstance(dex.home)
      if (!instance) return
      try {
        await watchAll({
          dex,
          connectors: await dex.everyConnector(),
          signal,
          say: (event) => void (event.event === "problem" && log(event.message)),
        })
      } finally {
        instance.release()
      }
    } finally {
      dex.close()
    }
  }
  return {
    async set(isOpen: boolean): Promise<void> {
      if (isOpen === (stopping !== undefined)) return last
      stopping?.abort()
      stopping = isOpen ? new AbortController() : undefined
      const signal = stopping?.signal
      if (signal)
        last = last
          .then(() => (signal.aborted ? undefined : watchUntil(signal)))
          .catch((error: unknown) => log(String(error)))
      return last
    },
  }
}
