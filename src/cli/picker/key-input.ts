import type { ReadStream } from "node:tty"
import { type Key, lastKeys, readKeys } from "./keys.ts"

/** So long the rest of a key may take: behind it Escape stands alone. */
const ESCAPE_MS = 100

/** Calls `onKeys` with what is typed, until it is stopped. */
export function listenToKeys(input: ReadStream, onKeys: (keys: Key[]) => void): { pause(): void; resume(): void } {
  let rest = ""
  let waiting: NodeJS.Timeout | undefined
  const take = (read: { keys: Key[]; rest: string }) => {
    rest = read.rest
    onKeys(read.keys)
  }
  const onData = (data: string) => {
    clearTimeout(waiting)
    take(readKeys(rest + data))
    if (rest !== "") waiting = setTimeout(() => take(lastKeys(rest)), ESCAPE_MS)
  }
  input.setEncoding("utf8")
  return {
    pause: () => {
      clearTimeout(waiting)
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
