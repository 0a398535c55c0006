import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { cpus, tmpdir, totalmem } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type CorpusOptions, generateCorpus } from "./corpus.ts"

export const ROOT = fileURLToPath(new URL("..", import.meta.url))
export const DEX = join(ROOT, "dist", "dex.js")

export type TimedRun = { ms: number; rssMb: number; stdout: string; stderr: string; code: number | null }

/** Runs a process to its end and measures its time from outside. */
export function time(args: string[], env: Record<string, string> = {}, input?: string, cwd?: string): TimedRun {
  const started = process.hrtime.bigint()
  const run = spawnSync(process.execPath, args, {
    env: { PATH: process.env.PATH ?? "", NODE_COMPILE_CACHE: join(tmpdir(), "dex-bench-cache"), NO_COLOR: "1", ...env },
    encoding: "utf8",
    maxBuffer: 1 << 30,
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    ...(input !== undefined && { input }),
    ...(cwd !== undefined && { cwd }),
  })
  const ms = Number(process.hrtime.bigint() - started) / 1e6
  return { ms, rssMb: 0, stdout: run.stdout, stderr: run.stderr, code: run.status }
}

/**
 * Like `time`, with peak memory, including child processes. Measuring memory takes time, so do not use this for a few
 * milliseconds.
 */
export function timeWithMemory(args: string[], env: Record<string, string> = {}, cwd?: string): TimedRun {
  const run = time([join(ROOT, "bench/tree-memory.ts"), ...args], env, undefined, cwd)
  const [, peak, ms] = /peak (\w+) bytes, ([\d.]+) ms\s*$/.exec(run.stderr) ?? []
  return { ...run, ms: Number(ms), rssMb: Number(peak) / 1e6 }
}

export type Command = {
  args: string[]
  env?: Record<string, string>
  input?: string
  cwd?: string
  /** Talks to a server and ends it: closes its input, or calls `stop`. Its result counts as the output. */
  drive?: (child: ChildProcess, stop: () => void) => Promise<string>
}
export type Cost = { cpuMs: number; wallMs: number }

/**
 * bash's `time` reports the same as wait4: user and system time of the process and of all its descendants that ended and were
 * waited for, in milliseconds. Node reports only its own, and /proc counts in hundredths of a second.
 */
const TIMED = `trap : TERM; TIMEFORMAT='%3U %3S %3R'; { time "$@" 2>&4 3>&- 4>&-; } 4>&2 2>&3`

const running = new Set<ChildProcess>()
const endAll = () => {
  for (const { pid } of running) process.kill(-pid!, "SIGTERM")
}
process.once("exit", endAll)

/** Runs Node to its end and returns its cost and its output. Throws if it fails, unless it ends with 1. */
export async function costOf(command: Command): Promise<Cost & { output: string }> {
  const { args, env = {}, input, cwd, drive } = command
  const child = spawn("bash", ["-c", TIMED, "bench", process.execPath, ...args], {
    env: { PATH: process.env.PATH ?? "", TMPDIR: tmpdir(), NO_COLOR: "1", ...env },
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    detached: true, // its own group, so that a signal reaches all of it
    ...(cwd !== undefined && { cwd }),
  })
  running.add(child)
  const printed = { output: "", problem: "", times: "" }
  const keep = (name: keyof typeof printed, stream: NodeJS.ReadableStream) =>
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed[name] += text
    })
  keep("output", child.stdout)
  keep("problem", child.stderr)
  keep("times", child.stdio[3] as NodeJS.ReadableStream)
  child.stdin.on("error", () => {}) // a process that ends early reports why itself
  const ended = once(child, "close")
  if (drive) printed.output = await drive(child, () => process.kill(-child.pid!, "SIGTERM"))
  else child.stdin.end(input ?? "")
  const [code] = (await ended) as [number | null]
  running.delete(child)
  const [, user, system, wall] = /([\d.]+) ([\d.]+) ([\d.]+)\s*$/.exec(printed.times) ?? []
  // 1: nothing was found. A server has answered by then, and may end itself in any way.
  if ((code !== 0 && code !== 1 && !drive) || wall === undefined)
    throw new Error(`${args.join(" ")} ended with ${code}: ${printed.problem}${printed.times}`)
  return { cpuMs: (Number(user) + Number(system)) * 1000, wallMs: Number(wall) * 1000, output: printed.output }
}

export function sizeOf(...files: string[]): number {
  return files.reduce(
    (sum, file) =>
      sum +
      ["", "-wal"].reduce((part, suffix) => part + (statSync(file + suffix, { throwIfNoEntry: false })?.size ?? 0), 0),
    0,
  )
}

export function machine(): string {
  const gib = Math.round(totalmem() / 2 ** 30)
  return `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}, ${gib} GiB, ${process.platform}, Node ${process.versions.node}`
}

/** A home with this many generated messages. It stays in the temporary folder, and is reused. */
export function homeWith(messages: number, ...more: CorpusOptions[]): string {
  const home = join(tmpdir(), "dex-bench-histories", [messages, ...more.map((one) => one.messages)].join("-"))
  if (existsSync(join(home, "synced"))) return home
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home, { recursive: true })
  for (const options of [{ messages, seed: 11 }, ...more]) generateCorpus(join(home, ".claude"), options)
  const run = time([DEX, "sync"], { HOME: home })
  if (run.code !== 0) throw new Error(run.stderr)
  writeFileSync(join(home, "synced"), "")
  return home
}

export const shortCount = (count: number) => (count >= 1e6 ? `${count / 1e6} M` : `${count / 1000} k`)
