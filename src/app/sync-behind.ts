import { spawn } from "node:child_process"

/**
 * Starts `dex sync` as a process of its own: it goes on when this one has ended and its terminal is closed, prints nothing,
 * and ends when all is read. True once it runs.
 */
export function syncBehind(dexDir: string, env: NodeJS.ProcessEnv, flags: string[] = []): Promise<boolean> {
  const [script] = process.argv.slice(1)
  if (script === undefined) return Promise.resolve(false)
  return new Promise((resolve) => {
    const options = { cwd: dexDir, env, detached: true, stdio: "ignore", windowsHide: true } as const
    const child = spawn(process.execPath, [script, "sync", ...flags], options)
    child.once("spawn", () => resolve(true))
    child.once("error", () => resolve(false))
    child.unref()
  })
}
