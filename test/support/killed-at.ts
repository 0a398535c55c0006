import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { dex } from "./dex.ts"
import { tempDir } from "./temp.ts"

/** The steps that are counted: calls that change files, or blocks that are packed, of which every conversation has some. */
const STEPS = {
  files: { module: "fs", names: ["renameSync", "linkSync", "rmSync", "copyFileSync", "writeFileSync"] },
  blocks: { module: "zlib", names: ["zstdCompressSync"] },
}

const preloadOf = ({ module, names }: { module: string; names: string[] }) => `
import counted from "node:${module}"
import { syncBuiltinESMExports } from "node:module"
let left = Number(process.env.KILL_AT)
for (const name of ${JSON.stringify(names)}) {
  const real = counted[name]
  counted[name] = (...args) => {
    if (--left === 0) process.kill(process.pid, "SIGKILL")
    return real(...args)
  }
}
syncBuiltinESMExports()
`

/** Runs a command that kills itself (kill -9) just before its nth step of a kind. Returns true if it ended before that. */
export async function runKilledAt(home: string, args: string[], n: number, kind: keyof typeof STEPS): Promise<boolean> {
  const preload = join(tempDir(), "preload.mjs")
  writeFileSync(preload, preloadOf(STEPS[kind]))
  const run = await dex(home, args, { NODE_OPTIONS: `--import=${preload}`, KILL_AT: String(n) })
  if (run.code !== null && run.code !== 0) throw new Error(`dex ${args.join(" ")}: ${run.stderr}`)
  return run.code === 0
}
