import { setFlagsFromString } from "node:v8"
import type { Server } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { createDex } from "../app/dex.ts"
import { codeOf } from "../core/error.ts"
import { safe } from "../render/terminal.ts"
import { createFreshness } from "./fresh.ts"
import { holdDex } from "./hold.ts"
import type { ServerParts } from "./run-call.ts"
import { createServer } from "./server.ts"
import { lineTransport } from "./stdio.ts"

export type ServeOptions = { version: string; env: Record<string, string | undefined>; cwd: string }

/** What is served: everything, unless told. */
export type Create = (parts: ServerParts) => Server

/** After stdin closed, what was asked before may still be answered for this long, and reading stops in what is left. */
const LAST_ANSWERS_MS = 1_000
const END_WITHIN_MS = 1_200
const PARENT_EVERY_MS = 1_000

/**
 * Serves MCP on stdin and stdout, in whichever protocol era the client speaks. Ends the process when stdin closes or the
 * parent dies, with anything still running: a sync that is cut off goes on at the next one, and an orphan helps nobody.
 */
export function serve({ version, env, cwd }: ServeOptions, create: Create = createServer): Promise<never> {
  // There are as many servers as agents at work. Left to itself, V8 lets garbage grow by 50 MB before it looks.
  setFlagsFromString("--optimize-for-size")
  const write = takeStdout()
  const log = (line: string) => void process.stderr.write(`dex: ${safe(line)}\n`)
  process.on("uncaughtException", (error) => log(error.stack ?? String(error)))
  process.on("unhandledRejection", (reason) => log(String((reason as Error)?.stack ?? reason)))

  const start = { env: { ...env }, cwd, version }
  const fresh = createFreshness(start, log)
  const use = holdDex(() => createDex(start))
  const wire = lineTransport(write)
  serveStdio(() => create({ version, use, fresh, log }), {
    transport: wire,
    onerror: (error) => log(error.message),
  })
  void fresh.pickUp(0)

  process.stdin.on("data", wire.receive)
  const end = (since: number) => {
    const left = since + END_WITHIN_MS - performance.now()
    void fresh.stop(Math.max(0, left)).then(endProcess)
  }
  const endNow = () => end(performance.now())
  process.stdin.on("error", endNow)
  process.stdin.on("end", () => {
    const closed = performance.now()
    void wire.answered(LAST_ANSWERS_MS).then(() => end(closed))
  })
  whenParentDies(endNow)
  return new Promise<never>(() => {})
}

/** From here on stdout is for JSON-RPC only: whatever else is printed, by whomever, goes to stderr. */
export function takeStdout(): (line: string) => void {
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write
  for (const name of ["log", "info", "debug", "table", "dir"] as const) console[name] = console.error
  return (line) => void write(line)
}

/**
 * Node crashes when it exits while a thread is inside SQLite. Being killed there is safe: every write is a transaction. It
 * happens only if the thread is not done in time with the conversation at hand.
 */
export function endProcess(isIdle: boolean): void {
  if (isIdle) process.exit(0)
  process.kill(process.pid, "SIGKILL")
}

/** A parent that is killed may leave stdin open in another child of its own. */
function whenParentDies(end: () => void): void {
  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent || !isThere(parent)) end()
  }, PARENT_EVERY_MS).unref()
}

/** On Windows nobody takes over a child whose parent died: its number stays what it was. */
function isThere(pid: number): boolean {
  if (process.platform !== "win32") return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) !== "ESRCH"
  }
}
