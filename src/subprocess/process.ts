import { fork, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { createLink, type Subprocess, SubprocessEnded } from "./link.ts"

type ProcessOptions = {
  args?: string[]
  /** Flags for Node, such as a limit on its heap. */
  flags?: string[]
  cwd?: string
  env?: Record<string, string | undefined>
  /** Receives the text that the process prints to stderr, piece by piece. */
  log?(text: string): void
}

/** Starts a process of dex that ends when this one ends. */
export function startProcess<Order, Answer, Event = never>(
  file: URL,
  { args = [], flags = [], cwd, env, log }: ProcessOptions = {},
): Subprocess<Order, Answer, Event> {
  return createLink((on) => {
    const child = fork(fileURLToPath(file), args, {
      execArgv: flags,
      serialization: "advanced",
      stdio: ["ignore", "ignore", log ? "pipe" : "ignore", "ipc"],
      cwd,
      env: env as NodeJS.ProcessEnv | undefined,
    })
    const fail = (error: Error) => {
      const isNotStarted = child.pid === undefined
      on.ended(new SubprocessEnded(error.message, { isNotStarted, cause: error }))
    }
    // stderr is missing without `log`, or if the system had no room for the process.
    child.stderr?.on("data", (chunk: Buffer) => log?.(chunk.toString().trimEnd()))
    child.on("message", on.message)
    child.on("error", fail)
    child.on("exit", (code, signal) => on.ended(new SubprocessEnded(signal ?? `exit ${code}`)))
    return {
      // If the process did not start, `fail` has already reported it.
      post: (message) => child.pid !== undefined && child.send(message, (error) => error && fail(error)),
      kill: () => void child.kill("SIGKILL"),
    }
  })
}

/**
 * Starts a Node program of dex that outlives this process. Resolves to true once the program runs, or to false if it cannot be
 * started. Calls `onEnd` in that case, and if the program ends with an error.
 */
export function startDetached(
  args: readonly string[],
  { cwd, env, onEnd }: { cwd: string; env?: NodeJS.ProcessEnv; onEnd?: (problem: string) => void },
): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd,
      detached: true,
      stdio: "ignore",
      windowsHide: true,
      env,
    })
    child.once("spawn", () => resolve(true))
    child.once("error", (error) => {
      onEnd?.(error.message)
      resolve(false)
    })
    if (onEnd)
      child.once("exit", (code, signal) => {
        if (code !== 0) onEnd(`it ended with ${signal ?? `exit code ${code}`}`)
      })
    child.unref()
  })
}
