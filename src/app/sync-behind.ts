import { startDetached } from "../subprocess/process.ts"

/**
 * Starts `dex sync` as a process of its own: it goes on when this one has ended and its terminal is closed, prints nothing,
 * and ends when all is read. True once it runs.
 */
export async function syncBehind(dexDir: string, env: NodeJS.ProcessEnv, flags: string[] = []): Promise<boolean> {
  const [script] = process.argv.slice(1)
  return script !== undefined && startDetached([script, "sync", ...flags], { cwd: dexDir, env })
}
