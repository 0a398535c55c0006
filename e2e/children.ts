import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { setTimeout as wait } from "node:timers/promises"

export type Ran = { code: number | null; stdout: string; stderr: string; ms: number }

/** The time limit for one run of an agent, which takes seconds on an idle machine. */
const MOST_MS = 180_000
/** The time in which processes that an agent leaves behind, such as a sync, must end. */
const LEAVES_MS = 70_000

/** Runs a program without input, and waits until it and every process that it left running have ended. Never throws. */
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

/** Returns false if the process group no longer exists. */
function signalGroup(pid: number | undefined, signal: 0 | "SIGKILL"): boolean {
  if (pid === undefined) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/**
 * Ends the processes that an agent moved out of its group, such as Cline's daemon: those with this home. Only Linux lists the
 * variables of a process.
 */
export function endProcessesOf(home: string): void {
  for (const pid of processIds()) {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")
      if (variables.includes(`HOME=${home}`)) process.kill(Number(pid), "SIGKILL")
    } catch {
      // it has ended, or belongs to another user
    }
  }
}

function processIds(): string[] {
  return existsSync("/proc") ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : []
}
