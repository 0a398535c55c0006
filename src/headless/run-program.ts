import { type ChildProcess, spawn } from "node:child_process"
import { killProcessTree } from "../git/run.ts"

export type ProgramRun = {
  program: string
  args: string[]
  env: Record<string, string | undefined>
  folder: string
  input: string
  limitMs: number
  /** An open file that receives what the program prints to stdout, without a limit. If absent, it is returned. */
  outputFile?: number
  signal?: AbortSignal | undefined
}

/** How a program ended; `stopped` says why it was ended early. */
export type ProgramEnd = {
  code: number | null
  stdout: string
  stderr: string
  stopped?: "time" | "size" | "cancelled"
}

const MAX_OUTPUT_BYTES = 16 << 20
/** The maximum number of bytes of stderr to keep. The last bytes are kept, because the end says what went wrong. */
const MAX_STDERR_BYTES = 64 << 10

/**
 * Runs another vendor's program: never through a shell, and in its own session, so that it cannot ask questions on the terminal.
 * It is killed with everything that it started if it takes too long or prints too much, and when dex is stopped. Rejects with
 * Node's own error if it cannot be started.
 */
export function runProgram(run: ProgramRun): Promise<ProgramEnd> {
  const { program, args, env, folder, input, limitMs, outputFile = "pipe", signal } = run
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: folder,
      env,
      detached: process.platform !== "win32",
      windowsHide: true,
      stdio: ["pipe", outputFile, "pipe"],
    })
    // A write error means that the program ended before it read its whole input. Its exit code says why, so the error is ignored.
    child.stdin!.on("error", () => {}).end(input)
    let stopped: ProgramEnd["stopped"]
    const stop = (why: ProgramEnd["stopped"]) => {
      stopped ??= why
      killProcessTree(child)
      // A process that has left the session may survive and keep the pipes open, so dex closes them and does not wait.
      child.stdout?.destroy()
      child.stderr!.destroy()
    }
    const stopTracking = endWithDex(child)
    const timer = setTimeout(() => stop("time"), limitMs)
    const cancel = () => stop("cancelled")
    signal?.addEventListener("abort", cancel, { once: true })
    if (signal?.aborted) cancel()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", cancel)
      stopTracking()
    }
    const chunks: Buffer[] = []
    let bytes = 0
    child.stdout?.on("data", (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_OUTPUT_BYTES) stop("size")
      else chunks.push(chunk)
    })
    let stderr = ""
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-MAX_STDERR_BYTES)
    })
    child.on("error", (error) => {
      end()
      reject(error)
    })
    child.on("close", (code) => {
      end()
      resolve({ code, stdout: Buffer.concat(chunks).toString("utf8"), stderr, stopped })
    })
  })
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const

/** All running children. A signal must end all of them, so they share one set and one listener. */
const runningChildren = new Set<ChildProcess>()

/**
 * Ends the child when dex ends: in its own session it would otherwise continue after Ctrl-C. Call the returned function when the
 * child has ended.
 */
function endWithDex(child: ChildProcess): () => void {
  if (runningChildren.size === 0) {
    process.on("exit", killAll)
    for (const signal of SIGNALS) process.on(signal, onSignal)
  }
  runningChildren.add(child)
  return () => {
    if (!runningChildren.delete(child) || runningChildren.size > 0) return
    process.off("exit", killAll)
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

function killAll(): void {
  for (const child of runningChildren) killProcessTree(child)
}

/** Kills the children. If nothing else listens for the signal, it then ends dex, as it does by default. */
function onSignal(signal: NodeJS.Signals): void {
  killAll()
  if (process.listenerCount(signal) > 1) return
  process.off(signal, onSignal)
  process.kill(process.pid, signal)
}
