import { execFileSync } from "node:child_process"

/** The processes that it started and that are still there. */
export function childrenOf(pid: number): number[] {
  try {
    const out = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" })
    return out.split("\n").map(Number).filter(Boolean)
  } catch {
    return [] // ps says so by its exit code
  }
}

/** One that ended and that nobody asked after yet is not. */
export function isAlive(pid: number): boolean {
  try {
    return !execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).startsWith("Z")
  } catch {
    return false // ps finds no such process
  }
}
