import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { environment, type Run } from "./dex.ts"

export type CommandLine = { args: string[]; env: Record<string, string>; cwd: string }
export type Ended = Run & { code: number }

/** Commands that end the process, or use its streams. */
const OWN_PROCESS_COMMANDS = ["hook", "mcp", "serve", "--version"]

/**
 * How long a command may take, in milliseconds: far more than any command takes on a busy machine. One that hangs must not block
 * all that come after it.
 */
const TIMEOUT_MS = 100_000

let running: Promise<ChildProcess> | undefined
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs a command line of the built program as `dex` does, in a process that runs many of them, one at a time: starting a process
 * takes ten times as long as what most commands do. For tests of what a command does and prints, but not of what only a process
 * has: input, signals, a terminal, a working folder that disappears.
 */
export async function warmDex(
  home: string,
  args: string[],
  env: Record<string, string> = {},
  cwd = home,
): Promise<Run> {
  if (OWN_PROCESS_COMMANDS.includes(args[0]!)) throw new Error(`dex ${args[0]} needs a process of its own`)
  return inTurn(home, args, env, cwd)
}

/**
 * Runs a command line that is refused before it would need a process of its own. If it is not refused, it ends like one that
 * hangs.
 */
export function runRefused(home: string, args: string[]): Promise<Run> {
  return inTurn(home, args, {}, home)
}

async function inTurn(home: string, args: string[], env: Record<string, string>, cwd: string): Promise<Run> {
  const run = last.then(() => runNext({ args, env: environment(home, env), cwd }))
  last = run.catch(() => {})
  return run
}

/** Reads what is new in a home. */
export async function syncHome(home: string, env: Record<string, string> = {}): Promise<void> {
  const { code, stderr } = await warmDex(home, ["sync"], env)
  if (code !== 0) throw new Error(`${home} could not be read: ${stderr}`)
}

async function runNext(line: CommandLine): Promise<Run> {
  running ??= start()
  const child = await running
  const ended = new AbortController()
  const exited = once(child, "exit", { signal: ended.signal }).then(([code, signal]) => {
    throw new Error(`dex ${line.args.join(" ")} ended the process that runs many, by ${signal ?? code}`)
  })
  const answered = once(child, "message", { signal: ended.signal })
  child.channel!.ref()
  child.send(line)
  const hangs = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS)
  try {
    const [run] = (await Promise.race([answered, exited])) as [Ended]
    return run
  } finally {
    clearTimeout(hangs)
    exited.catch(() => {})
    answered.catch(() => {})
    ended.abort()
    child.channel?.unref()
  }
}

async function start(): Promise<ChildProcess> {
  const file = join(import.meta.dirname, "warm-process.ts")
  // None of them is the terminal of the person who runs the tests.
  const stdio = ["ignore", "ignore", "ignore", "ipc"] as const
  const child = fork(file, { env: environment("/nowhere", {}), execArgv: [], stdio: [...stdio] })
  child.once("exit", () => {
    running = undefined
  })
  const ready = await Promise.race([once(child, "message"), once(child, "exit").then(() => undefined)])
  if (!ready) throw new Error(`The process that runs many command lines did not start: node ${file}`)
  child.unref()
  child.channel?.unref()
  return child
}
