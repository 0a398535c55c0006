import type { ReadStream } from "node:tty"
import { type Key, lastKeys, readKeys } from "./keys.ts"

/** So long the rest of a key may take: behind it Escape stands alone. */
const ESCAPE_MS = 100

/** Calls `onKeys` with what is typed, until it is stopped. */
export function listenToKeys(input: ReadStream, onKeys: (keys: Key[]) => void): { pause(): void; resume(): void } {
  let rest = ""
  let waiting: NodeJS.Timeout | undefined
  let last: NodeJS.Immediate | undefined
  const stopWaiting = () => {
    clearTimeout(waiting)
    clearImmediate(last)
  }
  const take = (read: { keys: Key[]; rest: string }) => {
    rest = read.rest
    onKeys(read.keys)
  }
  const onData = (data: string) => {
    stopWaiting()
    take(readKeys(rest + data))
    // What arrived while dex was busy is read before the time counts as over.
    const end = () => (last = setImmediate(() => take(lastKeys(rest))))
    if (rest !== "") waiting = setTimeout(end, ESCAPE_MS)
  }
  input.setEncoding("utf8")
  return {
    pause: () => {
      stopWaiting()
      rest = ""
      input.off("data", onData)
      input.pause()
    },
    resume: () => {
      input.on("data", onData)
      input.resume()
    },
  }
}
