import { isDexError, messageOf } from "../core/error.ts"
import { syncWithThreads } from "../ingest/sync-thread.ts"
import { learnHere, learnNow } from "../tools/learned.ts"
import type { ApartReport, ApartWork } from "./apart.ts"
import { createDex } from "./dex.ts"

// What takes memory, for a process that is to stay small.

const END_WITHIN_MS = 1_000

const [work, version = ""] = process.argv.slice(2) as [ApartWork, string?]
const stop = new AbortController()
const say = (report: ApartReport, then = () => {}) => {
  if (process.connected) process.send!(report, then)
  else then()
}
// Ctrl-C in a terminal reaches this process too; who started it says when to stop.
process.on("SIGINT", () => {})
process.on("message", () => stop.abort())
process.on("disconnect", () => {
  stop.abort()
  // Being killed is safe, in a thread too: every write is a transaction.
  setTimeout(() => process.kill(process.pid, "SIGKILL"), END_WITHIN_MS)
})

const dex = createDex({
  env: process.env,
  cwd: process.cwd(),
  version,
  signal: stop.signal,
  onProgress: (progress) => say({ progress }),
})
let report: ApartReport
try {
  report = work === "learn" ? await learnHere(dex) : await read()
} catch (error) {
  report = { error: messageOf(error), ...(isDexError(error) && { code: error.code }) }
}
dex.close()
// After the databases are closed.
setImmediate(() => say(report, () => process.exit(0)))

async function read(): Promise<{ complete: boolean }> {
  const { complete, busy } = await syncWithThreads(await dex.syncDeps(), dex.home.index, { signal: stop.signal })
  if (!busy && dex.knows()) await learnNow(dex)
  return { complete }
}
