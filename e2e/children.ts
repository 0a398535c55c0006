import { spawn } from "node:child_process"
import { setTimeout as wait } from "node:timers/promises"

export type Ran = { code: number | null; stdout: string; stderr: string; ms: number }

/** The longest that one run of an agent may take. On a quiet machine it takes seconds. */
const MOST_MS = 180_000
/** What an agent starts behind its back (a sync, a server that is closing) ends by itself within this. */
const LEAVES_MS = 70_000

/** Runs a program to its end, with nothing on its input; what it leaves running is waited for, too. Never throws. */
export async function run(command: string[], options: { cwd: string; env: Record<string, string> }): Promise<Ran> {
  const started = Date.now()
  const child = spawn(command[0]!, command.slice(1), {
    ...options,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  })
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk
  })
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk
  })
  const timer = setTimeout(() => {
    stderr += `\nIt was stopped after ${MOST_MS / 1000} s.`
    killGroup(child.pid)
  }, MOST_MS)
  const code = await new Promise<number | null>((done) => {
    child.on("error", (error) => {
      stderr += error.message
      done(null)
    })
    child.on("close", done)
  })
  clearTimeout(timer)
  const ms = Date.now() - started
  if (!(await groupEnds(child.pid))) {
    stderr += `\nIt left processes running for ${LEAVES_MS / 1000} s; they were stopped.`
    killGroup(child.pid)
    return { code: null, stdout, stderr, ms }
  }
  return { code, stdout, stderr, ms }
}

async function groupEnds(pid: number | undefined): Promise<boolean> {
  const until = Date.now() + LEAVES_MS
  while (signalGroup(pid, 0)) {
    if (Date.now() > until) return false
    await wait(20)
  }
  return true
}

function killGroup(pid: number | undefined): void {
  signalGroup(pid, "SIGKILL")
}

/** False: there is no such group any more. */
function signalGroup(pid: number | undefined, signal: 0 | "SIGKILL"): boolean {
  if (pid === undefined) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}
