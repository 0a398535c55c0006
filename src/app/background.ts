import type { SyncProgress } from "../ingest/sync-types.ts"
import { isSubprocessEnded, subprocessFile } from "../subprocess/link.ts"
import { startDetached, startProcess } from "../subprocess/process.ts"
import type { DexOptions } from "./dex.ts"

/** `learn` learns from the history; the caller must hold knowledge.lock. `read` reads new messages and learns from them. */
export type SubprocessWork = "learn" | "read"

/**
 * Keeps the space for new objects small. By default, V8 lets 50 MB of garbage or more build up before it frees the memory, and
 * each conversation becomes garbage once dex has learned from it.
 */
const HEAP_FLAGS = ["--max-semi-space-size=4"]

/**
 * Does memory-intensive work in a separate process, so that the memory is freed afterwards, however many conversations there are.
 * That process ends when its parent ends.
 */
export async function runInSubprocess(work: SubprocessWork, options: DexOptions): Promise<{ complete: boolean }> {
  const { env, cwd, version, signal, onProgress } = options
  const file = subprocessFile("./background-process.ts", import.meta.url)
  const startOptions = { args: [version], flags: HEAP_FLAGS, cwd, env }
  const subprocess = startProcess<SubprocessWork, { complete: boolean }, SyncProgress>(file, startOptions)
  try {
    return await subprocess.ask(work, { signal, onEvent: onProgress })
  } catch (error) {
    if (!isSubprocessEnded(error) || error.isNotStarted) throw error
    throw new Error("The background process ended unexpectedly.", { cause: error })
  } finally {
    await subprocess.end()
  }
}

/**
 * Starts `dex sync` as a separate process, which continues after this one has ended and its terminal is closed. It prints nothing
 * and ends when everything is read. Returns true once it runs.
 */
export async function startBackgroundSync(
  dexDir: string,
  env: NodeJS.ProcessEnv,
  flags: string[] = [],
): Promise<boolean> {
  const [script] = process.argv.slice(1)
  return script !== undefined && startDetached([script, "sync", ...flags], { cwd: dexDir, env })
}
