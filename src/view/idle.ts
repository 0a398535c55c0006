/** Knows when nobody has asked for so long. */
export function createIdle(idleMs: number) {
  const { promise: ended, resolve: end } = Promise.withResolvers<"idle" | "stopped">()
  let usedAt = Date.now()
  let onIdle = () => {}
  let timer: NodeJS.Timeout
  const wait = (ms: number) => {
    timer = setTimeout(() => {
      const left = usedAt + idleMs - Date.now()
      if (left <= 0) onIdle()
      else wait(left)
    }, ms)
  }
  wait(idleMs)
  return {
    ended,
    used: () => {
      usedAt = Date.now()
    },
    onIdle: (then: () => void) => {
      onIdle = then
    },
    end: (why: "idle" | "stopped") => {
      clearTimeout(timer)
      end(why)
    },
  }
}
