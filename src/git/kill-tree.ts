import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"

/**
 * Ends a process and all that it has started. It must have been started as the first of its own group (`detached`); on
 * Windows, which has no such groups, its children are looked up instead. What has ended already is no error.
 */
export function killTree(child: ChildProcess): void {
  if (child.pid === undefined) return
  if (process.platform === "win32") {
    killByParents(child)
    return
  }
  try {
    process.kill(-child.pid, "SIGKILL")
  } catch {
    child.kill("SIGKILL") // no process groups here, or it has ended
  }
}

function killByParents(child: ChildProcess): void {
  const alone = () => void child.kill("SIGKILL")
  const taskkill = join(process.env.SystemRoot ?? "C:\\Windows", "System32", "taskkill.exe")
  spawn(taskkill, ["/pid", String(child.pid), "/t", "/f"], { stdio: "ignore", windowsHide: true })
    .on("error", alone)
    .on("exit", alone)
}
