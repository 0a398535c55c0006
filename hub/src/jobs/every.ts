export type Job = {
  /** As soon as the last run has ended. */
  soon(): void
  /** Waits for the run that is under way. */
  stop(): Promise<void>
}

/** Runs `work` again and again, never twice at once. One that fails is logged by its name, and tried again the next time. */
export function runEvery(everyMs: number, work: () => Promise<unknown>, failed: (error: unknown) => void): Job {
  let running: Promise<void> | undefined
  let isStopped = false
  let isWanted = false
  const run = () => {
    if (isStopped) return
    if (running) {
      isWanted = true
      return
    }
    isWanted = false
    running = work()
      .then(() => {}, failed)
      .then(() => {
        running = undefined
        if (isWanted) run()
      })
  }
  const timer = setInterval(run, everyMs)
  timer.unref()
  return {
    soon: run,
    stop: async () => {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}
