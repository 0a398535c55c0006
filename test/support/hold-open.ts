import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { onTestFinished } from "vitest"

export type Holder = { stopReading(): Promise<void> }

/**
 * Starts another process that has these databases open, as a server has; with `reading`, in the middle of a transaction. It must
 * be another process: one that opens and closes a file by other means releases SQLite's own locks on it.
 */
export async function holdOpen(paths: string[], { reading = false } = {}): Promise<Holder> {
  const program = fileURLToPath(new URL("holder.ts", import.meta.url))
  const child = spawn(process.execPath, [program, reading ? "reading" : "idle", ...paths], {
    stdio: ["pipe", "pipe", "inherit"],
  })
  onTestFinished(() => void child.kill("SIGKILL"))
  await once(child.stdout, "data")
  return {
    stopReading: async () => {
      child.stdin.write("stop\n")
      await once(child.stdout, "data")
    },
  }
}
