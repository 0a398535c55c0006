import { spawnSync } from "node:child_process"
import { statSync } from "node:fs"
import { cpus, tmpdir, totalmem } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const ROOT = fileURLToPath(new URL("..", import.meta.url))
export const DEX = join(ROOT, "dist", "dex.js")

export type Timed = { ms: number; rssMb: number; stdout: string; stderr: string; code: number | null }

/** Runs a process to its end: how long it took, seen from outside. */
export function time(args: string[], env: Record<string, string> = {}, input?: string, cwd?: string): Timed {
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

/** The same with peak memory, the processes that it starts included; looking at it takes time: not for a few milliseconds. */
export function timeWithMemory(args: string[], env: Record<string, string> = {}, cwd?: string): Timed {
  const run = time([join(ROOT, "bench/tree-memory.ts"), ...args], env, undefined, cwd)
  const [, peak, ms] = /peak (\w+) bytes, ([\d.]+) ms\s*$/.exec(run.stderr) ?? []
  return { ...run, ms: Number(ms), rssMb: Number(peak) / 1e6 }
}

export function percentile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!
}

export const median = (values: number[]) => percentile(values, 0.5)

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

export type Row = { what: string; measured: string; floor: string; goal: string; ok: boolean | undefined }

export function printTable(title: string, rows: Row[]): void {
  console.log(`\n${title}\n`)
  console.log("| | measured | floor, same run | goal | |")
  console.log("|---|---|---|---|---|")
  for (const row of rows)
    console.log(
      `| ${row.what} | ${row.measured} | ${row.floor} | ${row.goal} | ${row.ok === undefined ? "" : row.ok ? "reached" : "**not reached**"} |`,
    )
}
