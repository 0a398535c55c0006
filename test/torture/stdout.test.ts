import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { connect } from "../mcp/client.ts"
import { kindsOf } from "../mcp/kinds-of-calls.ts"
import { smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

/** 3,000 in CI, 100,000 with `npm run torture`. */
const CALLS = Number(process.env.DEX_MCP_NOISY_CALLS ?? 3_000)

test(
  "nothing but JSON-RPC reaches stdout, whatever prints, warns, rejects or throws",
  async () => {
    const home = tempDir()
    smallHome(home)
    const noise = join(home, "noise.mjs")
    // In the server's main thread the noise begins once the server has redirected stdout, in other threads immediately.
    writeFileSync(
      noise,
      `import { execFile, spawn } from "node:child_process"
import { isMainThread } from "node:worker_threads"
const first = process.stdout.write
let round = 0
const timer = setInterval(() => {
  if (isMainThread && process.stdout.write === first) return
  const where = isMainThread ? "main" : "thread"
  console.log("noise log " + where)
  console.info("noise info")
  console.table([{ noise: 1 }])
  process.stdout.write("noise write " + where + "\\n")
  process.emitWarning("noise warning")
  if (!isMainThread) return
  Promise.reject(new Error("noise rejection"))
  setTimeout(() => { throw new Error("noise exception") })
  if (round++ % 100 !== 0) return
  spawn("sh", ["-c", "echo noise child"]).stdout.pipe(process.stdout, { end: false })
  execFile("sh", ["-c", "echo noise captured; exit 1"], (error, stdout) => console.log(stdout))
}, 5)
timer.unref()`,
    )
    const client = await connect(home, { env: { NODE_OPTIONS: `--import ${noise}` } })
    const kinds = kindsOf(client)
    for (let i = 0; i < CALLS; i += 20)
      await Promise.all(Array.from({ length: 20 }, (_, n) => kinds[(i + n) % kinds.length]!()))
    client.child.stdin!.end()
    await client.exited
    expect(client.lines.length).toBe(CALLS + 1) // and initialize
    for (const line of client.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" })
    const said = client.stderr()
    for (const one of ["log main", "log thread", "write main", "write thread", "info", "rejection", "exception"])
      expect(said).toContain(`noise ${one}`)
    console.log(`${client.lines.length} lines of JSON-RPC, beside ${said.split("\n").length} lines on stderr`)
    for (const one of ["warning", "child", "captured"]) expect(said).toContain(`noise ${one}`)
  },
  60_000 + CALLS * 100,
)
