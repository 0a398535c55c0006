import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { dex } from "./dex.ts"
import { tempDir } from "./temp.ts"

/** The calls that change what is on the disk, one by one. */
const STEPS = ["renameSync", "linkSync", "rmSync", "copyFileSync", "writeFileSync"]

const PRELOAD = `
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
let left = Number(process.env.KILL_AT)
for (const name of ${JSON.stringify(STEPS)}) {
  const real = fs[name]
  fs[name] = (...args) => {
    if (--left === 0) process.kill(process.pid, "SIGKILL")
    return real(...args)
  }
}
syncBuiltinESMExports()
`

/** Runs a command that kills itself (kill -9) just before it changes a file for the nth time. True if it ended before that. */
export async function killedAt(home: string, args: string[], n: number): Promise<boolean> {
  const preload = join(tempDir(), "preload.mjs")
  writeFileSync(preload, PRELOAD)
  const run = await dex(home, args, { NODE_OPTIONS: `--import=${preload}`, KILL_AT: String(n) })
  if (run.code !== null && run.code !== 0) throw new Error(`dex ${args.join(" ")}: ${run.stderr}`)
  return run.code === 0
}
