import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"

// The memory of a command with all its child processes: the largest sum of their resident sets, sampled every 10 ms. Pages that
// they share count in each. Linux only.

const EVERY_MS = 10
const PAGE = 4096

/** Returns the peak in bytes, or undefined if the system does not report it. */
export function watchMemory(pid: number): { stop(): number | undefined } {
  if (!existsSync("/proc/self/statm")) return { stop: () => undefined }
  let peak = 0
  const look = () => {
    const sum = treeOf(pid).reduce((total, one) => total + residentOf(one), 0)
    peak = Math.max(peak, sum)
  }
  const timer = setInterval(look, EVERY_MS)
  return {
    stop: () => {
      clearInterval(timer)
      return peak
    },
  }
}

function treeOf(pid: number): number[] {
  const all = [pid]
  for (const one of all) for (const child of childrenOf(one)) if (!all.includes(child)) all.push(child)
  return all
}

/** Finds the children of a process. A thread may also start one. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    )
  } catch {
    return [] // ended meanwhile
  }
}

function residentOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE
  } catch {
    return 0
  }
}

// As a program: runs its remaining arguments with Node, and prints the peak and the duration at the end of stderr.
if (process.argv[1] === import.meta.filename) {
  const started = performance.now()
  const child = spawn(process.execPath, process.argv.slice(2), { stdio: "inherit" })
  const memory = watchMemory(child.pid!)
  child.on("exit", (code) => {
    const ms = performance.now() - started
    console.error(`\npeak ${memory.stop() ?? "unknown"} bytes, ${ms} ms`)
    process.exitCode = code ?? 1
  })
}
