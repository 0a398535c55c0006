import { execFileSync } from "node:child_process"

/** The running processes that a process started. */
export function childrenOf(pid: number): number[] {
  try {
    const out = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" })
    return out.split("\n").map(Number).filter(Boolean)
  } catch {
    return [] // ps says so by its exit code
  }
}

/** True if the process runs. One that has ended and was not waited for does not count. */
export function isAlive(pid: number): boolean {
  try {
    return !execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).startsWith("Z")
  } catch {
    return false // ps finds no such process
  }
}
