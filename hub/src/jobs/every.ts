export type Job = {
  /** Runs the work now, or as soon as the current run ends. */
  runSoon(): void
  /** Stops, and waits for the current run. */
  stop(): Promise<void>
}

/** Runs `work` repeatedly, never twice at once. A failed run is reported to `onFailure`, and the next one starts normally. */
export function runEvery(intervalMs: number, work: () => Promise<unknown>, onFailure: (error: unknown) => void): Job {
  let running: Promise<void> | undefined
  let isStopped = false
  let isRequested = false
  const run = () => {
    if (isStopped) return
    if (running) {
      isRequested = true
      return
    }
    isRequested = false
    running = work()
      .then(() => {}, onFailure)
      .then(() => {
        running = undefined
        if (isRequested) run()
      })
  }
  const timer = setInterval(run, intervalMs)
  timer.unref()
  return {
    runSoon: run,
    stop: async () => {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}
