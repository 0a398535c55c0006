import { type ChildProcess, spawn } from "node:child_process"
import { killProcessTree } from "../git/run.ts"

export type ProgramRun = {
  program: string
  args: string[]
  env: Record<string, string | undefined>
  folder: string
  input: string
  limitMs: number
  signal?: AbortSignal | undefined
}

/** How it ended; `stopped` says what ended it early. */
export type ProgramEnd = {
  code: number | null
  stdout: string
  stderr: string
  stopped?: "time" | "size" | "cancelled"
}

const MAX_BYTES = 16 << 20
/** How much of stderr to keep: its end says what went wrong. */
const MAX_WORDS = 64 << 10

/**
 * Runs another vendor's program: never through a shell, in its own session so that nothing can ask on the terminal. It is killed
 * with everything that it started if it takes too long or prints too much, and when dex itself is stopped. Rejects with Node's
 * own error if it cannot be started.
 */
export function runProgram({ program, args, env, folder, input, limitMs, signal }: ProgramRun): Promise<ProgramEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: folder,
      env,
      detached: process.platform !== "win32",
      windowsHide: true,
      stdio: ["pipe", "pipe", "pipe"],
    })
    // If it ends before it has read everything, its exit code says why.
    child.stdin.on("error", () => {}).end(input)
    let stopped: ProgramEnd["stopped"]
    const stop = (why: ProgramEnd["stopped"]) => {
      stopped ??= why
      killProcessTree(child)
      // A process that has left its session may survive and keep these open: do not wait for it.
      child.stdout.destroy()
      child.stderr.destroy()
    }
    const release = endWithUs(child)
    const timer = setTimeout(() => stop("time"), limitMs)
    const cancel = () => stop("cancelled")
    signal?.addEventListener("abort", cancel, { once: true })
    if (signal?.aborted) cancel()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", cancel)
      release()
    }
    const chunks: Buffer[] = []
    let bytes = 0
    child.stdout.on("data", (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_BYTES) stop("size")
      else chunks.push(chunk)
    })
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-MAX_WORDS)
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

/** All running children. A signal reaches the complete process, so there is one list and one listener. */
const running = new Set<ChildProcess>()

/** In its own session it would continue without us: Ctrl-C, and anything else that ends dex, must end it too. */
function endWithUs(child: ChildProcess): () => void {
  if (running.size === 0) {
    process.on("exit", killAll)
    for (const signal of SIGNALS) process.on(signal, heard)
  }
  running.add(child)
  return () => {
    if (!running.delete(child) || running.size > 0) return
    process.off("exit", killAll)
    for (const signal of SIGNALS) process.off(signal, heard)
  }
}

function killAll(): void {
  for (const child of running) killProcessTree(child)
}

/** If there is no other listener for the signal, do what it does by default. */
function heard(signal: NodeJS.Signals): void {
  killAll()
  if (process.listenerCount(signal) > 1) return
  process.off(signal, heard)
  process.kill(process.pid, signal)
}
